"""Operators that put elements elsewhere: cat, pad, flip, roll, repeat, slice and select scatter, triangles.

In: a node whose result at a position is one element of one operand, or a number. Out: one nest with
masked loads: a load reads only where its mask holds, so offsets outside of the buffer do no harm.
Positions that lie in a tensor themselves are in `gathers.py` and `scatters.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType, stored_as
from compiler_core.ir.index import Index, index, maximum
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder, fitting
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.scalars import I64, Scalar, apply, cast, where

__all__ = ["TABLE", "lower_moved"]

aten = torch.ops.aten

# more inputs than this, and comparing positions costs more than copying
_CAT_LIMIT = 8

Move: TypeAlias = Callable[[NestBuilder, dict[str, Any], DType], Scalar]


def lower_moved(move: Move, env: Environment, node: fx.Node) -> Operand:
    """One nest over the result's positions. Raises Refusal for types that nothing loads."""
    fake = node.meta["val"]
    dtype = stored_as(fake.dtype)
    if dtype.name not in DTYPES:
        raise Refusal(f"no kernel moves {dtype}")
    with env.nest(node, indices_of(fake.shape)) as nest:
        return env.store(nest, node, move(nest, env.arguments(node), dtype))


def _dimension(dim: int, rank: int) -> int:
    return dim % rank if rank else 0


def _replaced(positions: Sequence[Index], dim: int, to: Index) -> list[Index]:
    return [to if d == dim else p for d, p in enumerate(positions)]


def _not_negative(nest: NestBuilder, place: Index) -> Scalar:
    return nest.position(place, I64) >= 0


def _negative(nest: NestBuilder, place: Index) -> Scalar:
    return nest.position(place, I64) < 0


def _zero(nest: NestBuilder, place: Index) -> Scalar:
    return apply("eq", nest.position(place, I64), 0)


def _all(conditions: Sequence[Scalar]) -> Scalar | None:
    """All of them; None for no condition."""
    return reduce(operator.and_, conditions) if conditions else None


# --------------------------------------------------------------------------------- joining, padding


