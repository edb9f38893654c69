"""Axes from a linear position: `row = xindex // 512`, `column = xindex % 512`.

In: axes in row-major order, the name of the position. Out: a line for each axis that is used, or none where
the position itself is the axis.
"""

from __future__ import annotations

from compiler_core.codegen.statement_handles import statements_of
from compiler_core.codegen.triton.statements import StatementWriter
from compiler_core.codegen.triton.tile import Scope
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import Axis, Block, Load, Position, Store
from compiler_core.provenance import Handle

__all__ = ["axis_lines", "positions_used"]

Used = dict[str, set[Handle]]


def positions_used(block: Block, axes: tuple[Axis, ...], writer: StatementWriter) -> Used:
    """The axes that offsets and positions name, with the statements that do."""
    used: Used = {}
    own = {axis.name for axis in axes}
    for statement in statements_of(block):
        match statement:
            case Load(offset=e) | Store(offset=e) | Position(index=e):
                for name in own & writer.flatten(e).names:
                    used.setdefault(name, set()).add(writer.origin(statement))
    return used


def axis_lines(
    axes: tuple[Axis, ...], position: str, used: Used, writer: StatementWriter, scope: Scope
) -> None:
    """Put the axes into the scope, with lines for those that are used."""
    whole = scope.names[position]
    if any(axis.extent.constant == 0 for axis in axes):  # no position is ever computed
        scope.names.update((axis.name, whole) for axis in axes)
        return
    after = index(1)
    for number, axis in reversed(list(enumerate(axes))):
        e: Index = Sym(position) // after
        if number:
            e = e % axis.extent
        after = after * axis.extent
        if e is Sym(position):
            scope.names[axis.name] = whole
        elif axis.name in used:
            text = writer.index(e, scope)
            scope.names[axis.name] = writer.define(
                axis.name, text, whole.dtype, whole.dims, used[axis.name], scope
            )
