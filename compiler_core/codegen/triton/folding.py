"""The lines of a reduction: where it starts, how a tile joins it, how it ends.

In: a `Reduce` and the value that its body yields. Out: lines, and the result as a variable. What is folded is
a tile along its inner dimension, or one position after another.

A sum that grows step by step keeps what each addition rounds away, and both are added up in f64 at the end: its
error does not grow with the number of steps. Source: Neumaier 1974, by way of the exact addition of Knuth (TAOCP 2, 4.2.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler_core.codegen.triton.casts import cast, held, rounded, typed_literal
from compiler_core.codegen.triton.plan import InnerGroup
from compiler_core.codegen.triton.reductions import Fold, fold_of
from compiler_core.codegen.triton.statements import StatementWriter
from compiler_core.codegen.triton.tile import Dims, Scope
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.loop import Reduce
from compiler_core.provenance import NOWHERE, Handle, Origins

__all__ = ["Folded", "Folds", "Partial"]


@dataclass(frozen=True, slots=True)
class Partial:
    """A reduction under way: its fold, the names of the partial result and of what goes with it.

    That is the position for argmax, and for sums in f32 what was rounded away.
    """

    statement: Reduce
    fold: Fold
    value: str = ""
    position: str = ""
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Folded:
    """Texts of what joins a partial result. `origins`: of constants in it, which have no line."""

    value: str
    position: str
    dims: Dims = frozenset()
    origins: Origins = NOWHERE


class Folds:
    """Writes reductions. `is_block`: the tile has rows of positions, so results keep a dimension of 1."""

    def __init__(self, writer: StatementWriter, is_block: bool):
        self._writer, self._is_block = writer, is_block

    def whole(self, s: Reduce) -> Partial:
        """A reduction of one tile: there is no partial result."""
        return Partial(s, fold_of(s.kind, self._writer.dtypes[s.value], s.dtype))

    def started(self, s: Reduce, shape: str, is_long: bool) -> Partial:
        """The lines before a loop: a partial result, neutral everywhere."""
        fold = self.whole(s).fold
        value = self._writer.names.fresh(f"{s.name}_part")
        origins = [self._writer.origin(s)]
        line = self._writer.lines.line
        line(f"{value} = tl.full({shape}, {fold.start}, {held(fold.dtype)})", origins)
        if fold.is_compensated:
            lost = self._writer.names.fresh(f"{s.name}_lost")
            line(f"{lost} = tl.full({shape}, 0.0, tl.float32)", origins)
            return Partial(s, fold, value, lost=lost)
        if not fold.has_index:
            return Partial(s, fold, value)
        position = self._writer.names.fresh(f"{s.name}_at")
        bits = 64 if is_long else 32  # the last position of all: any real one comes before it
        line(f"{position} = tl.full({shape}, {2 ** (bits - 1) - 1}, tl.int{bits})", origins)
        return Partial(s, fold, value, position)

    def value_of(self, partial: Partial, scope: Scope, position: str) -> Folded:
        """The yielded value in the type that it is folded in."""
        value = scope.names[partial.statement.value]
        text = value.text
        if value.constant is not None:
            text = typed_literal(value.constant, value.dtype)
        text = cast(text, value.dtype, partial.fold.dtype, self._writer.helpers)
        return Folded(text, position, value.dims, value.origins)

    def tile_of(self, partial: Partial, group: InnerGroup, scope: Scope) -> Folded:
        """The whole tile, neutral beyond the length; and its positions, for argmax and argmin."""
        value, tile = self.value_of(partial, scope, f"rindex{group.suffix}"), scope.tile
        text, dims, position = value.value, value.dims, value.position
        if group.dim in tile.masks:
            text = f"tl.where({tile.masks[group.dim]}, {text}, {partial.fold.start})"
            dims |= {group.dim}
        if dims != tile.active:
            text = f"tl.broadcast_to({text}, {tile.shape()})"
        if tile.active != {group.dim}:
            position = f"tl.broadcast_to({position}, {tile.shape()})"
        return Folded(text, position, tile.active, value.origins)

    def combine(self, partial: Partial, new: Folded) -> None:
        """The line that joins a tile, or one position, to the partial result."""
        fold, value = partial.fold, partial.value
        origins = new.origins | {self._writer.origin(partial.statement)}
        if partial.lost:
            self._writer.helpers.add("add_exactly")
            both = f"{value}, {partial.lost}"
            self._writer.lines.line(f"{both} = add_exactly({both}, {new.value})", origins)
            return
        if fold.combine == "add":
            self._writer.lines.line(f"{value} += {new.value}", origins)
            return
        self._writer.helpers.add(fold.combine)
        both = f"{value}, {partial.position}" if fold.has_index else value
        joining = f"{new.value}, {new.position}" if fold.has_index else new.value
        self._writer.lines.line(f"{both} = {fold.combine}({both}, {joining})", origins)

    def fold_partial(self, partial: Partial, scope: Scope) -> None:
        """The line that folds the partial results of a loop over tiles."""
        self.fold_tile(partial, Folded(self._whole_sum(partial), partial.position), scope)

    def end(self, partial: Partial, scope: Scope) -> None:
        """The result of a loop over single positions, which has one partial result."""
        text = partial.position or self._whole_sum(partial)
        if partial.lost:
            text = f"{text}.to(tl.float32)"
        self.result(partial, text, (), scope)

    def _whole_sum(self, partial: Partial) -> str:
        """The partial result; a compensated one in f64."""
        if not partial.lost:
            return partial.value
        self._writer.helpers.add("with_lost")
        return f"with_lost({partial.value}, {partial.lost})"

    def fold_tile(self, partial: Partial, tile: Folded, scope: Scope) -> None:
        """The line that folds a tile along its inner dimension and names the result."""
        fold = partial.fold
        where = "1" if self._is_block else "0"
        keep = ", keep_dims=True" if self._is_block else ""
        if fold.combine == "add":
            text = f"tl.sum({tile.value}, {where}{keep})"
            text = f"{text}.to(tl.float32)" if partial.lost else text
        else:
            self._writer.helpers.add(fold.combine)
            operands = f"({tile.value}, {tile.position})" if fold.has_index else tile.value
            text = f"tl.reduce({operands}, {where}, {fold.combine}{keep})"
        self.result(partial, text + ("[1]" if fold.has_index else ""), tile.origins, scope)

    def result(self, partial: Partial, text: str, extra: Iterable[Handle], scope: Scope) -> None:
        """The folded text in the statement's type, under the statement's name."""
        s, fold = partial.statement, partial.fold
        source = DTYPES["i32"] if fold.has_index else fold.dtype
        if s.kind in ("sum", "prod"):
            text = rounded(text, fold.dtype, self._writer.helpers)
        text = cast(text, source, s.dtype, self._writer.helpers)
        origins = {self._writer.origin(s), *extra}
        scope.names[s.name] = self._writer.define(
            s.name, text, s.dtype, scope.tile.active, origins, scope
        )