def _cat(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    """Each input is read where the position along `dim` lies in its part."""
    tensors = [t for t in given["tensors"] if not _is_legacy_empty(t)]
    return _joined(nest, tensors, _dimension(given["dim"], len(nest.positions)), dtype)


def _is_legacy_empty(operand: Operand) -> bool:
    """Eager's cat skips one-dimensional inputs without elements, whatever the others' rank."""
    return [size.constant for size in operand.shape] == [0]


def _stack(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    dim = _dimension(given["dim"], len(nest.positions))
    return _joined(nest, [_unsqueezed(t, dim) for t in given["tensors"]], dim, dtype)


def _unsqueezed(operand: Operand, dim: int) -> Operand:
    view = operand.view
    shape = (*view.shape[:dim], index(1), *view.shape[dim:])
    strides = (*view.strides[:dim], index(0), *view.strides[dim:])
    return replace(operand, view=replace(view, shape=shape, strides=strides))


def _joined(nest: NestBuilder, tensors: Sequence[Operand], dim: int, dtype: DType) -> Scalar:
    if len(tensors) > _CAT_LIMIT:
        raise Refusal(f"joining {len(tensors)} inputs is a plain copy")
    place, start = nest.positions[dim], index(0)
    elements: list[Scalar] = []
    ends: list[
        Scalar
    ] = []  # whether the position lies before the end of part k; the last needs none
    for number, tensor in enumerate(tensors):
        bounds = [_not_negative(nest, place - start)] if number else []
        end = start + tensor.shape[dim]
        if number < len(tensors) - 1:
            ends.append(_negative(nest, place - end))
            bounds.append(ends[-1])
        at = _replaced(nest.positions, dim, place - start)
        elements.append(cast(nest.load(tensor, at, _all(bounds)), dtype))
        start = end
    value = elements.pop()
    for before, element in zip(reversed(ends), reversed(elements), strict=True):
        value = where(before, element, value)
    return value


def _pad(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    """`pad` lists (before, after) from the last dimension on; negative amounts cut."""
    x, pad = given["self"], given["pad"]
    positions, bounds = list(nest.positions), []
    for number in range(len(pad) // 2):
        dim = len(positions) - 1 - number
        before, after = index(pad[2 * number]), index(pad[2 * number + 1])
        place = positions[dim] = positions[dim] - before
        bounds += [_not_negative(nest, place)] if _may_pad(before) else []
        bounds += [_negative(nest, place - x.shape[dim])] if _may_pad(after) else []
    mask = _all(bounds)
    return nest.load(x, positions, mask, _plain(given["value"], dtype) if mask else 0)


def _may_pad(amount: Index) -> bool:
    return amount.constant is None or amount.constant > 0


def _plain(value: Any, dtype: DType) -> float | int | bool:
    """A padding value as the element type holds it."""
    if isinstance(value, Index):
        raise Refusal("the padding value is a size")
    return fitting(value, dtype)


# --------------------------------------------------------------------------------- permuting


def _flip(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    x, positions = given["self"], list(nest.positions)
    for dim in {_dimension(d, len(positions)) for d in given["dims"]} if positions else ():
        positions[dim] = x.shape[dim] - 1 - positions[dim]
    return nest.load(x, positions)


def _roll(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    x, positions = given["self"], list(nest.positions)
    if not given["dims"]:
        raise Refusal("rolls the flattened tensor")
    for shift, d in zip(given["shifts"], given["dims"], strict=True):
        dim = _dimension(d, len(positions))
        positions[dim] = (positions[dim] - shift) % x.shape[dim]
    return nest.load(x, positions)


def _repeat(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    x = given["self"]
    inner = nest.positions[len(nest.positions) - len(x.shape) :]
    return nest.load(x, [p % n for p, n in zip(inner, x.shape, strict=True)])


# --------------------------------------------------------------------------------- parts


def _sliced(
    nest: NestBuilder, given: dict[str, Any], part: Operand, size: Index
) -> tuple[Scalar, list[Index]]:
    """Where a slice of the result is, and the position in `part` there."""
    dim = _dimension(given["dim"], len(nest.positions))
    start, step = index(given["start"] or 0), given["step"]
    if start.constant is not None and start.constant < 0:
        start = maximum(start + size, 0)
    distance = nest.positions[dim] - start
    place = distance // step
    bounds = [_not_negative(nest, distance), _negative(nest, place - part.shape[dim])]
    bounds += [_zero(nest, distance % step)] if step != 1 else []
    return reduce(operator.and_, bounds), _replaced(nest.positions, dim, place)


def _slice_scatter(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    x, part = given["self"], given["src"]
    dim = _dimension(given["dim"], len(nest.positions))
    mask, at = _sliced(nest, given, part, x.shape[dim])
    return where(mask, cast(nest.load(part, at, mask), dtype), nest.load(x, nest.positions))


def _slice_backward(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    part, sizes = given["grad_output"], given["input_sizes"]
    dim = _dimension(given["dim"], len(nest.positions))
    mask, at = _sliced(nest, given, part, index(sizes[dim]))
    return nest.load(part, at, mask)


def _selected(nest: NestBuilder, given: dict[str, Any], size: Index) -> tuple[Scalar, list[Index]]:
    """Where the selected index of a dimension is, and the position in the part without it."""
    dim, chosen = _dimension(given["dim"], len(nest.positions)), index(given["index"])
    if chosen.constant is not None and chosen.constant < 0:
        chosen = chosen + size
    mask = _zero(nest, nest.positions[dim] - chosen)
    return mask, [p for d, p in enumerate(nest.positions) if d != dim]


def _select_scatter(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    x, part = given["self"], given["src"]
    size = x.shape[_dimension(given["dim"], len(nest.positions))]
    mask, at = _selected(nest, given, size)
    return where(mask, cast(nest.load(part, at, mask), dtype), nest.load(x, nest.positions))


def _select_backward(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    sizes = given["input_sizes"]
    size = index(sizes[_dimension(given["dim"], len(nest.positions))])
    mask, at = _selected(nest, given, size)
    return nest.load(given["grad_output"], at, mask)


def _upper(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    row, column = nest.positions[-2:]
    mask = _not_negative(nest, column - row - given["diagonal"])
    return nest.load(given["self"], nest.positions, mask)


def _lower(nest: NestBuilder, given: dict[str, Any], dtype: DType) -> Scalar:
    row, column = nest.positions[-2:]
    mask = _not_negative(nest, row - column + given["diagonal"])
    return nest.load(given["self"], nest.positions, mask)


ROWS: dict[Any, Move] = {
    aten.cat.default: _cat,
    aten.stack.default: _stack,
    aten.constant_pad_nd.default: _pad,
    aten.flip.default: _flip,
    aten.roll.default: _roll,
    aten.repeat.default: _repeat,
    aten.slice_scatter.default: _slice_scatter,
    aten.slice_backward.default: _slice_backward,
    aten.select_scatter.default: _select_scatter,
    aten.select_backward.default: _select_backward,
    aten.triu.default: _upper,
    aten.tril.default: _lower,
}
TABLE: dict[Any, Any] = {op: partial(lower_moved, move) for op, move in ROWS.items()}
