"""The two halves of a split reduction: the nest of its partial results, and the statements that fold them.

In: a nest, one of its reductions, its `Cut`. Out: a buffer, a nest that fills it, a block that reads it. Statements
keep the origins of the reduction that they come from; nothing else makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from compiler_core.fuse.blocks import Renaming, defined, needed_for, relabel_block, used, walk
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.linear import product
from compiler_core.fuse.masked import masked
from compiler_core.fuse.split_rules import Cut
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import (
    Axis,
    Block,
    Buffer,
    Constant,
    Load,
    Nest,
    Position,
    Reduce,
    Store,
    Value,
)  # fmt: skip

__all__ = [
    "Table",
    "fresh_axes",
    "neutral",
    "parts_nest",
    "table_over",
    "total_of",
    "type_of_parts",
]

_F32, _F64, _BOOL = DTYPES["f32"], DTYPES["f64"], DTYPES["bool"]


@dataclass(frozen=True, slots=True)
class Table:
    """A new buffer with an element for each position of some axes, in row-major order."""

    buffer: Buffer
    axes: tuple[Axis, ...]

    def offset(self, names: Sequence[str]) -> Index:
        """Where the element at the axes of these names is."""
        return _row_major(names, [axis.extent for axis in self.axes])


def table_over(axes: tuple[Axis, ...], name: str, dtype: DType, like: Buffer) -> Table:
    """A table of values of `dtype` on the device of `like`."""
    extents = [axis.extent for axis in axes]
    strides = tuple(product(extents[n + 1 :]) for n in range(len(extents)))
    shape = tuple(extents)
    return Table(Buffer(name, dtype, shape, strides, "temp", like.device, like.origins), axes)


def fresh_axes(axes: Sequence[Axis], names: Names) -> tuple[Axis, ...]:
    return tuple(Axis(names.fresh(axis.name), axis.extent) for axis in axes)


def parts_nest(nest: Nest, s: Reduce, cut: Cut, table: Table, names: Names) -> Nest:
    """A position for each element of the table: the reduction of its part.

    Statements of the nest that the reduction's body needs are computed again at each part.
    """
    outside = needed_for(set(used(s)), nest.body)
    copied = [*outside, *s.body]
    mapping = {n: names.fresh(n) for inner in walk(tuple(copied)) if (n := defined(inner))}
    mapping |= {axis.name: names.fresh(axis.name) for axis in nest.axes}
    renamed = Renaming(mapping, cut.at)
    body, value = relabel_block(s.body, renamed), renamed.value(s.value)
    if cut.limit is not None:
        body, value = _within(body, value, s, cut.limit, names)
    body, value = _in_type(table.buffer.dtype, body, value, s, names)
    part = names.fresh(s.name)
    fold = Reduce(part, s.kind, cut.inner, body, value, table.buffer.dtype, s.origins)
    store = Store(table.buffer.name, table.offset(_positions(table, mapping)), part, s.origins)
    block = (*relabel_block(tuple(outside), renamed), fold, store)
    return Nest(names.fresh(nest.name), renamed.axes(table.axes), block, nest.origins)


def type_of_parts(s: Reduce, cut: Cut) -> DType:
    """f64 for sums of f32 along memory: one tile adds up thousands, and adding is not what takes time there."""
    return _F64 if s.kind == "sum" and s.dtype is _F32 and cut.strategy == "row" else s.dtype


def _in_type(dtype: DType, body: Block, value: str, s: Reduce, names: Names) -> tuple[Block, str]:
    """The body with what it yields in the type that is folded."""
    if dtype is s.dtype:
        return body, value
    wide = names.new(f"{s.name}_wide")
    return (*body, Value(wide, "cast", (value,), dtype, s.origins)), wide


def _positions(table: Table, mapping: dict[str, str]) -> list[str]:
    return [mapping.get(axis.name, axis.name) for axis in table.axes]


def _within(
    body: Block, value: str, s: Reduce, limit: tuple[Index, Index], names: Names
) -> tuple[Block, str]:
    """The body where the position is below the length; elsewhere it yields the neutral element."""
    position, extent = limit
    n = extent.constant
    counted = DTYPES["i32" if n is not None and n < 1 << 30 else "i64"]
    place, end, inside = (names.new(f"{s.name}_{word}") for word in ("place", "end", "inside"))
    condition: Block = (
        Position(place, position, counted, s.origins),
        Position(end, extent, counted, s.origins),
        Value(inside, "lt", (place, end), _BOOL, s.origins),
    )
    nothing = neutral(s.kind, s.dtype)
    (*before, last) = body
    if isinstance(last, Load) and last.name == value and last.mask is None:
        read = replace(last, mask=inside, other=nothing)
        return (*condition, *masked(tuple(before), inside, s.origins, names), read), value
    other, chosen = names.new(f"{s.name}_none"), names.new(f"{s.name}_valid")
    ending: Block = (
        Constant(other, nothing, s.dtype, s.origins),
        Value(chosen, "where", (inside, value, other), s.dtype, s.origins),
    )
    return (*condition, *masked(body, inside, s.origins, names), *ending), chosen


def neutral(kind: str, dtype: DType) -> float | int | bool:
    """What changes nothing in a reduction of this kind."""
    if kind in ("sum", "prod"):
        one: float | int = 1 if kind == "prod" else 0
        return float(one) if dtype.is_float else one
    if dtype.kind == "bool":
        return kind in ("all", "min", "argmin")
    is_low = kind in ("max", "argmax")
    if dtype.is_float:
        return float("-inf") if is_low else float("inf")
    info = torch.iinfo(dtype.torch)
    return info.min if is_low else info.max


def total_of(s: Reduce, cut: Cut, table: Table, names: Names) -> Block:
    """The statements that fold the parts, under the reduction's name; sums of f32 in f64."""
    axes = fresh_axes(cut.outer, names)
    mapping = {old.name: new.name for old, new in zip(cut.outer, axes, strict=True)}
    offset = table.offset(_positions(table, mapping))
    dtype = table.buffer.dtype
    part = Load(names.new(f"{s.name}_part"), table.buffer.name, offset, dtype, origins=s.origins)
    if s.kind != "sum" or s.dtype is not _F32:
        return (replace(s, axes=axes, body=(part,), value=part.name),)
    body, value = (
        ((part,), part.name) if dtype is _F64 else _in_type(_F64, (part,), part.name, s, names)
    )
    total = names.new(f"{s.name}_total")
    return (
        Reduce(total, "sum", axes, body, value, _F64, s.origins),
        Value(s.name, "cast", (total,), _F32, s.origins),
    )


def _row_major(names: Sequence[str], extents: Sequence[Index]) -> Index:
    offset = index(0)
    for name, extent in zip(names, extents, strict=True):
        offset = offset * extent + Sym(name)
    return offset
