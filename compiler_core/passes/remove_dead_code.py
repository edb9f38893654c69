"""Leave out what nobody reads.

Requires: nothing. Establishes: every node is read, or is an argument, the output, a random operator or one
with an effect. Keeps: order, names, the random stream.

>>> import torch
>>> from torch.fx.experimental.proxy_tensor import make_fx
>>> from compiler_core.options import Context, Options
>>> from compiler_core.recording import Recorder
>>> before = make_fx(lambda x: (x.sin(), x.cos())[1], tracing_mode="fake")(torch.ones(2))
>>> [node.name for node in before.graph.nodes]
['x_1', 'sin', 'cos', 'output']
>>> after = remove_dead_code(before, Context(Options(), Recorder()))
>>> [node.name for node in after.graph.nodes]
['x_1', 'cos', 'output']
>>> remove_dead_code(after, Context(Options(), Recorder())) is after
True
"""

from __future__ import annotations

from torch import fx

from compiler_core.options import Context
from compiler_core.passes.rewriting import Rewriter, is_random

__all__ = ["remove_dead_code"]


def remove_dead_code(graph: fx.GraphModule, context: Context) -> fx.GraphModule:
    """The graph without nodes whose value nothing needs."""
    needed = _needed(graph)
    rewriter = Rewriter(graph, context, "remove_dead_code")
    for node in graph.graph.nodes:
        if node in needed:
            rewriter.keep(node)
        else:
            rewriter.drop(node, "nothing reads it")
    return rewriter.build()


def _needed(graph: fx.GraphModule) -> set[fx.Node]:
    needed: set[fx.Node] = set()
    for node in reversed(graph.graph.nodes):
        if _has_effect(node) or any(user in needed for user in node.users):
            needed.add(node)
    return needed


def _has_effect(node: fx.Node) -> bool:
    """Arguments keep their places, and random operators advance the stream."""
    return node.op in ("placeholder", "output") or is_random(node) or node.is_impure()
