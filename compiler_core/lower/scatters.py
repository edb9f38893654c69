"""Operators that add at positions which lie in a tensor: the derivatives of gathers, and scatter_add.

In: a node whose result is a tensor to which elements of another are added at positions read from a
third. Out: two or three nests: the start (zeros, or a copy), the sums, and for half types, whose sums are
kept in f32, the rounding. Positions may meet, so the second nest adds (`+=`).

What *stores* at such positions is a library call: where two meet, the last one wins in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType, stored_as
from compiler_core.ir.index import Index, index
from compiler_core.lower.environment import Environment
from compiler_core.lower.gathers import checked, place_at, subscripts
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.scalars import Scalar, apply, cast, where

__all__ = ["TABLE"]

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Terms:
    """What is added: `shape` is its space, `add` gives for a position the part to add to, the positions
    left in it, and the value."""

    shape: Sequence[Index]
    add: Callable[[NestBuilder, Operand], tuple[Operand, Sequence[Index], Scalar]]


Scatter: TypeAlias = Callable[[dict[str, Any]], Terms]


def lower_scatter(scatter: Scatter, env: Environment, node: fx.Node) -> Operand:
    """The nests. Raises Refusal for what only the library does."""
    dtype = _summed_type(env, node)
    given = env.arguments(node)
    terms = scatter(given)
    target = _started(env, node, given.get("self"), dtype)
    with env.nest(node, terms.shape, "add") as nest:
        part, positions, value = terms.add(nest, target)
        nest.store(part, cast(value, dtype), positions, readers=env.readers(node), adds=True)
    own = stored_as(node.meta["val"].dtype)
    return target if own == dtype else _rounded(env, node, target)


def _summed_type(env: Environment, node: fx.Node) -> DType:
    """The type that sums are kept in. Raises Refusal where sums of any order are not wanted."""
    dtype = stored_as(node.meta["val"].dtype)
    if dtype.name not in DTYPES or dtype.name in ("bool", "u8", "i8", "i16"):
        raise Refusal(f"no kernel adds {dtype} in memory")
    if env.target.device != "cpu" and torch.are_deterministic_algorithms_enabled():
        raise Refusal("deterministic algorithms are asked for; atomic additions come in any order")
    return DTYPES[dtype.accumulator] if dtype.is_float else dtype


def _started(env: Environment, node: fx.Node, start: Operand | None, dtype: DType) -> Operand:
    """A buffer that holds what is added to: a copy of the operand, or zeros."""
    fake = node.meta["val"]
    own = stored_as(fake.dtype) == dtype
    shape = indices_of(fake.shape)
    with env.nest(node, shape) as nest:
        value = nest.constant(0, dtype) if start is None else nest.load(start, nest.positions)
        if own:
            return env.store(nest, node, value)
        like = start or env.values[node.all_input_nodes[0]]
        target = env.temporary(node, "sums", shape, dtype, like)
        nest.store(target, cast(value, dtype), readers=frozenset({env.handle(node)}))
        return target


def _rounded(env: Environment, node: fx.Node, sums: Operand) -> Operand:
    with env.nest(node, sums.shape, "round") as nest:
        return env.store(nest, node, nest.load(sums, nest.positions))


# --------------------------------------------------------------------------------- rows


def _embedding_backward(given: dict[str, Any]) -> Terms:
    grad, indices = given["grad_output"], checked(given["indices"])
    if given["scale_grad_by_freq"]:
        raise Refusal("each row is divided by the number of times it was read")
    padding, rank = given["padding_idx"], len(indices.shape)

    def add(nest: NestBuilder, target: Operand) -> tuple[Operand, Sequence[Index], Scalar]:
        own = nest.positions[:rank]
        at = place_at(nest, indices, own, target.shape[0], "row")
        value = nest.load(grad, nest.positions)
        if padding >= 0:
            row = nest.load(indices, own)
            value = where(apply("ne", row, padding), value, 0)
        return target.selected(0, at), nest.positions[rank:], value

    return Terms(grad.shape, add)


def _scatter_add(given: dict[str, Any]) -> Terms:
    x, indices, source = given["self"], checked(given["index"]), given["src"]
    dim = _target_dimension(x, given["dim"])

    def add(nest: NestBuilder, target: Operand) -> tuple[Operand, Sequence[Index], Scalar]:
        at = place_at(nest, indices, nest.positions, target.shape[dim], "element", dim)
        others = [p for d, p in enumerate(nest.positions) if d != dim]
        return target.selected(dim, at), others, nest.load(source, nest.positions)

    return Terms(indices.shape, add)


def _index_add(given: dict[str, Any]) -> Terms:
    x, indices, source, alpha = given["self"], given["index"], given["source"], given["alpha"]
    dim = _target_dimension(x, given["dim"])
    if not source.shape:
        raise Refusal("a source without dimensions")
    is_plain = len(x.shape) == 1 or indices.dtype.name != "i64" or alpha != 1

    def add(nest: NestBuilder, target: Operand) -> tuple[Operand, Sequence[Index], Scalar]:
        own = nest.positions[dim : dim + 1] if indices.shape else ()
        check = "row" if is_plain else "element"
        at = place_at(nest, indices, own, target.shape[dim], check, dim)
        others = [p for d, p in enumerate(nest.positions) if d != dim]
        value = nest.load(source, nest.positions)
        return target.selected(dim, at), others, value if alpha == 1 else value * alpha

    return Terms(source.shape, add)


def _index_put(given: dict[str, Any]) -> Terms:
    if not given["accumulate"]:
        raise Refusal("where two positions meet, the last one wins")
    x, indices, values = given["self"], given["indices"], given["values"]
    tensors = [i for i in indices if i is not None]
    dims = [d for d, i in enumerate(indices) if i is not None]
    if not dims or not x.shape:
        raise Refusal("no position is read from a tensor")
    wide = _broadcast([checked(i).shape for i in tensors])
    first = dims[0] if dims[-1] - dims[0] == len(dims) - 1 else 0
    rest = [size for d, size in enumerate(x.shape) if d not in dims]
    shape = (*rest[:first], *wide, *rest[first:])

    def add(nest: NestBuilder, target: Operand) -> tuple[Operand, Sequence[Index], Scalar]:
        part, others = subscripts(nest, target, indices, nest.positions, "subscript")
        return part, others, nest.load(values, nest.positions)

    return Terms(shape, add)


def _target_dimension(x: Operand, dim: int) -> int:
    if not x.shape:
        raise Refusal("a tensor without dimensions")
    return dim % len(x.shape)


def _broadcast(shapes: Sequence[Sequence[Index]]) -> list[Index]:
    """The common shape of tensors that broadcast."""
    rank = max(map(len, shapes))
    sizes = [index(1)] * rank
    for shape in shapes:
        for d, size in enumerate(shape, rank - len(shape)):
            if size.constant != 1:
                sizes[d] = size
    return sizes


ROWS: dict[Any, Scatter] = {
    aten.embedding_dense_backward.default: _embedding_backward,
    aten.scatter_add.default: _scatter_add,
    aten.index_add.default: _index_add,
    aten.index_put.default: _index_put,
    aten._unsafe_index_put.default: _index_put,
}
TABLE: dict[Any, Any] = {op: partial(lower_scatter, scatter) for op, scatter in ROWS.items()}
