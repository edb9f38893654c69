"""Random operators, taken apart into the draw itself and arithmetic on what was drawn.

In: dropout, and truth values drawn by chance. Out: eager's numbers to the bit, and its generator where eager
leaves it: the draw is the library's own. A mask is drawn as truth values, so that one byte an element is
written and saved for the backward pass, and the arithmetic on it is fused into its neighbours.

A draw takes the same numbers from the generator for each dtype but double precision, which draws on its own on
some machines (aten/src/ATen/native/cpu/DistributionTemplates.h, cuda/DistributionTemplates.h).
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["bernoulli", "dropout", "native_dropout", "native_dropout_backward", "random_from"]

_aten = torch.ops.aten
Tensor = torch.Tensor


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`F.dropout`: `input` itself where nothing is dropped, as eager gives it."""
    is_nothing = p == 0 or not training or input.numel() == 0
    if is_nothing and 0.0 <= p <= 1.0:
        return input
    made: Tensor = (torch.dropout_ if inplace else torch.dropout)(input, p, training)
    return made


def native_dropout(input: Tensor, p: float, train: bool | None) -> Any:
    """(result, mask): on a CPU what eager's `dropout` computes, which never calls this operator there."""
    if input.device.type != "cpu" or train is not True or input.numel() == 0:
        return NotImplemented
    if p == 1:
        return input * input.new_zeros(()), torch.zeros_like(input, dtype=torch.bool)
    mask = _aten.bernoulli.p(torch.empty_like(input), 1 - p)
    return input * (mask / (1 - p)), mask.to(torch.bool)


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Any:
    """The gradient of `native_dropout`, rounded as the one of eager's `dropout` on a CPU."""
    if grad_output.device.type != "cpu":
        return NotImplemented
    return grad_output * (mask.to(grad_output.dtype) / (1 / scale if scale else 1.0))


def bernoulli(self: Tensor, p: float = 0.5, *, generator: Any = None) -> Any:
    """True with chance `p`, in the shape, strides and dtype of `self`, drawn as truth values."""
    if not self.is_contiguous():
        return _mask_of_dropout(self, 1 - p).to(self.dtype)
    if self.dtype in (torch.bool, torch.float64):
        return NotImplemented
    empty = torch.empty(self.shape, dtype=torch.bool, device=self.device)
    return _aten.bernoulli.p(empty, p).to(self.dtype)


def _mask_of_dropout(like: Tensor, p: float) -> Tensor:
    """Draws into the strides of `like`. Of the functional operators only `native_dropout` does."""
    mask: Tensor = _aten.native_dropout.default(torch.empty_like(like), p, None)[1]
    return mask


def random_from(self: Tensor, low: int, high: int, *, generator: Any = None) -> Any:
    """Integers in [low, high) in the shape and dtype of `self`: `randint`, whose name is no word of Python."""
    made: Tensor = _aten.randint.low(low, high, self.shape, dtype=self.dtype, device=self.device)
    return made
