"""Breaks because the autograd engine of eager is spoken to."""

from __future__ import annotations

from typing import Any

import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import autograd as kinds

Tensor = torch.Tensor


def tracked(call: int) -> tuple[Any, ...]:
    return (vector(call)[0].requires_grad_(),)


def differentiates(x: Tensor) -> Tensor:
    y = (x * x).sum()
    (gradient,) = torch.autograd.grad(y, x)  # breaks
    return gradient * 2


def differentiates_fixed(x: Tensor) -> Tensor:
    return (x * x).sum()


def hooks(x: Tensor) -> Tensor:
    y = x * 2
    y.register_hook(torch.neg)  # type: ignore[no-untyped-call]  # breaks
    return y + 1


def hooks_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + 1


class Doubled(torch.autograd.Function):
    """A function with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 2


def applies(x: Tensor) -> Tensor:
    y = x + 1
    return Doubled.apply(y) + 1  # type: ignore[no-any-return, no-untyped-call]  # breaks


def applies_fixed(x: Tensor) -> Tensor:
    y = x + 1
    return y * 2 + 1


def reads_gradient(x: Tensor) -> tuple[Tensor, bool]:
    y = x * 2
    return y, x.grad is None  # breaks


def reads_gradient_fixed(x: Tensor) -> tuple[Tensor, bool]:
    y = x * 2
    return y, x.requires_grad


def detaches(x: Tensor) -> Tensor:
    y = x * 2
    y.detach_()  # breaks
    return y + 1


def detaches_fixed(x: Tensor) -> Tensor:
    y = (x * 2).detach()
    return y + 1


def swaps(x: Tensor) -> Tensor:
    y = x * 2
    y.data = x + 1  # breaks
    return y


def swaps_fixed(x: Tensor) -> Tensor:
    y = x * 2
    y.copy_(x + 1)
    return y


def infers(x: Tensor) -> Tensor:
    y = x * 2
    with torch.inference_mode():  # breaks
        z = y.sum()
    return y + float(z.shape == ())


def infers_fixed(x: Tensor) -> Tensor:
    y = x * 2
    with torch.no_grad():
        z = y.sum()
    return y + float(z.shape == ())


EXAMPLES = (
    Example(
        kinds.AUTOGRAD, differentiates, differentiates_fixed, tracked,
        alternative="the loss; the caller differentiates",
    ),
    Example(kinds.TENSOR_HOOKS, hooks, hooks_fixed, tracked),
    Example(kinds.CUSTOM_FUNCTION, applies, applies_fixed),
    Example(kinds.GRADIENT_READ, reads_gradient, reads_gradient_fixed, alternative="another question"),
    Example(kinds.REQUIRES_GRAD, detaches, detaches_fixed),
    Example(kinds.STORAGE_SWAP, swaps, swaps_fixed),
    Example(kinds.INFERENCE, infers, infers_fixed),
)  # fmt: skip
