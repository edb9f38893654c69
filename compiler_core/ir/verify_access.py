"""What can be proven wrong about one load or store: an offset outside its buffer, a place stored twice.

In: an offset, the axes around it, the size of its buffer. Out: a sentence about the fault, or None.
Only what certainly happens in some run is a fault: what cannot be decided here is left to the
interpreter, which checks every offset as it goes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler_core.ir.index import Index, Ranges, axis_ranges, bounds, index, is_at_least
from compiler_core.ir.loop import Axis, Buffer

__all__ = ["length_of", "out_of_bounds", "stored_twice"]


def length_of(buffer: Buffer) -> Index:
    """Elements from a buffer's first to its last, where it has any."""
    steps = [(size - 1) * stride for size, stride in zip(buffer.shape, buffer.strides)]
    return sum(steps, index(1))


def out_of_bounds(offset: Index, axes: Sequence[Axis], buffer: Buffer) -> str | None:
    """A sentence if some position of the axes is surely outside the buffer."""
    ranges = axis_ranges(axes)
    if _may_not_run(axes) or any(bounds(size, ranges)[0] == 0 for size in buffer.shape):
        return None
    ends = _ends(offset, axes, ranges)
    if ends is None:
        return None
    lowest, highest = ends
    length = length_of(buffer)
    if is_at_least(-1, lowest, ranges):
        return f"offset {offset} begins at {lowest}, before {buffer.name}"
    if is_at_least(highest, length, ranges):
        return f"offset {offset} reaches {highest}; {buffer.name} has {length} elements"
    return None


def stored_twice(offset: Index, axes: Sequence[Axis]) -> str | None:
    """A sentence if two positions of the axes surely have the same offset."""
    if not offset.names <= {axis.name for axis in axes} or _may_not_run(axes):
        return None
    steps: list[tuple[Axis, int]] = []
    for axis in axes:
        split = offset.split(axis.name)
        stride = split[0].constant if split else None
        if stride is None:
            return None
        if stride == 0 and _is_longer(axis, 1):
            return f"axis {axis.name} does not move the offset {offset}: its positions collide"
        steps.append((axis, stride))
    for k, (left, a) in enumerate(steps):
        for right, b in steps[k + 1 :]:
            common = math.gcd(a, b) or 1
            if (
                a
                and b
                and _is_longer(left, abs(b) // common)
                and _is_longer(right, abs(a) // common)
            ):
                return f"axes {left.name} and {right.name} collide in the offset {offset}"
    return None


def _is_longer(axis: Axis, length: int) -> bool:
    return axis.extent.constant is not None and axis.extent.constant > length


def _may_not_run(axes: Sequence[Axis]) -> bool:
    return any(axis.extent.constant == 0 for axis in axes)


def _ends(offset: Index, axes: Sequence[Axis], ranges: Ranges) -> tuple[Index, Index] | None:
    """(lowest, highest) of an offset that is linear in its axes: both are reached."""
    lowest = highest = offset
    for axis in axes:
        split = offset.split(axis.name)
        if split is None:
            return None
        low, high = bounds(split[0], ranges)
        last = {axis.name: axis.extent - 1}
        first = {axis.name: 0}
        if low is not None and low >= 0:
            lowest, highest = lowest.substitute(first), highest.substitute(last)
        elif high is not None and high <= 0:
            lowest, highest = lowest.substitute(last), highest.substitute(first)
        else:
            return None
    return lowest, highest
