"""Operators that read at positions which lie in a tensor: embedding, gather, index, index_select.

In: a node whose result at a position is the element of an operand at a position read from another.
Out: one nest: the position is loaded, `place` keeps it in bounds as eager does (or raises eager's error),
and the element is loaded there. Masks of truth values have results of unknown size: library calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, stored_as
from compiler_core.ir.index import Index
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.scalars import Scalar

__all__ = ["TABLE", "checked", "dimension_of", "place_at", "subscripts"]

aten = torch.ops.aten

Read: TypeAlias = Callable[[NestBuilder, dict[str, Any]], Scalar]

INDICES = ("i32", "i64")


def lower_gather(read: Read, env: Environment, node: fx.Node) -> Operand:
    """One nest over the result's positions. Raises Refusal for what only the library does."""
    fake = node.meta["val"]
    if stored_as(fake.dtype).name not in DTYPES:
        raise Refusal(f"no kernel moves {stored_as(fake.dtype)}")
    with env.nest(node, indices_of(fake.shape)) as nest:
        return env.store(nest, node, read(nest, {**env.arguments(node), "node": node}))


def checked(indices: Operand) -> Operand:
    """The operand as positions. Raises Refusal for masks and small integers."""
    if indices.dtype.name not in INDICES:
        raise Refusal(f"positions of type {indices.dtype}")
    return indices


def dimension_of(x: Operand, dim: int) -> int:
    """A dimension counted from the front. Raises Refusal for a tensor without dimensions."""
    if not x.shape:
        raise Refusal("a tensor without dimensions")
    if x.number is not None:
        raise Refusal("every element is the same number")
    return dim % len(x.shape)


def place_at(
    nest: NestBuilder, indices: Operand, positions: Sequence[Index], extent: Index, check: str, dim: int = 0
) -> Index:  # fmt: skip
    """The place that `indices` names at `positions`."""
    return nest.place(nest.load(checked(indices), positions), extent, check, dim)


def check_of(node: fx.Node, otherwise: str) -> str:
    """The check of an operator: what the decomposition that made it says, else the operator's own."""
    return str(node.meta.get("check", otherwise))


def _embedding(nest: NestBuilder, given: dict[str, Any]) -> Scalar:
    weight, indices = given["weight"], given["indices"]
    rank = len(indices.shape)
    dimension_of(weight, 0)
    at = place_at(nest, indices, nest.positions[:rank], weight.shape[0], "row")
    return nest.load(weight.selected(0, at), nest.positions[rank:])


def _gather(nest: NestBuilder, given: dict[str, Any]) -> Scalar:
    x, indices = given["self"], given["index"]
    dim = dimension_of(x, given["dim"])
    check = check_of(given["node"], "element")
    at = place_at(nest, indices, nest.positions, x.shape[dim], check, dim)
    # along the others, `index` may be shorter than `self`: its positions are those of `self`
    return nest.load(x.selected(dim, at), [p for d, p in enumerate(nest.positions) if d != dim])


def _index_select(nest: NestBuilder, given: dict[str, Any]) -> Scalar:
    x, indices = given["self"], given["index"]
    dim = dimension_of(x, given["dim"])
    check = "column" if dim == 1 else "row"
    own = nest.positions[dim : dim + 1] if indices.shape else ()
    at = place_at(nest, indices, own, x.shape[dim], check)
    return nest.load(x.selected(dim, at), [p for d, p in enumerate(nest.positions) if d != dim])


def subscripts(
    nest: NestBuilder, x: Operand, indices: Sequence[Operand | None], positions: Sequence[Index], check: str
) -> tuple[Operand, list[Index]]:  # fmt: skip
    """x[indices] at `positions` of its result: the part of `x`, and the positions left in it.

    Tensors among the indices broadcast together; their dimensions stand where the first of them is if
    no slice lies between two, else in front (NumPy's rule).
    """
    dims = [d for d, index in enumerate(indices) if index is not None]
    if not dims:
        raise Refusal("no position is read from a tensor")
    dimension_of(x, 0)
    rank = max(len(checked(indices[d]).shape) for d in dims)  # type: ignore[arg-type]
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    inner = positions[first : first + rank]
    places = [
        place_at(nest, indices[d], inner, x.shape[d], check, number)  # type: ignore[arg-type]
        for number, d in enumerate(dims)
    ]
    for d, at in zip(reversed(dims), reversed(places), strict=True):
        x = x.selected(d, at)
    return x, [*positions[:first], *positions[first + rank :]]


def _index(nest: NestBuilder, given: dict[str, Any]) -> Scalar:
    check = check_of(given["node"], "subscript")
    return nest.load(*subscripts(nest, given["self"], given["indices"], nest.positions, check))


ROWS: dict[Any, Read] = {
    aten.embedding.default: _embedding,
    aten.gather.default: _gather,
    aten.index_select.default: _index_select,
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: _index,
}
TABLE: dict[Any, Any] = {op: partial(lower_gather, read) for op, read in ROWS.items()}
