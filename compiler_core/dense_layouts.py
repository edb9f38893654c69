"""The strides that eager gives to fresh results, from the sizes and strides of the operands.

In: `Layout`s. Out: strides. Two rules make nearly all of them: that of copies and of `empty_like`
(`strides_like`), and that of element-wise kernels (`strides_of_elementwise`), which order the axes
as the first operand that tells two axes apart. Torch has both in C++ (`TensorIterator.cpp`,
`infer_dense_strides`); its fake tensors have a third one that differs in the corners.

Symbolic sizes are compared by their hints, so that asking makes no guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

__all__ = [
    "Layout", "Numbers", "channels_last", "contiguous", "layout_of", "number", "strides_like", "strides_of_elementwise",
]  # fmt: skip

Numbers: TypeAlias = tuple[Any, ...]  # integers or SymInts


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes and strides of one tensor."""

    shape: Numbers
    strides: Numbers

    @property
    def is_dense(self) -> bool:
        """Are the elements next to each other in memory, in any order of the axes, none twice?"""
        wide = [(number(t), number(n)) for n, t in zip(self.shape, self.strides) if number(n) > 1]
        if any(number(n) == 0 for n in self.shape):
            return True
        expected = 1
        for stride, size in sorted(wide):
            if stride != expected:
                return False
            expected *= size
        return True

    def is_row_major(self, order: Sequence[int]) -> bool:
        """Is it contiguous when its axes are taken in this order, outermost first?"""
        if any(number(n) == 0 for n in self.shape):
            return True
        expected = 1
        for axis in reversed(order):
            if number(self.shape[axis]) != 1:
                if number(self.strides[axis]) != expected:
                    return False
                expected *= number(self.shape[axis])
        return True

    @property
    def is_contiguous(self) -> bool:
        return self.is_row_major(range(len(self.shape)))


def layout_of(tensor: torch.Tensor) -> Layout:
    return Layout(tuple(tensor.shape), tuple(tensor.stride()))


def number(size: Any) -> int:
    """A size, or what is expected of a symbolic one."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def contiguous(shape: Sequence[Any]) -> Numbers:
    """Row-major strides; an axis without elements counts as one with one."""
    return _packed(shape, range(len(shape) - 1, -1, -1), lambda size: max(number(size), 1))


def channels_last(given: Layout) -> Numbers | None:
    """The strides of the channels-last format, if that is the operand's; None for any other."""
    order = _CHANNELS_LAST.get(len(given.shape))
    if order is None or given.is_contiguous or not given.is_row_major(order):
        return None
    return _packed(given.shape, order[::-1], lambda size: max(number(size), 1))


def strides_like(given: Layout) -> Numbers:
    """The strides of `torch.empty_like` and of copies that preserve the format."""
    if given.is_dense:
        return given.strides
    order = _innermost_first(given.shape, [given])
    return _packed(given.shape, order, lambda size: max(number(size), 1))


def strides_of_elementwise(shape: Sequence[Any], operands: Sequence[Layout]) -> Numbers:
    """The strides of an element-wise result of this shape."""
    rank = len(shape)
    if all(len(o.shape) == rank and _same(o.shape, shape) for o in operands):
        fast = _of_equal_layouts(shape, operands)
        if fast is not None:
            return fast
    order = _innermost_first(shape, operands)
    if order == list(range(rank - 1, -1, -1)):
        return contiguous(shape)
    return _packed(shape, order, number)


def _of_equal_layouts(shape: Sequence[Any], operands: Sequence[Layout]) -> Numbers | None:
    """The short ways: all contiguous, all channels last, all dense with the same strides."""
    if all(o.is_contiguous for o in operands):
        return contiguous(shape)
    order = _CHANNELS_LAST.get(len(shape))
    if order and all(o.is_row_major(order) for o in operands):
        return _packed(shape, order[::-1], lambda size: max(number(size), 1))
    first = operands[0].strides
    if all(o.is_dense and _same(o.strides, first) for o in operands):
        return first
    return None


_CHANNELS_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return list(map(number, one)) == list(map(number, other))


def _innermost_first(shape: Sequence[Any], operands: Sequence[Layout]) -> list[int]:
    """The axes by rising strides: an insertion sort, since two axes may be in no order at all."""
    rank = len(shape)
    sizes = list(map(number, shape))
    strides = [_broadcast(o, sizes) for o in operands]
    order = list(range(rank - 1, -1, -1))
    for start in range(1, rank):
        moving = start
        for before in range(start - 1, -1, -1):
            found = _compare(order[before], order[moving], sizes, strides)
            if found < 0:
                break
            if found > 0:
                order[before], order[moving] = order[moving], order[before]
                moving = before
    return order


def _broadcast(operand: Layout, sizes: Sequence[int]) -> list[int]:
    """The operand's strides over the result's axes: 0 where it is repeated."""
    missing = len(sizes) - len(operand.shape)
    steps = [
        0 if number(n) == 1 and size != 1 else number(t)
        for n, t, size in zip(operand.shape, operand.strides, sizes[missing:])
    ]
    return [0] * missing + steps


def _compare(one: int, other: int, sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> int:
    """Positive when axis `one` lies outside of axis `other`, negative when inside, 0 when nobody tells."""
    for steps in strides:
        a, b = steps[one], steps[other]
        if a == 0 or b == 0:
            continue
        if a != b:
            return 1 if a > b else -1
        if sizes[one] > sizes[other]:
            return 1
    return 0


def _packed(shape: Sequence[Any], order: Sequence[int], width: Callable[[Any], int]) -> Numbers:
    """Strides without gaps, the axes of `order` from the innermost one out."""
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for axis in order:
        strides[axis] = step
        step = step * (shape[axis] if isinstance(shape[axis], torch.SymInt) else width(shape[axis]))
    return tuple(strides)
