"""Reductions, scans and matrix products.

A reduction's region may be anything associative. The usual ones are one torch call; any other is folded
as a tree of neighbours, in order, with the region evaluated on whole halves at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from compiler_core.runtime.ttir_evaluator.parse import Operation, Region
from compiler_core.runtime.ttir_evaluator.values import TYPES, as_tensor

__all__ = ["dot", "reduce", "scan"]

Combine = Callable[[Region, Sequence[Tensor]], list[Tensor]]

_WHOLE: dict[str, Callable[[Tensor, int], Tensor]] = {
    "arith.addf": lambda x, axis: x.sum(axis),
    "arith.addi": lambda x, axis: x.sum(axis),
    "arith.mulf": lambda x, axis: x.prod(axis),
    "arith.muli": lambda x, axis: x.prod(axis),
    "arith.maximumf": lambda x, axis: x.amax(axis),
    "arith.minimumf": lambda x, axis: x.amin(axis),
    "arith.maxsi": lambda x, axis: x.amax(axis),
    "arith.minsi": lambda x, axis: x.amin(axis),
}


def reduce(op: Operation, operands: Sequence[Tensor], combine: Combine) -> list[Tensor]:
    """`tt.reduce`: one or several operands folded along `axis` by the region."""
    axis = int(op.attribute("axis") or 0) + 1
    shape = op.operand_types[0].shape
    values = _together(operands, shape)
    whole = _whole_of(op.regions[0], values[0].dtype)
    if whole is not None and len(values) == 1:
        return [whole(values[0], axis).to(values[0].dtype)]
    while values[0].shape[axis] > 1:
        length = values[0].shape[axis]
        pairs = length // 2
        left = [_every_other(v, axis, 0, pairs) for v in values]
        right = [_every_other(v, axis, 1, pairs) for v in values]
        folded = combine(op.regions[0], [*left, *right])
        folded = [f.expand(part.shape) for f, part in zip(folded, left)]
        if length % 2:
            folded = [
                torch.cat([f, v.narrow(axis, length - 1, 1)], axis) for f, v in zip(folded, values)
            ]
        values = folded
    return [value.squeeze(axis) for value in values]


def _together(operands: Sequence[Tensor], shape: tuple[int, ...]) -> list[Tensor]:
    """All operands at full size, for as many programs as the widest of them has."""
    programs = max(as_tensor(value).shape[0] for value in operands)
    return [as_tensor(value).expand(programs, *shape) for value in operands]


def _whole_of(region: Region, dtype: torch.dtype) -> Callable[[Tensor, int], Tensor] | None:
    """The torch function of a region with one operation. Half types round at each step, so not for them."""
    if len(region.body) != 2 or dtype in (torch.float16, torch.bfloat16, torch.bool):
        return None
    step = region.body[0]
    uses_both = set(step.operands[:2]) == set(region.arguments)
    return _WHOLE.get(step.name) if uses_both else None


def _every_other(value: Tensor, axis: int, start: int, count: int) -> Tensor:
    index = torch.arange(start, start + 2 * count, 2)
    return value.index_select(axis, index)


def scan(op: Operation, operands: Sequence[Tensor], combine: Combine) -> list[Tensor]:
    """`tt.scan`: prefixes by doubling steps (Hillis and Steele, 1986)."""
    axis = int(op.attribute("axis") or 0) + 1
    shape = op.operand_types[0].shape
    is_reverse = op.attribute("reverse") == "true"
    values = _together(operands, shape)
    if is_reverse:
        values = [value.flip(axis) for value in values]
    step, length = 1, values[0].shape[axis]
    while step < length:
        left = [v.narrow(axis, 0, length - step) for v in values]
        right = [v.narrow(axis, step, length - step) for v in values]
        folded = combine(op.regions[0], [*left, *right])
        values = [
            torch.cat([v.narrow(axis, 0, step), f.expand(part.shape)], axis)
            for v, f, part in zip(values, folded, right)
        ]
        step *= 2
    return [value.flip(axis) if is_reverse else value for value in values]


def dot(op: Operation, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """`tt.dot`: products in the type of the result, whatever precision the hardware would use for f32."""
    dtype = TYPES[op.types[0].element]
    rows, columns = op.types[0].shape[-2:]
    inner = max(a.shape[-1], b.shape[-2])
    left = a.to(dtype).expand(a.shape[0], rows, inner)
    right = b.to(dtype).expand(b.shape[0], inner, columns)
    return torch.matmul(left, right) + c
