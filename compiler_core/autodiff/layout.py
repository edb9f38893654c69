"""Strides: give a traced tensor the strides that eager would have given it.

In: a tensor and a fake tensor with the strides wanted. Out: the tensor, or a copy laid out so. A
dense layout is a permutation of axes, so one permuted contiguous copy gives it.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler_core.autodiff.sizes import hint_of, same_sizes

__all__ = ["like"]


def like(value: torch.Tensor, model: Any) -> torch.Tensor:
    """`value` with the strides of `model`, if they have one shape and `model` is dense."""
    if not isinstance(model, torch.Tensor) or not same_sizes(value.shape, model.shape):
        return value
    if same_sizes(value.stride(), model.stride()):
        return value
    order = sorted(range(value.ndim), key=lambda axis: (-hint_of(model.stride(axis)), axis))
    if not _is_dense(model, order):
        return value
    back = [order.index(axis) for axis in range(value.ndim)]
    return value.permute(order).clone(memory_format=torch.contiguous_format).permute(back)


def _is_dense(tensor: torch.Tensor, order: list[int]) -> bool:
    """Whether the axes, outermost first, lie in memory without gaps or overlap."""
    expected: Any = 1
    for axis in reversed(order):
        if not same_sizes([tensor.shape[axis]], [1]):
            if not same_sizes([tensor.stride(axis)], [expected]):
                return False
            expected = expected * tensor.shape[axis]
    return True
