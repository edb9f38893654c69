"""What a mask says about the axes where it holds.

In: a mask's name and the statements that may define it. Out: ranges of axes, narrower than their
extents. A concatenation reads its second part under `j - 32 >= 0`: there, the position j - 32 needs no
remainder. Understands comparisons of a position with a constant, and their conjunctions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler_core.fuse.linear import strides_of
from compiler_core.ir.index import Index, axis_ranges
from compiler_core.ir.loop import Axis, Constant, Position, Statement, Value

__all__ = ["ranges_where"]

Range = tuple[int | None, int | Index | None]

# op → (is the left side at least the right, by how much it then differs at least)
_BOUNDS = {"ge": (True, 0), "gt": (True, 1), "le": (False, 0), "lt": (False, 1)}


def ranges_where(
    mask: str | None, axes: Sequence[Axis], known: Mapping[str, Statement]
) -> dict[str, Range]:
    """The ranges of the axes at the positions where the mask holds."""
    ranges: dict[str, Range] = dict(axis_ranges(axes))
    for condition in _conditions(mask, known):
        _narrow(ranges, condition, known)
    return ranges


def _conditions(mask: str | None, known: Mapping[str, Statement]) -> list[Value]:
    """The comparisons that a mask is the conjunction of."""
    s = known.get(mask or "")
    if not isinstance(s, Value):
        return []
    if s.op == "and":
        return [c for name in s.args for c in _conditions(name, known)]
    return [s] if s.op in _BOUNDS else []


def _narrow(ranges: dict[str, Range], condition: Value, known: Mapping[str, Statement]) -> None:
    """Take `position (<, <=, >, >=) constant` into account, where one axis moves the position by 1."""
    left, right = (known.get(name) for name in condition.args)
    if not isinstance(left, Position) or not isinstance(right, Constant):
        return
    linear = strides_of(left.index, tuple(ranges))
    if linear is None or len(linear[0]) != 1 or isinstance(right.value, float):
        return
    ((axis, stride),) = linear[0].items()
    limit = (int(right.value) - linear[1]).constant
    is_lower, gap = _BOUNDS[condition.op]
    low, high = ranges[axis]
    if limit is None or stride.constant != 1:
        return
    if is_lower:
        ranges[axis] = (max(low or 0, limit + gap), high)
    elif isinstance(high, int):
        ranges[axis] = (low, min(high, limit - gap))
    else:
        ranges[axis] = (low, limit - gap)
