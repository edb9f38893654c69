"""Gives a nest as few axes as its accesses allow, the innermost along memory.

In: a nest. Out: the same computation. Three steps: axes of extent 1 go; the outer axes and those of
loops are ordered by the strides of what they touch; neighbours that together walk a contiguous
stretch in every access become one axis.

    for i<64, j<768: x = load a[i*768 + j]; store b[i*768 + j] = x
    becomes
    for k<49152: x = load a[k]; store b[k] = x

A reduction keeps the order of its axes: argmax counts positions, and sums keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from compiler_core.fuse.accesses import accesses
from compiler_core.fuse.blocks import Renaming, expressions, relabel_block, walk
from compiler_core.fuse.linear import estimate, steps
from compiler_core.fuse.reshape import inner_axes, map_axes
from compiler_core.ir.index import Index, Sym, axis_ranges, index, simplify
from compiler_core.ir.loop import Axis, Block, Load, Loop, Nest, Position, Reduce, Statement, Store

__all__ = ["coalesce"]


def coalesce(nest: Nest) -> Nest:
    """The nest over fewer, better ordered axes."""
    nest = _ordered(_without_single_steps(nest))
    for axes in [nest.axes, *_inner_spaces(nest.body)]:
        for outer, inner in zip(reversed(axes[:-1]), reversed(axes[1:]), strict=True):
            nest = _joined(nest, outer.name, inner.name)
    return _simplified(nest)


def _inner_spaces(block: Block) -> list[tuple[Axis, ...]]:
    return [s.axes for s in walk(block) if isinstance(s, Reduce | Loop)]


def _without_single_steps(nest: Nest) -> Nest:
    """Axes of extent 1 are the position 0; so are all beside an outer axis without positions."""
    single = {a.name for a in (*nest.axes, *inner_axes(nest.body)) if a.extent.constant == 1}
    empty = next((axis for axis in nest.axes if axis.extent.constant == 0), None)
    if empty is not None:
        single |= {axis.name for axis in nest.axes if axis is not empty}
    if not single:
        return nest
    body = relabel_block(nest.body, Renaming({}, dict.fromkeys(single, index(0))))

    def drop(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(axis for axis in axes if axis.name not in single)

    return replace(nest, axes=drop(nest.axes), body=_without_empty_loops(map_axes(body, drop)))


def _without_empty_loops(block: Block) -> Block:
    """A loop without axes is its body."""
    result: list[Statement] = []
    for s in block:
        result += s.body if isinstance(s, Loop) and not s.axes else (s,)
    return tuple(result)


# ---------------------------------------------------------------------------------- order


def _ordered(nest: Nest) -> Nest:
    """Outer axes, and those of loops, by falling stride."""
    nest = replace(nest, axes=_by_stride(nest, nest.axes))
    body = tuple(
        replace(s, axes=_by_stride(nest, s.axes)) if isinstance(s, Loop) else s for s in nest.body
    )
    return replace(nest, body=body)


def _by_stride(nest: Nest, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The order of the access that most other accesses agree with, by the elements they touch."""
    if len(axes) < 2:
        return axes
    votes: dict[tuple[int, ...], int] = {}
    for access in accesses(nest):
        order = _order_of(access.statement.offset, axes)
        if order is not None and set(axes) <= set(access.scope):
            weight = steps(access.scope) * (1 + isinstance(access.statement, Store))
            votes[order] = votes.get(order, 0) + weight
    if not votes:
        return axes
    best = min(votes, key=lambda order: (-votes[order], order))
    return tuple(axes[number] for number in best)


def _order_of(offset: Index, axes: Sequence[Axis]) -> tuple[int, ...] | None:
    """The axes' numbers by falling stride; None where an axis has no stride here."""
    strides: list[int] = []
    for axis in axes:
        parts = offset.split(axis.name) if axis.name in offset.names else None
        if parts is None:
            return None
        strides.append(abs(estimate(parts[0])))
    return tuple(sorted(range(len(axes)), key=lambda number: (-strides[number], number)))


# ---------------------------------------------------------------------------------- joining


def _joined(nest: Nest, outer: str, inner: str) -> Nest:
    """The nest with the neighbours outer, inner as one axis named `outer`, where all accesses allow."""
    extents = {a.name: a.extent for a in (*nest.axes, *inner_axes(nest.body))}
    if outer not in extents or inner not in extents:
        return nest
    step = extents[inner]
    at = {
        inner: Sym(outer) - Sym(_OLD) * step,
        outer: Sym(_OLD),
    }  # one at a time: `outer` is reused
    moved = _substituted(nest.body, at, {outer, inner})
    if moved is None:
        return nest

    def join(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        joined = [Axis(outer, a.extent * step) if a.name == outer else a for a in axes]
        return tuple(axis for axis in joined if axis.name != inner)

    return replace(nest, axes=join(nest.axes), body=map_axes(moved, join))


_OLD = "the outer axis before joining"


def _substituted(block: Block, at: dict[str, Index], names: set[str]) -> Block | None:
    """The block over the joined position; None where an expression needs the two apart."""
    for s in walk(block):
        for e in expressions(s):
            if not e.names.isdisjoint(names) and _OLD in e.substitute(at).names:
                return None
    return relabel_block(block, Renaming({}, at))


# ---------------------------------------------------------------------------------- simplifying


def _simplified(nest: Nest) -> Nest:
    """Quotients and remainders that the extents of the axes decide are gone."""
    axes = (*nest.axes, *inner_axes(nest.body))
    ranges = axis_ranges(axes)
    return replace(nest, body=_mapped(nest.body, lambda e: simplify(e, ranges)))


def _mapped(block: Block, change: Callable[[Index], Index]) -> Block:
    return tuple(_with_index(s, change) for s in block)


def _with_index(s: Statement, change: Callable[[Index], Index]) -> Statement:
    match s:
        case Load(offset=e) | Store(offset=e):
            return s if (new := change(e)) is e else replace(s, offset=new)
        case Position(index=e):
            return s if (new := change(e)) is e else replace(s, index=new)
        case Reduce() | Loop():
            return replace(s, body=_mapped(s.body, change))
    return s
