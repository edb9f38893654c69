"""The programs that `gpu.py` measures: memory-bound ones and reductions, some forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


class Program(NamedTuple):
    """A function of the inputs that `draw` makes. `trains`: gradients of all floating inputs are taken."""

    fn: Callable[..., Any]
    draw: list[Callable[[], Any]]
    moved: int  # bytes
    trains: bool = False


def normal(*shape: int) -> Callable[[], Any]:
    import torch

    return lambda: torch.randn(shape, device="cuda")


def classes(rows: int, count: int) -> Callable[[], Any]:
    import torch

    return lambda: torch.randint(count, (rows,), device="cuda")


def programs() -> dict[str, Program]:
    import torch
    from torch.nn import functional as F

    def sin_cos(x, y):
        return torch.sin(x) + torch.cos(y)

    def chain12(x, y):
        for _ in range(3):
            x = torch.tanh(x * 1.5 + y) - 0.5 * x
        return x

    def softmax(x):
        return torch.softmax(x, -1)

    def layer_norm(x, w, b):
        return F.layer_norm(x, (x.shape[-1],), w, b)

    def batch_norm(x, w, b):
        return F.batch_norm(x, None, None, w, b, training=True)

    def cross_entropy(x, target):
        return F.cross_entropy(x, target)

    def total(x):
        return x.sum()

    def columns(x):
        return x.sum(0)

    big, rows, images = (16384, 8192), (8192, 4096), (64, 128, 56, 56)
    x, size = normal(*rows), 4 * math.prod(rows)
    affine = [x, normal(rows[1]), normal(rows[1])]
    channels = [normal(*images), normal(images[1]), normal(images[1])]
    return {
        "sin_cos_16384x8192": Program(sin_cos, [normal(*big)] * 2, 3 * 4 * math.prod(big)),
        "chain12_8192x4096": Program(chain12, [x, x], 3 * size),
        "softmax_8192x4096": Program(softmax, [x], 2 * size),
        "layer_norm_8192x4096": Program(layer_norm, affine, 2 * size),
        "sum_1e8": Program(total, [normal(10**8)], 4 * 10**8),
        "sum_columns_65536x1024": Program(columns, [normal(65536, 1024)], 4 * 65536 * 1024),
        "softmax_both_8192x4096": Program(softmax, [x], 5 * size, trains=True),
        "layer_norm_both_8192x4096": Program(layer_norm, affine, 7 * size, trains=True),
        "batch_norm_both_64x128x56x56": Program(
            batch_norm, channels, 8 * 4 * math.prod(images), trains=True
        ),
        "cross_entropy_both_8192x32000": Program(
            cross_entropy, [normal(8192, 32000), classes(8192, 32000)], 3 * 4 * 8192 * 32000,
            trains=True,
        ),
    }  # fmt: skip


def caller(program: Program, fn: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A call of `fn` that returns a list: its output and, for programs that train, the gradients of its inputs.

    The tangent is the same in every call of every compiler, and in float64.
    """
    import torch

    def forward(*inputs):
        return [fn(*inputs)]

    def both(*inputs):
        leaves = [v for v in inputs if v.is_floating_point()]
        for leaf in leaves:
            leaf.requires_grad_()
        output = fn(*inputs)
        if output.shape not in tangents:
            tangents[output.shape] = tangent_like(output)
        return [output.detach(), *torch.autograd.grad(output, leaves, tangents[output.shape])]

    def tangent_like(output):
        generator = torch.Generator(output.device).manual_seed(1)
        drawn = torch.randn(output.shape, device=output.device, generator=generator)
        return drawn.to(output.dtype)

    tangents: dict[Any, Any] = {}
    return both if program.trains else forward
