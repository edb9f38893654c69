"""Copies of a graph's inputs that keep strides, so that a stage can be run on them later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

__all__ = ["copies_of", "copy_of"]


def copy_of(value: Any) -> Any:
    """A detached copy of a tensor with the same sizes, strides and requires_grad; other values as they are."""
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        memory = _memory(value).clone()
        copy = memory.as_strided(value.shape, value.stride())
    return copy.requires_grad_(value.requires_grad)


def copies_of(values: Sequence[Any]) -> list[Any]:
    """`copy_of` for each value, without requires_grad."""
    return [v.detach() if isinstance(v, torch.Tensor) else v for v in map(copy_of, values)]


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's memory from its first to its last element, flat: expanded and strided ones too."""
    plain = tensor.detach()
    steps = ((size - 1) * stride for size, stride in zip(plain.shape, plain.stride()))
    span = 1 + sum(steps) if plain.numel() else 0
    return plain.as_strided((span,), (1,))
