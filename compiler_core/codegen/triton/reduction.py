"""Inner loops of a kernel: reductions, and loops that store.

In: the `Reduce` and `Loop` statements of a nest. Out: lines. Three ways, chosen by the plan:

    persistent   rindex = tl.arange(0, RBLOCK); one tile covers the length. What was loaded for one
                 reduction is still there for the next.
    looped       for rstart in range(0, length, RBLOCK): a tile of partial results, folded after the loop.
                 Neighbouring loops that do not need each other's results share one pass.
    one by one   for k in range(0, length): loops inside inner loops.

Every way folds in a fixed order: results do not change between runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from compiler_core.codegen.triton.casts import bracketed
from compiler_core.codegen.triton.folding import Folds
from compiler_core.codegen.triton.plan import InnerGroup, Plan, long_axes, product
from compiler_core.codegen.triton.positions import axis_lines, positions_used
from compiler_core.codegen.triton.runs import Inner, Run
from compiler_core.codegen.triton.statements import StatementWriter
from compiler_core.codegen.triton.tile import Scope, Tile, Variable
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import Axis, Block, Reduce, Statement
from compiler_core.provenance import Handle, union

__all__ = ["BlockWriter"]


class BlockWriter:
    """Writes blocks of statements. `numels`: the text of each group's length."""

    def __init__(self, writer: StatementWriter, plan: Plan, numels: dict[int, str]):
        self._writer, self._plan, self._numels = writer, plan, numels
        self._lines, self._folds = writer.lines, Folds(writer, bool(plan.xblock))
        self._inner: list[Inner] = []  # of the nest itself
        self._started: set[int] = set()  # persistent groups whose rindex is written

    def write(self, block: Block, scope: Scope) -> None:
        """The statements of the nest itself.

        A run of loops over tiles is held back while others may join it. What stands between them goes before it,
        or waits until it is written where it needs its results.
        """
        self._inner = [s for s in block if isinstance(s, Inner)]
        run = Run()
        for statement in block:
            if isinstance(statement, Inner) and self._plan.groups:
                if run.loops and not self._may_join(run, statement):
                    run = self._written(run, scope)
                run.loops.append(statement)
            elif not self._is_open(run):
                run = self._written(run, scope)
                self._inside(statement, scope)
            elif run.allows(statement):
                self._inside(statement, scope)
            else:
                run.waiting.append(statement)
        self._written(run, scope)

    def _written(self, run: Run, scope: Scope) -> Run:
        """Write a run and what waited for it; the next run, which is empty."""
        self._tiled(run.loops, scope)
        for statement in run.waiting:
            self._inside(statement, scope)
        return Run()

    def _is_open(self, run: Run) -> bool:
        """Whether another loop could still join."""
        group = self._plan.group_of(run.loops[0].axes) if run.loops else None
        return group is not None and not group.persistent

    def _inside(self, statement: Statement, scope: Scope) -> None:
        if isinstance(statement, Inner):
            self._one_by_one(statement, scope)
        else:
            self._writer.write(statement, scope)

    def _may_join(self, run: Run, new: Inner) -> bool:
        """Same length, and it may go before what waits and beside the other loops."""
        group = self._plan.group_of(new.axes)
        return (
            self._is_open(run)
            and group is self._plan.group_of(run.loops[0].axes)
            and run.allows(new)
        )

    # ------------------------------------------------------------------------------ tiles

    def _tiled(self, run: list[Inner], scope: Scope) -> None:
        if not run:
            return
        self._writer.phase += 1
        group = self._plan.group_of(run[0].axes)
        assert group is not None
        if group.persistent:
            self._persistent(run[0], group, scope)
        else:
            self._looped(run, group, scope)

    def _persistent(self, statement: Inner, group: InnerGroup, scope: Scope) -> None:
        if group.number not in self._started:
            self._started.add(group.number)
            self._tile_position(group, "", self._origins_of_group(group), scope)
        inner = scope.inner(self._tile_of(group, scope), is_loop=False)
        self._axes(statement, group, inner)
        self._body(statement.body, inner)
        if isinstance(statement, Reduce):
            partial = self._folds.whole(statement)
            self._folds.fold_tile(partial, self._folds.tile_of(partial, group, inner), scope)

    def _looped(self, run: list[Inner], group: InnerGroup, scope: Scope) -> None:
        tile = self._tile_of(group, scope)
        partials = {
            id(s): self._folds.started(s, tile.shape(), group.is_wide)
            for s in run
            if isinstance(s, Reduce)
        }
        origins = union(*(self._all_origins(s) for s in run))
        start = f"rstart{group.suffix}"
        length = self._numels[group.number]
        self._lines.line(f"for {start} in range(0, {length}, {group.block}):", origins)
        with self._lines.indented():
            shared = scope.inner(tile)
            self._tile_position(group, f"{start} + ", origins, shared)
            for statement in run:
                inner = shared.inner(is_loop=False)
                self._axes(statement, group, inner)
                self._body(statement.body, inner)
                if id(statement) in partials:
                    partial = partials[id(statement)]
                    self._folds.combine(partial, self._folds.tile_of(partial, group, inner))
        for partial in partials.values():
            self._folds.fold_partial(partial, scope)

    def _tile_of(self, group: InnerGroup, scope: Scope) -> Tile:
        mask = None if group.is_exact else f"rmask{group.suffix}"
        return scope.tile.inside(group.dim, group.block, mask)

    def _tile_position(
        self, group: InnerGroup, start: str, origins: Iterable[Handle], scope: Scope
    ) -> None:
        """The lines `rindex = …` and `rmask = …`."""
        text = f"{start}tl.arange(0, {group.block})"
        if self._plan.xblock:
            text = f"{bracketed(text)}[None, :]"
        if group.is_wide:
            text = f"{bracketed(text)}.to(tl.int64)"
        self._lines.line(f"rindex{group.suffix} = {text}", origins)
        if not group.is_exact:
            length = self._numels[group.number]
            self._lines.line(f"rmask{group.suffix} = rindex{group.suffix} < {length}", origins)

    def _axes(self, statement: Inner, group: InnerGroup, scope: Scope) -> None:
        """The statement's axes from the tile's position."""
        position = f"%{group.dim}"
        dtype = DTYPES["i64" if group.is_wide else "i32"]
        scope.names[position] = Variable(f"rindex{group.suffix}", dtype, frozenset({group.dim}))
        axes = long_axes(statement.axes)
        self._writer.flat.append((axes, position))
        used = positions_used((statement,), axes, self._writer)
        axis_lines(axes, position, used, self._writer, scope)

    def _body(self, block: Block, scope: Scope) -> None:
        for statement in block:
            self._inside(statement, scope)

    # ------------------------------------------------------------------------------ one by one

    def _one_by_one(self, s: Inner, scope: Scope) -> None:
        self._writer.phase += 1
        partial = None
        if isinstance(s, Reduce):
            is_long = self._plan.is_wide or product(s.axes).constant is None
            partial = self._folds.started(s, scope.tile.shape(), is_long)
        with self._counters(s, scope) as inner:
            self._body(s.body, inner)
            if partial is not None:
                position = self._writer.index(_row_major(s.axes), inner) if partial.position else ""
                self._folds.combine(partial, self._folds.value_of(partial, inner, position))
        if partial is not None:
            self._folds.end(partial, scope)

    @contextmanager
    def _counters(self, s: Inner, scope: Scope) -> Iterator[Scope]:
        """One `for` line for each axis."""
        inner = scope.inner()
        with ExitStack() as stack:
            for axis in s.axes:
                name = self._writer.names.fresh(axis.name)
                length = self._writer.index(self._writer.flatten(axis.extent), inner)
                self._lines.line(f"for {name} in range(0, {length}):", self._all_origins(s))
                stack.enter_context(self._lines.indented())
                is_narrow = axis.extent.constant is not None
                text = f"{name}.to(tl.int64)" if is_narrow and self._plan.is_wide else name
                inner.names[axis.name] = Variable(text, DTYPES["i32" if is_narrow else "i64"])
            yield inner

    # ------------------------------------------------------------------------------ origins

    def _all_origins(self, s: Inner) -> frozenset[Handle]:
        return self._writer.handles.within((s,))

    def _origins_of_group(self, group: InnerGroup) -> frozenset[Handle]:
        members = [s for s in self._inner if self._plan.group_of(s.axes) is group]
        return union(*(self._all_origins(s) for s in members))


def _row_major(axes: tuple[Axis, ...]) -> Index:
    total = index(0)
    for axis in axes:
        total = total * axis.extent + Sym(axis.name)
    return total
