"""A part of a graph as a graph of its own.

In: a graph module, the nodes to be its inputs, the values to be its outputs. Out: a graph module
with nodes of the same names, whose origins are the `joint:` handles of the nodes they were copied
from (and, in a backward graph, of those that a forward value is kept or made again for). The order is the joint graph's, but a value that several early nodes compute again comes
just before its first use, so that it does not live longer than needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import fx

from compiler_core.autodiff.causes import name_causes
from compiler_core.provenance import handle

__all__ = ["extract"]


def extract(
    module: fx.GraphModule, inputs: Sequence[fx.Node], outputs: Sequence[Any], name: str,
    also: Sequence[fx.Node] = (),
) -> fx.GraphModule:  # fmt: skip
    """The part of `module` that computes `outputs` (nodes, numbers or None) from `inputs`.

    also: nodes that run though nobody may need their values, because they draw random numbers.
    """
    graph = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        new[node] = graph.placeholder(node.name)
        new[node].meta = _meta(node)
    needed = _needed(inputs, [*outputs, *also])
    for node in module.graph.nodes:
        if node in needed and _has_own_place(node, name):
            _copy_with_operands(graph, node, new)
    for node in outputs:
        if isinstance(node, fx.Node):
            _copy_with_operands(graph, node, new)
    if name == "Backward":
        name_causes(graph, frozenset(n.name for n in inputs if n.op == "placeholder"))
    result = graph.output(tuple(new[o] if isinstance(o, fx.Node) else o for o in outputs))
    result.meta["origins"] = frozenset({handle("joint", "output")})
    return fx.GraphModule(module, graph, name)


def _has_own_place(node: fx.Node, name: str) -> bool:
    return name == "Forward" or node.meta["phase"] == "backward"


def _copy_with_operands(graph: fx.Graph, node: fx.Node, new: dict[fx.Node, fx.Node]) -> None:
    stack = [node]
    while stack:
        top = stack[-1]
        waiting = [operand for operand in top.all_input_nodes if operand not in new]
        if top in new or not waiting:
            stack.pop()
            if top not in new:
                new[top] = graph.node_copy(top, lambda operand: new[operand])
                new[top].meta = _meta(top)
        else:
            stack += reversed(waiting)


def _needed(inputs: Sequence[fx.Node], outputs: Sequence[Any]) -> set[fx.Node]:
    needed = set(inputs)
    stack = [o for o in outputs if isinstance(o, fx.Node)]
    while stack:
        node = stack.pop()
        if node not in needed:
            needed.add(node)
            stack += node.all_input_nodes
    return needed - set(inputs)


def _meta(node: fx.Node) -> dict[str, Any]:
    return {**node.meta, "origins": frozenset({handle("joint", node.name)})}
