"""Statements with positions from memory: what stands outside the innermost loop, and sums in memory.

In: a nest without inner loops that checks positions, or adds at them. Out: its loops. Two ideas:

What does not change along the last axis (the position, its check) is written before the innermost loop,
so that this one walks memory like any other.

Sums at equal positions are never shared out: threads take axes along which no two positions of a nest
can meet, and every element's terms are added in the same order, however many threads there are.

    for i: at = h[i]; for j: y[at*768 + j] += x[i*768 + j]        threads take stretches of j
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_core.codegen.cpp.blocks import write_block
from compiler_core.codegen.cpp.kernel_text import KernelText
from compiler_core.codegen.cpp.loops import extent_of, loops, parallel, work_of
from compiler_core.codegen.statement_handles import statements_of
from compiler_core.ir.index import Index, axis_ranges, index, is_at_least
from compiler_core.ir.loop import Axis, Block, Load, Nest, Place, Position, Statement, Store, Value

__all__ = ["adds", "checks", "disjoint_axes", "write_checked", "write_sums"]

STRETCH = 64  # elements of the last axis that a thread takes at once


def checks(block: Block) -> bool:
    """Does a block check positions?"""
    return any(isinstance(s, Place) for s in statements_of(block))


def adds(block: Block) -> bool:
    """Does a block add to memory?"""
    return any(isinstance(s, Store) and s.adds for s in statements_of(block))


def write_checked(k: KernelText) -> None:
    """A nest that checks positions and stores each element once."""
    axes, body = k.nest.axes, k.nest.body
    outside, inside = _outside(body, axes[-1])
    heads = parallel(k, extent_of(axes) * work_of(body), collapse=max(1, len(axes) - 1))
    _write_nested(k, axes, heads, outside, inside, "" if checks(inside) else "#pragma omp simd")


def write_sums(k: KernelText) -> None:
    """A nest that adds to memory."""
    axes, body = k.nest.axes, k.nest.body
    if not axes:
        write_block(k, body)
        return
    free = disjoint_axes(k.nest)
    outside, inside = _outside(body, axes[-1])
    simd = "#pragma omp simd" if axes[-1].name in free and not checks(inside) else ""
    heads = parallel(k, extent_of(axes) * work_of(body))
    if not heads or not free:
        _write_nested(k, axes, (), outside, inside, simd)
    elif axes[0].name in free:
        _write_nested(k, axes, heads, outside, inside, simd)
    elif axes[-1].name in free:
        _write_stretches(k, heads, outside, inside, simd)
    else:
        first = next(axis for axis in axes if axis.name in free)
        _write_nested(
            k, (first, *(a for a in axes if a is not first)), heads, outside, inside, simd
        )


def _write_nested(
    k: KernelText, axes: Sequence[Axis], heads: tuple[str, ...], outside: Block, inside: Block, simd: str
) -> None:  # fmt: skip
    *outer, last = axes
    with loops(k, outer, *heads):
        write_block(k, outside)
        with loops(k, (last,), *(() if outer else heads), inner=simd):
            write_block(k, inside)


def _write_stretches(
    k: KernelText, heads: tuple[str, ...], outside: Block, inside: Block, simd: str
) -> None:
    """Threads take stretches of the last axis, and all positions of the others for each."""
    *outer, last = k.nest.axes
    start, end, extent = (
        k.names.fresh("stretch"),
        k.names.fresh("stretch_end"),
        k.index(last.extent),
    )
    header = f"for (int64_t {start} = 0; {start} < {extent}; {start} += {STRETCH}) {{"
    everything = k.handles.within(k.nest.body)
    with k.writer.block(*heads, header):
        k.writer.line(
            f"const int64_t {end} = v_min_i64({start} + {STRETCH}, {extent});", everything
        )
        with loops(k, outer):
            write_block(k, outside)
            with loops(k, (last,), inner=simd, first=(start, end)):
                write_block(k, inside)


def _outside(body: Block, last: Axis) -> tuple[Block, Block]:
    """What may stand before the loop over the last axis, and the rest. Nothing if that may not run."""
    if (last.extent.constant or 0) < 1:
        return (), body
    varying = {last.name}
    outside: list[Statement] = []
    inside: list[Statement] = []
    for s in body:
        if isinstance(s, Store) or not varying.isdisjoint(_used(s)):
            inside.append(s)
            varying |= set() if isinstance(s, Store) else {s.name}  # type: ignore[union-attr]
        else:
            outside.append(s)
    return tuple(outside), tuple(inside)


def _used(s: Statement) -> frozenset[str]:
    match s:
        case Value(args=args):
            return frozenset(args)
        case Load(offset=offset, mask=mask):
            return offset.names | ({mask} if mask else set())
        case Position(index=at):
            return at.names
        case Place(value=value):
            return frozenset({value})
    return frozenset()


# ------------------------------------------------------------------------------------ who meets


def disjoint_axes(nest: Nest) -> frozenset[str]:
    """Axes along which no two positions of the nest add to one element, as far as is proven.

    The offset is a number whose digits are axes and places. Where each digit's stride exceeds all that
    the smaller ones reach, equal offsets have equal digits.
    """
    found = [_digits(s, nest) for s in nest.body if isinstance(s, Store) and s.adds]
    return frozenset.intersection(*found) if found else frozenset()


def _digits(store: Store, nest: Nest) -> frozenset[str]:
    places = [Axis(s.name, s.extent) for s in nest.body if isinstance(s, Place)]
    extents: dict[str, Index] = {a.name: a.extent for a in (*nest.axes, *places)}
    ranges = axis_ranges(
        (*nest.axes, *places)
    )  # where an addition is done, its place has an extent
    digits: list[tuple[Index, Index, str]] = []
    rest = store.offset
    for name in sorted(rest.names & set(extents)):
        split = rest.split(name)
        if split is None:
            return frozenset()
        stride, rest = split
        digits.append((stride, extents[name], name))
    reach, names = index(0), {axis.name for axis in nest.axes}
    while digits:
        following = next((d for d in digits if is_at_least(d[0], reach + 1, ranges)
                          and all(is_at_least(o[0], d[0], ranges) for o in digits)), None)  # fmt: skip
        if following is None:
            return frozenset()
        digits.remove(following)
        reach = reach + following[0] * (following[1] - 1)
    return frozenset(names & store.offset.names)
