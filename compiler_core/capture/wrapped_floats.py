"""Floats that torch.compile wrapped in tensors: arguments of the graph that are plain floats again.

In: a graph of torch.compile's capture, in which a float that changes between calls is an input of
shape [] and dtype float64, read by `item`. Out: the same graph, in which that input is the symbolic
float itself, as in our own capture. Where a shape or a check of eager depends on the float, its
value is compiled in: the guard goes to torch.compile's own symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from compiler_core.capture.graph_builder import decides_shape, may_check_range

__all__ = ["take_floats"]


def take_floats(graph: fx.Graph) -> None:
    """Turn the placeholders of wrapped floats into floats, in place; reads of other tensors stay."""
    for place in graph.find_nodes(op="placeholder"):
        reads = list(place.users)
        if not reads or not all(map(_reads_a_known_float, reads)):
            continue
        value = reads[0].meta["example_value"]
        if _is_compiled_in(value, reads):
            _use_instead(reads, float(value))
        else:
            place.meta["example_value"] = value
            _use_instead(reads, place)
        for read in reads:
            graph.erase_node(read)


def _reads_a_known_float(node: fx.Node) -> bool:
    """`item` of a wrapped float has a value at hand; that of a tensor which was computed has none."""
    value = node.meta.get("example_value")
    is_read = node.op == "call_method" and node.target == "item"
    return is_read and isinstance(value, torch.SymFloat) and value.node.has_hint()


def _is_compiled_in(value: torch.SymFloat, reads: list[fx.Node]) -> bool:
    hint = value.node.hint
    if not math.isfinite(hint) or hint == 0:
        return True
    return any(map(_needs_the_value, _takers(reads)))


def _needs_the_value(node: fx.Node) -> bool:
    """A shape, a check or an integer follows from the float, or a float by more than arithmetic."""
    made = node.meta.get("example_value")
    if isinstance(made, torch.SymFloat):
        return getattr(node.target, "__name__", node.target) not in _ARITHMETIC
    is_number = isinstance(made, (torch.SymInt, torch.SymBool))
    return is_number or decides_shape(node.target) or may_check_range(node.target)


_ARITHMETIC = {
    "add",
    "sub",
    "mul",
    "truediv",
    "neg",
    "_sym_sqrt",
}  # float → float, as kernels compute it


def _takers(numbers: list[fx.Node]) -> Iterator[fx.Node]:
    """The nodes that take these floats, or floats computed of them."""
    for user in {user: None for number in numbers for user in number.users}:
        yield user
        if isinstance(user.meta.get("example_value"), torch.SymFloat):
            yield from _takers([user])


def _use_instead(reads: list[fx.Node], new: fx.Node | float) -> None:
    def replaced(old: fx.Node) -> Any:
        return new if old in reads else old

    for user in [user for read in reads for user in read.users]:
        user.args = fx.map_arg(user.args, replaced)
        user.kwargs = fx.map_arg(user.kwargs, replaced)
