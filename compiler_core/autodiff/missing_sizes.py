"""Sizes that the backward pass needs and that nothing it is given shows.

In: a joint graph and the backward graph cut out of it. Out: nodes of the joint graph to save besides.
A backward graph learns a symbol where it stands alone, as a dimension of an argument or as a number;
of `x.chunk(2)[0]` it gets a gradient of size `(s0 + 1)//2`, which does not tell `s0`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
import torch
from torch import fx

__all__ = ["missing_sizes"]


def missing_sizes(joint: fx.GraphModule, backward: fx.GraphModule) -> list[fx.Node]:
    """Nodes of the joint graph for the symbols that no argument of `backward` shows.

    Adds a `sym_size` to the joint graph where it has no node for a symbol.
    """
    nodes = list(backward.graph.nodes)
    given = [n.meta["val"] for n in nodes if n.op == "placeholder"]
    shown = set(map(_expression, _shown(given)))
    used = {s for n in nodes for e in _sizes(n.meta.get("val")) for s in e.free_symbols}
    return [_node_of(joint.graph, symbol) for symbol in sorted(used - shown, key=str)]


def _shown(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        yield from value.shape if isinstance(value, torch.Tensor) else (value,)


def _expression(size: Any) -> Any:
    return size.node.expr if isinstance(size, (torch.SymInt, torch.SymFloat)) else None


def _sizes(value: Any) -> list[sympy.Expr]:
    """The symbolic sizes in a value: shape and strides of a tensor, a number itself."""
    if isinstance(value, (tuple, list)):
        return [e for part in value for e in _sizes(part)]
    numbers = [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value]
    return [e for e in map(_expression, numbers) if e is not None]


def _node_of(graph: fx.Graph, symbol: sympy.Symbol) -> fx.Node:
    """The input that is the size, or the size of the first input that has it."""
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    for node in inputs:
        for dim, size in enumerate(_shown([node.meta["val"]])):
            if _expression(size) == symbol:
                is_number = not isinstance(node.meta["val"], torch.Tensor)
                return node if is_number else _size_node(graph, node, dim, size, inputs[-1])
    raise AssertionError(f"no input has the size {symbol}")


def _size_node(graph: fx.Graph, of: fx.Node, dim: int, size: Any, last: fx.Node) -> fx.Node:
    with graph.inserting_after(last):
        node = graph.call_function(torch.ops.aten.sym_size.int, (of, dim))
    node.meta = {"val": size, "origins": of.meta["origins"], "phase": "forward"}
    return node
