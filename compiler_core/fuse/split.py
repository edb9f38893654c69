"""Splits a long reduction in two: partial results that many programs make, and their total.

In: a nest of the lowered program, for a GPU. Out: the nests that do the same; the nest itself where nothing is
long. Each reduction becomes a nest over positions and parts, which stores to a new buffer, and folds that
buffer where it stood. From there on they are nests like any other: what the parts read merges into them.

    nest for (): s = sum over r < 65536000: x = load a[r] yield x; store b[0] = s
    becomes
    nest for p < 4000: s_1 = sum over r < 16384: x = load a[16384*p + r] yield x; store parts[p] = s_1
    nest for ():       t: f64 = sum over p < 4000: y = load parts[p]; w = cast y yield w
                       s = cast t; store b[0] = s

Every result has one order of additions: no atomics. Totals of f32 are added in f64; there are few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler_core.fuse.accesses import written_buffers
from compiler_core.fuse.blocks import Renaming, defined, relabel_block
from compiler_core.fuse.coalesce import coalesce
from compiler_core.fuse.records import record_split
from compiler_core.fuse.split_parts import (
    Table,
    fresh_axes,
    parts_nest,
    table_over,
    total_of,
    type_of_parts,
)
from compiler_core.fuse.split_rules import Cut, Whole, cut_of, is_long
from compiler_core.fuse.workspace import Workspace
from compiler_core.ir.dtypes import DType
from compiler_core.ir.loop import Axis, Block, Load, Nest, Reduce, Store

__all__ = ["split_reductions"]


def split_reductions(work: Workspace, nest: Nest) -> tuple[Nest, ...]:
    """The nests that do what a nest of the lowered program does, in order.

    Leaves a "split" record for each reduction. New buffers are in `work.program` then.
    """
    if work.target.device != "cuda":
        return (nest,)
    if any(axis.extent.constant is None for s in _reductions(nest) for axis in s.axes[1:]):
        nest = coalesce(nest)  # one unknown length instead of several
    reductions = _reductions(nest)
    cuts = [cut_of(nest, s, work.names) for s in reductions]
    whole = next((cut for cut in cuts if isinstance(cut, Whole)), None)  # one nest stays one
    made: list[Nest] = []
    for s, cut in zip(reductions, cuts, strict=True):
        record_split(work, s, whole or cut)
        if whole is None and isinstance(cut, Cut):
            new, nest = _split(work, nest, s, cut, is_last=s is reductions[-1])
            made += new
    return (*made, *_split_again(work, nest, [] if whole else cuts[-1:]))


def _reductions(nest: Nest) -> list[Reduce]:
    return [s for s in nest.body if isinstance(s, Reduce)]


def _split_again(work: Workspace, nest: Nest, cuts: Sequence[Cut | Whole]) -> tuple[Nest, ...]:
    """A nest with a total, which is split in turn where it is over very many parts."""
    if any(isinstance(cut, Cut) and is_long(cut.parts) for cut in cuts):
        return split_reductions(work, nest)
    return (nest,)


def _split(
    work: Workspace, nest: Nest, s: Reduce, cut: Cut, is_last: bool
) -> tuple[list[Nest], Nest]:
    """The nests that make a reduction, and the nest that is left, which reads what they made."""
    axes = (*cut.outer, *nest.axes) if cut.strategy == "column" else (*nest.axes, *cut.outer)
    table = _new_table(work, axes, f"parts_{s.name}", type_of_parts(s, cut), nest)
    work.halved.update(s.origins)
    made = [parts_nest(nest, s, cut, table, work.names)]
    total = total_of(s, cut, table, work.names)
    if not is_last:
        own, total = _stored(work, nest, s, total)
        made += _split_again(work, own, [cut])
    body = tuple(new for old in nest.body for new in (total if old is s else (old,)))
    return made, replace(nest, body=body)


def _stored(work: Workspace, nest: Nest, s: Reduce, total: Block) -> tuple[Nest, Block]:
    """A nest that stores a total, and the load of it for those that need it before the nest can go on."""
    table = _new_table(work, nest.axes, f"total_{s.name}", s.dtype, nest)
    axes = fresh_axes(nest.axes, work.names)
    names = {old.name: new.name for old, new in zip(nest.axes, axes, strict=True)}
    names |= {name: work.names.fresh(name) for inner in total if (name := defined(inner))}
    there, here = table.offset([axis.name for axis in axes]), table.offset([*map(_name, nest.axes)])
    store = Store(table.buffer.name, there, names[s.name], s.origins)
    body = (*relabel_block(total, Renaming(names)), store)
    load = Load(s.name, table.buffer.name, here, s.dtype, origins=s.origins)
    return Nest(work.names.fresh(nest.name), axes, body, nest.origins), (load,)


def _name(axis: Axis) -> str:
    return axis.name


def _new_table(
    work: Workspace, axes: tuple[Axis, ...], name: str, dtype: DType, nest: Nest
) -> Table:
    """A table in the program, beside the buffer that the nest stores to."""
    like = work.buffer(written_buffers(nest)[0])
    table = table_over(axes, work.names.new(name), dtype, like)
    buffers = {**work.program.buffers, table.buffer.name: table.buffer}
    work.program = replace(work.program, buffers=buffers)
    return table
