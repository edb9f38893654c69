"""Is a reduction split, and where: the numbers, and how axes are cut.

In: a nest and one of its reductions, for a GPU. Out: `Cut`, or `Whole` with the reason. A reduction is split when
it is long and the nest has few positions: one program would then read for a long time what a thousand programs
read at once. The axes are cut from the outside in, whole ones first, so that a part is a stretch of memory, and
rows stay rows: a softmax that is summed up merges with the parts of the sum.

    sum over r0 < 8192, r1 < 4096        parts q < 8192; sum over r1 < 4096
    sum over r < 100000000               parts p < 6250; sum over r < 16000, at p*16000 + r
    sum over r < s0                      parts p < (s0 + 16383)//16384; …, where p*16384 + r < s0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler_core.fuse.coalesce import coalesce
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.limits import COLUMN_IN_CACHE, ROW_IN_CACHE
from compiler_core.fuse.linear import estimate, product, steps
from compiler_core.fuse.strategy import strategy_of
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import Axis, Loop, Nest, Place, Reduce

__all__ = ["Cut", "Whole", "cut_of", "is_long"]

_ENOUGH = 264  # programs: two for each multiprocessor of an H100 or H200
_WANTED = 1056  # programs of a split: as many as these run at a time, with 8 warps each
_COLUMNS = 64  # that a program reads side by side
_PART = {"row": (2048, 16384), "column": (64, 1024)}  # fewest and most elements of a part
_UNKNOWN_PART = {"row": 16384, "column": 256}


@dataclass(frozen=True, slots=True)
class Whole:
    """The reduction stays as it is."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cut:
    """`outer`: the axes of the parts. `inner`: those of one part. `at`: the old axes over both.

    `limit`: where the last part reaches beyond the length, the cut axis's position and its extent.
    """

    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    at: dict[str, Index]
    limit: tuple[Index, Index] | None
    strategy: str
    reason: str

    @property
    def parts(self) -> Index:
        return product(axis.extent for axis in self.outer)


def is_long(length: Index) -> bool:
    """Whether so many elements of a row are worth being split once more. Unknown lengths are not."""
    return length.constant is not None and length.constant > ROW_IN_CACHE


def cut_of(nest: Nest, s: Reduce, names: Names) -> Cut | Whole:
    """How a reduction of a nest is cut, or why it is not."""
    strategy = strategy_of(coalesce(nest))
    positions = steps(nest.axes)
    programs = -(-positions // _COLUMNS) if strategy == "column" else positions
    if programs >= _ENOUGH:
        return Whole(f"{programs} programs keep the machine busy")
    length = product(axis.extent for axis in s.axes)
    few = COLUMN_IN_CACHE if strategy == "column" else ROW_IN_CACHE
    is_open = length.constant is None and positions == 1
    if estimate(length) <= few and not is_open:
        return Whole(f"{_about(length)} elements are few enough for one program")
    if any(isinstance(inner, Reduce | Loop) for inner in s.body):
        return Whole("there are loops inside it")
    if any(isinstance(inner, Place) for inner in s.body):
        return Whole(
            "a part that reaches beyond the length would check positions that nobody reads"
        )
    if s.kind.startswith("arg"):
        return Whole("a position belongs to a value of its own")
    if s.dtype.is_float and s.dtype.bytes < 4 and s.kind in ("sum", "prod"):
        return Whole(f"its partial results would be rounded to {s.dtype}")
    size = _part_size(strategy, programs, length)
    shown = "any number of" if is_open else _about(length)
    reason = f"{shown} elements for each of {programs} program{'s' * (programs != 1)}"
    return _cut(s.axes, size, strategy, programs, reason, names)


def _about(length: Index) -> str:
    return str(length.constant) if length.constant is not None else f"about {estimate(length)}"


def _part_size(strategy: str, programs: int, length: Index) -> int:
    """Elements of a part: a power of 2 that gives as many programs as are wanted."""
    if length.constant is None:
        return _UNKNOWN_PART[strategy]
    least, most = _PART[strategy]
    wanted = 1 << max(-(-length.constant * programs // _WANTED) - 1, 0).bit_length()
    return min(max(wanted, least), most)


def _cut(
    axes: Sequence[Axis], most: int, strategy: str, programs: int, reason: str, names: Names
) -> Cut:
    """Whole axes go outside while what they leave is large; the next one is cut.

    Once they give enough programs, a part may be as large as any.
    """
    outer: list[Axis] = []
    inner = [Axis(names.fresh(axis.name), axis.extent) for axis in axes]
    at: dict[str, Index] = {old.name: Sym(new.name) for old, new in zip(axes, inner, strict=True)}
    limit = None
    while inner and _may_exceed(inner, most):
        first, rest = inner[0], product(axis.extent for axis in inner[1:])
        if len(inner) > 1 and 8 * estimate(rest) >= most:
            outer.append(inner.pop(0))
            if 2 * programs * steps(outer) >= _ENOUGH:
                most = max(most, _PART[strategy][1])
            continue
        size = _chunk(first.extent, max(1, most // estimate(rest)))
        old = axes[len(axes) - len(inner)].name
        part = Axis(names.fresh(old), (first.extent + size - 1) // size)
        outer.append(part)
        inner[0] = Axis(first.name, index(size))
        at[old] = Sym(part.name) * size + Sym(first.name)
        if first.extent.constant is None or first.extent.constant % size:
            limit = at[old], first.extent
        break
    return Cut(tuple(outer), tuple(inner), at, limit, strategy, reason)


def _may_exceed(axes: Sequence[Axis], most: int) -> bool:
    length = product(axis.extent for axis in axes)
    return length.constant is None or length.constant > most


def _chunk(extent: Index, most: int) -> int:
    """The largest divisor not far below `most`, best one that keeps 16 bytes together; else `most`."""
    n = extent.constant
    if n is None:
        return most
    exact = [size for size in range(most, most * 3 // 4, -1) if n % size == 0]
    aligned = [size for size in exact if size % 4 == 0]
    return next(iter(aligned or exact), most)
