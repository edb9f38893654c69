"""Compute equal things once.

Requires: a functional graph. Establishes: no two nodes apply one operator to the same arguments,
except random operators, those with effects, and pairs that the caller both gets (two results of a
program never share memory that eager's would not). Keeps: the first of equals, with the origins of all.

>>> import torch
>>> from torch.fx.experimental.proxy_tensor import make_fx
>>> from compiler_core.options import Context, Options
>>> from compiler_core.recording import Recorder
>>> before = make_fx(lambda x: x.sin() * x.sin(), tracing_mode="fake")(torch.ones(2))
>>> [node.name for node in before.graph.nodes]
['x_1', 'sin', 'sin_1', 'mul', 'output']
>>> after = merge_common_subexpressions(before, Context(Options(), Recorder()))
>>> [node.name for node in after.graph.nodes]
['x_1', 'sin', 'mul', 'output']
"""

from __future__ import annotations

from typing import Any

from torch import fx

from compiler_core.options import Context
from compiler_core.passes.rewriting import Rewriter, escapes, is_random

__all__ = ["merge_common_subexpressions"]


def merge_common_subexpressions(graph: fx.GraphModule, context: Context) -> fx.GraphModule:
    """The graph with the first of equal nodes standing for all."""
    rewriter = Rewriter(graph, context, "merge_common_subexpressions")
    escaping = escapes(graph)
    first: dict[Any, fx.Node] = {}  # key → node of the old graph
    for node in graph.graph.nodes:
        key = _key(node, rewriter)
        earlier = first.setdefault(key, node) if key is not None else node
        if earlier is node or (node in escaping and earlier in escaping):
            rewriter.keep(node)
        else:
            rewriter.stand_in(node, rewriter.copies[earlier], "computed before")
            escaping |= {earlier} if node in escaping else set()
    return rewriter.build()


def _key(node: fx.Node, rewriter: Rewriter) -> Any:
    """What makes two nodes equal; None for a node that is equal to no other."""
    if node.op != "call_function" or is_random(node) or node.is_impure():
        return None
    return node.target, _frozen(node.args, rewriter), _frozen(node.kwargs, rewriter)


def _frozen(value: Any, rewriter: Rewriter) -> Any:
    """A hashable value that tells 1, 1.0 and True apart, and 0.0 from -0.0."""
    match value:
        case fx.Node():
            return rewriter.copies[value]
        case tuple() | list():
            return tuple(_frozen(x, rewriter) for x in value)
        case dict():
            return tuple((k, _frozen(x, rewriter)) for k, x in sorted(value.items()))
        case slice():
            return _frozen((value.start, value.stop, value.step), rewriter)
    return type(value).__name__, repr(value)
