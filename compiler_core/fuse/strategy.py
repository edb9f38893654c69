"""How a kernel walks memory: pointwise, row or column.

In: a nest. Out: the word. "row": the inner axes (of reductions and loops) run along memory, so one
position of the outer axes owns a stretch of it. "column": the outer axes run along memory, so
neighbouring positions must work side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from compiler_core.fuse.accesses import Access, accesses
from compiler_core.fuse.blocks import is_pointwise
from compiler_core.fuse.linear import steps
from compiler_core.ir.loop import Axis, Nest

__all__ = ["runs_along", "strategy_of"]


def strategy_of(nest: Nest) -> str:
    """ "pointwise", "row" or "column"."""
    if is_pointwise(nest):
        return "pointwise"
    inside = [access for access in accesses(nest) if access.inner]
    outer = {axis.name for axis in nest.axes}
    return "column" if runs_along(outer, inside) else "row"


def runs_along(axes: Collection[str], among: Iterable[Access]) -> bool:
    """Whether most accesses, by the elements they touch, have stride 1 in one of these axes."""
    balance = 0
    for access in among:
        axis = _contiguous_axis(access)
        if axis is not None:
            weight = steps(_touched(access))
            balance += weight if axis in axes else -weight
    return balance > 0


def _touched(access: Access) -> tuple[Axis, ...]:
    names = access.statement.offset.names
    return tuple(axis for axis in access.scope if axis.name in names)


def _contiguous_axis(access: Access) -> str | None:
    offset = access.statement.offset
    for axis in _touched(access):
        parts = offset.split(axis.name)
        if parts is not None and parts[0] == 1:
            return axis.name
    return None
