"""Reductions down columns: a tile of neighbouring columns is worked on side by side.

In: a nest whose last axis runs along memory and whose reductions do not. Out: a loop over tiles of
that axis. Each statement group runs over the tile's columns in an inner loop; what a later group needs
of an earlier one is kept in an array with an element per column. So memory is read in the order in
which it lies, and the inner loop has neither a chain of additions nor a step.

Before: for each column, for each row: add.   After: for each tile, for each row, for each column: add.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compiler_core.codegen.cpp.blocks import position_in, write_block
from compiler_core.codegen.cpp.kernel_text import KernelText
from compiler_core.codegen.cpp.loops import FEW, extent_of, is_plain, loops, parallel, work_of
from compiler_core.codegen.cpp.reduction import Fold, fold_of
from compiler_core.codegen.statement_handles import statements_of
from compiler_core.ir.loop import (
    Axis,
    Block,
    Constant,
    Load,
    Loop,
    Place,
    Position,
    Reduce,
    Statement,
    Store,
    Value,
)  # fmt: skip

__all__ = ["write_columns"]

TILES = (256, 128, 64)  # columns of a tile: the widest that leaves a tile for each of `FEW` threads
ROW_PARTS = 16  # parts of the rows, where there are few tiles to share out


@dataclass(slots=True)
class Tile:
    """One tile: its axis, the C names of its bounds, and the arrays that hold values per column."""

    k: KernelText
    axis: Axis
    size: int
    start: str
    end: str
    values: dict[str, str] = field(default_factory=dict)  # IR name → its text at a column
    constants: dict[str, Constant | Position] = field(default_factory=dict)

    @property
    def at(self) -> str:
        """Index of the current column in an array."""
        return f"[{self.k.names[self.axis.name]} - {self.start}]"


def write_columns(k: KernelText) -> None:
    """The whole nest. Where there are too few tiles for the threads, the rows are shared out."""
    *outer, axis = k.nest.axes
    size, few = _tile_size(k.nest.axes)
    tile = Tile(k, axis, size, k.names.fresh("tile"), k.names.fresh("tile_end"))
    extent = k.index(axis.extent)
    work = extent_of(k.nest.axes) * work_of(k.nest.body)
    heads = () if few else parallel(k, work, collapse=len(outer) + 1)
    header = f"for (int64_t {tile.start} = 0; {tile.start} < {extent}; {tile.start} += {size}) {{"
    with loops(k, outer, *heads), k.writer.block(*(() if outer else heads), header):
        bound = k.writer.line(
            f"const int64_t {tile.end} = v_min_i64({tile.start} + {size}, {extent});"
        )
        inside = len(k.writer.lines)
        _write_groups(tile, few)
        bound.origins.update(*(line.origins for line in k.writer.lines[inside:]))


def _tile_size(axes: tuple[Axis, ...]) -> tuple[int, bool]:
    """Columns of a tile, and whether even the narrowest leaves too few tiles to share out."""
    *outer, last = axes
    for size in TILES:
        tiles = (extent_of(outer) * ((last.extent + size - 1) // size)).constant
        if tiles is None or tiles >= FEW:
            return min(size, last.extent.constant or size), False
    return min(TILES[0], last.extent.constant or TILES[0]), True


def _write_groups(tile: Tile, few: bool) -> None:
    """Runs of plain statements share a loop over the columns; reductions and loops have their own."""
    body = tile.k.nest.body
    groups: list[list[Statement]] = [[]]
    for statement in body:
        if isinstance(statement, Reduce | Loop):
            groups += [[statement], []]
        else:
            groups[-1].append(statement)
    for number, group in enumerate(groups):
        match group:
            case []:
                pass
            case [Reduce() as reduce]:
                _write_reduce(tile, reduce, few)
            case [Loop() as loop]:
                _write_loop(tile, loop, few)
            case _:
                later = _used_by(tuple(s for rest in groups[number + 1 :] for s in rest))
                _write_plain(tile, tuple(group), later)


def _write_plain(tile: Tile, group: Block, later: frozenset[str]) -> None:
    """Statements per column; those that later groups use are kept, constants are only repeated."""
    repeated = [s for s in group if _is_repeated(tile.k, s)]
    own = [s for s in group if not _is_repeated(tile.k, s)]
    tile.constants |= {s.name: s for s in repeated if isinstance(s, Constant | Position)}
    if not own:
        return
    kept = [s for s in own if isinstance(s, Value | Load | Position) and s.name in later]
    arrays = {s.name: tile.k.names.fresh(f"{s.name}_tile") for s in kept}
    for s in kept:
        tile.k.line(f"{s.dtype.c_compute} {arrays[s.name]}[{tile.size}];", s)
    with _columns(tile, tuple(own)):
        for statement in own:
            tile.k.write_plain(statement)
        for s in kept:
            tile.k.line(f"{arrays[s.name]}{tile.at} = {tile.k.names[s.name]};", s)
    tile.values |= {name: f"{array}{tile.at}" for name, array in arrays.items()}


def _is_repeated(k: KernelText, s: Statement) -> bool:
    """Is a statement as cheap to write again as to keep?"""
    return isinstance(s, Constant) or (
        isinstance(s, Position) and s.index.names.isdisjoint(k.types)
    )


@contextmanager
def _columns(tile: Tile, block: Block, *besides: str) -> Iterator[None]:
    """The loop over the tile's columns, with the values of earlier groups that the block uses.

    besides: names that are used behind the block, such as the value of a reduction.
    """
    k, name = tile.k, tile.k.names[tile.axis.name]
    heads = ["#pragma omp simd"] if is_plain(block) else []
    header = f"for (int64_t {name} = {tile.start}; {name} < {tile.end}; ++{name}) {{"
    with k.writer.block(*heads, header):
        used = _used_by(block) | set(besides)
        for statement in tile.constants.values():
            if statement.name in used:
                k.write_again(statement)
        for value, text in tile.values.items():
            if value in used:
                k.line(k.declaration(value, text), _maker(k, value))
        yield


def _write_loop(tile: Tile, loop: Loop, few: bool) -> None:
    k = tile.k
    work = extent_of(loop.axes) * work_of(loop.body) * tile.size
    heads = parallel(k, work, collapse=len(loop.axes)) if few else ()
    with loops(k, loop.axes, *heads, serves=loop), _columns(tile, loop.body):
        write_block(k, loop.body)


def _write_reduce(tile: Tile, reduce: Reduce, few: bool) -> None:
    """Accumulators per column, filled row by row; their results are kept per column."""
    k = tile.k
    fold = fold_of(reduce.kind, k.types[reduce.value], reduce.dtype)
    names = [k.names.fresh(f"{reduce.name}{a.suffix or '_tile'}") for a in fold.accumulators]
    work = extent_of(reduce.axes) * work_of(reduce.body) * tile.size
    pragma = parallel(k, work) if few else ()
    for accumulator, name in zip(fold.accumulators, names):
        k.line(f"{accumulator.c_type} {name}[{tile.size}];", reduce)
    if pragma and work.constant is not None:
        _write_parts(tile, reduce, fold, names, pragma)
    else:
        _start(tile, reduce, fold, names)
        _write_rows(tile, reduce, fold, names)
    tile.values[reduce.name] = fold.result.format(**_texts(tile, reduce, names))


def _write_rows(
    tile: Tile,
    reduce: Reduce,
    fold: Fold,
    names: list[str],
    bounds: tuple[str, str] | None = None,
    row: str = "",
) -> None:
    """For each row, for each column: take in."""
    k = tile.k
    texts = _texts(tile, reduce, names, row)
    inner = _columns(tile, reduce.body, reduce.value)
    with loops(k, reduce.axes, first=bounds, serves=reduce), inner:
        write_block(k, reduce.body)
        for text in fold.take:
            value, position = k.names[reduce.value], k.index(position_in(reduce.axes))
            k.line(text.format(value=value, position=position, **texts), reduce)


def _texts(tile: Tile, reduce: Reduce, names: list[str], row: str = "") -> dict[str, str]:
    """The accumulators' elements of the current column, by their key in the fold's texts."""
    texts = {f"a{number}": f"{name}{row}{tile.at}" for number, name in enumerate(names)}
    return texts | {"better": f"{tile.k.names[reduce.name]}_better"}


def _start(tile: Tile, reduce: Reduce, fold: Fold, names: list[str], row: str = "") -> None:
    k = tile.k
    with _columns(tile, ()):
        for accumulator, name in zip(fold.accumulators, names):
            k.line(f"{name}{row}{tile.at} = {accumulator.start};", reduce)


def _write_parts(
    tile: Tile, reduce: Reduce, fold: Fold, names: list[str], pragma: tuple[str, ...]
) -> None:
    """Parts of the rows, each by a thread into its own accumulators, merged in order."""
    k = tile.k
    part = k.names.fresh("part")
    arrays = [k.names.fresh(f"{name}_parts") for name in names]
    for accumulator, array in zip(fold.accumulators, arrays):
        k.line(f"{accumulator.c_type} {array}[{ROW_PARTS}][{tile.size}];", reduce)
    header = f"for (int64_t {part} = 0; {part} < {ROW_PARTS}; ++{part}) {{"
    row = f"[{part}]"
    with k.writer.block(*pragma, header):
        _start(tile, reduce, fold, arrays, row)
        extent = k.index(reduce.axes[0].extent)
        bounds = (f"{extent} * {part} / {ROW_PARTS}", f"{extent} * ({part} + 1) / {ROW_PARTS}")
        _write_rows(tile, reduce, fold, arrays, bounds, row)
    _start(tile, reduce, fold, names)
    with k.writer.block(header), _columns(tile, ()):
        texts = _texts(tile, reduce, names)
        texts |= {f"b{n}": f"{array}{row}{tile.at}" for n, array in enumerate(arrays)}
        for text in fold.merge:
            k.line(text.format(**texts), reduce)


def _maker(k: KernelText, name: str) -> Statement:
    """The statement that names a value."""
    for statement in statements_of(k.nest.body):
        if not isinstance(statement, Store | Loop) and statement.name == name:
            return statement
    raise KeyError(name)


def _used_by(block: Block) -> frozenset[str]:
    """Names of values that the statements of a block, and of blocks inside, refer to."""
    names: set[str] = set()
    for statement in statements_of(block):
        match statement:
            case Value(_, _, args):
                names |= set(args)
            case Load(_, _, offset, _, mask):
                names |= offset.names | ({mask} if mask else set())
            case Store(_, offset, value):
                names |= offset.names | {value}
            case Position(_, at):
                names |= at.names
            case Place(_, value):
                names.add(value)
            case Reduce():
                names.add(statement.value)
    return frozenset(names)
