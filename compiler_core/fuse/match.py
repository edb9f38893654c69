"""Where does the element that this load reads come from? Solves for the writer's position.

In: an access that writes (or, for siblings, reads) each element of a buffer once, and a load of the
same buffer in another nest. Out: the writer's position as expressions over the reader's axes.

The one idea: both offsets are mixed-radix numbers. Walking both from the smallest stride up, axes of
equal extent pair off, and an axis that covers several of the other side's is split at their border.
So a nest over one flat axis meets a nest over rows and columns without a division:

    writer  for i<64, j<768:  store b[i*768 + j]
    reader  for k<49152:      load b[k]             k splits into k_0<64, k_1<768;  i = k_0, j = k_1

Where that fails (slices, shifts, broadcasts of a part), `digits` divides instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler_core.fuse.accesses import Access
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.linear import estimate, exact_quotient, strides_of
from compiler_core.fuse.mask_ranges import ranges_where
from compiler_core.ir.index import Index, Sym, index, simplify
from compiler_core.ir.loop import Axis, Statement

__all__ = ["Match", "digits", "match"]


@dataclass(frozen=True, slots=True)
class Match:
    """`at` maps each writer axis to its position, over the reader's axes after `splits`.

    `splits` maps a reader axis to the axes that replace it, outermost first. `covers` are the
    reader's axes (after the splits) that the positions use, each once.
    """

    at: dict[str, Index]
    splits: dict[str, tuple[Axis, ...]]
    covers: frozenset[str]


@dataclass(slots=True)
class _Digit:
    """An axis as a digit of the offset: what of its extent is not matched yet, and where."""

    name: str
    extent: Index
    stride: Index


@dataclass(frozen=True, slots=True)
class _Pair:
    writer: str
    reader: str
    extent: Index


def match(writer: Access, reader: Access, names: Names) -> Match | None:
    """The writer's position for each position of the reader, one to one, or None."""
    mine, theirs = _digits_of(writer), _digits_of(reader)
    if mine is None or theirs is None or mine[1] is not theirs[1]:
        return None
    if len(mine[0]) < sum(axis.extent.constant != 1 for axis in writer.scope):
        return None  # an axis that the offset does not use: the writer has no one position
    pairs = _pair_off(mine[0], theirs[0])
    return None if pairs is None else _solve(pairs, writer, reader, names)


def _digits_of(access: Access) -> tuple[list[_Digit], Index] | None:
    """The axes from the smallest stride up, and the constant part of the offset."""
    extents = {axis.name: axis.extent for axis in access.scope}
    linear = strides_of(access.statement.offset, extents)
    if linear is None:
        return None
    strides, rest = linear
    digits = [_Digit(n, extents[n], s) for n, s in strides.items() if extents[n].constant != 1]
    return sorted(digits, key=lambda d: (estimate(d.stride), estimate(d.extent))), rest


def _pair_off(writer: list[_Digit], reader: list[_Digit]) -> list[_Pair] | None:
    pairs: list[_Pair] = []
    mine, theirs = iter(writer), iter(reader)
    a, b = next(mine, None), next(theirs, None)
    while a and b:
        if a.stride is not b.stride:
            return None
        common = _common(a.extent, b.extent)
        if common is None:
            return None
        pairs.append(_Pair(a.name, b.name, common))
        a, b = _rest(a, common) or next(mine, None), _rest(b, common) or next(theirs, None)
    return None if a or b else pairs


def _common(a: Index, b: Index) -> Index | None:
    """The smaller extent, where it divides the larger one."""
    if a is b:
        return a
    if exact_quotient(a, b) is not None:
        return b
    return a if exact_quotient(b, a) is not None else None


def _rest(digit: _Digit, taken: Index) -> _Digit | None:
    if digit.extent is taken:
        return None
    left = exact_quotient(digit.extent, taken)
    assert left is not None, "the common extent divides both"
    return _Digit(digit.name, left, digit.stride * taken)


def _solve(pairs: list[_Pair], writer: Access, reader: Access, names: Names) -> Match:
    """Number the pieces of each axis and read the writer's axes off them."""
    pieces: dict[str, list[_Pair]] = {}
    for pair in pairs:
        pieces.setdefault(pair.reader, []).append(pair)
    axis_of: dict[tuple[str, str], Axis] = {}
    splits: dict[str, tuple[Axis, ...]] = {}
    for name, parts in pieces.items():
        whole = len(parts) == 1
        axes = [Axis(name if whole else names.fresh(name), part.extent) for part in parts]
        axis_of.update(((p.writer, name), axis) for p, axis in zip(parts, axes, strict=True))
        if not whole:
            splits[name] = tuple(reversed(axes))
    at = {axis.name: index(0) for axis in writer.scope}
    weight = {axis.name: index(1) for axis in writer.scope}
    for pair in pairs:
        digit = axis_of[pair.writer, pair.reader]
        at[pair.writer] = at[pair.writer] + Sym(digit.name) * weight[pair.writer]
        weight[pair.writer] = weight[pair.writer] * pair.extent
    return Match(at, splits, frozenset(axis.name for axis in axis_of.values()))


def digits(
    writer: Access, reader: Access, known: Mapping[str, Statement]
) -> dict[str, Index] | None:
    """The writer's position by division, where the writer's offsets are dense: 0, 1, 2, …

    Position k is (offset // stride_k) % extent_k; the outermost needs no remainder. Under a mask,
    which `known` defines, the position is right where the mask holds.
    """
    mine = _digits_of(writer)
    if mine is None or not _is_dense(mine[0]) or mine[1].constant != 0:
        return None
    if len(mine[0]) < sum(axis.extent.constant != 1 for axis in writer.scope):
        return None
    ranges = ranges_where(getattr(reader.statement, "mask", None), reader.scope, known)
    at = {axis.name: index(0) for axis in writer.scope}
    for digit in mine[0]:
        position = reader.statement.offset // digit.stride
        if digit is not mine[0][-1]:
            position = position % digit.extent
        at[digit.name] = simplify(position, ranges)
    return at


def _is_dense(digits: Sequence[_Digit]) -> bool:
    step = index(1)
    for digit in digits:
        if digit.stride is not step or digit.extent.constant == 0:
            return False
        step = step * digit.extent
    return True
