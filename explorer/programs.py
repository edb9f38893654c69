"""The programs of the demonstration: small, real, each one shows something.

Every program is a function or module with example inputs for several calls. They are ordinary
PyTorch; nothing in them knows of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from explorer.models import (
    Recurrent,
    ResidualNetwork,
    Transformer,
    UNet,
    images_batch,
    masks_batch,
    series_batch,
    tokens_batch,
)

__all__ = ["PROGRAMS", "Program"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program and how it is called.

    make: returns the callable, fresh. calls: the inputs of each call, made with a fixed seed.
    trains: whether the result is a loss to call backward on. dynamic: dimension 0 of every tensor
    input gets a size symbol.
    """

    name: str
    about: str
    make: Callable[[], Callable[..., Any]]
    calls: Callable[[], Sequence[tuple[Any, ...]]]
    trains: bool = False
    dynamic: bool = False


def sin_cos(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One line, one kernel."""
    return torch.sin(x) + torch.cos(y)


class MLP(nn.Module):
    """Layer norm, two linear layers with GELU between, softmax, and a loss against target rows."""

    def __init__(self, width: int = 64, hidden: int = 128):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = F.gelu(self.up(self.norm(x)))
        rows = torch.softmax(self.down(hidden), dim=-1)
        return ((rows - target) ** 2).sum(dim=-1).mean()


def with_break(x: torch.Tensor) -> torch.Tensor:
    """A print and a branch on a tensor's value: three graphs, two breaks."""
    y = torch.relu(x) * 2
    print("mean seen")
    if y.mean() > 0.5:
        return y - 1
    return y + 1


def _normal(*shapes: tuple[int, ...], seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def _rows(batch: int, width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, logits = _normal((batch, width), (batch, width), seed=seed)
    return x, torch.softmax(logits, dim=-1)


def _mlp() -> MLP:
    torch.manual_seed(0)
    return MLP()


def _fresh(model: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """Makes the model with the same parameters each time."""

    def make() -> nn.Module:
        torch.manual_seed(0)
        return model()

    return make


PROGRAMS: tuple[Program, ...] = (
    Program(
        "sin_cos",
        "sin(x) + cos(y): one line, one kernel",
        lambda: sin_cos,
        lambda: [_normal((512, 1024), (512, 1024), seed=i) for i in range(3)],
    ),
    Program(
        "mlp_training_step",
        "layer norm, GELU, softmax and a loss, forward and backward",
        _mlp,
        lambda: [_rows(32, 64, seed=i) for i in range(3)],
        trains=True,
    ),
    Program(
        "graph_break",
        "a print and a branch on a tensor's value in the middle",
        lambda: with_break,
        lambda: [_normal((64, 64), seed=i) for i in range(2)] + [(torch.full((64, 64), -1.0),)],
    ),
    Program(
        "sin_cos_dynamic",
        "the first program for batches 2 to 9: one kernel serves all",
        lambda: sin_cos,
        lambda: [_normal((n, 1024), (n, 1024), seed=n) for n in range(2, 10)],
        dynamic=True,
    ),
    Program(
        "mlp_dynamic",
        "the second program for batches 2 to 9: one set of kernels serves all",
        _mlp,
        lambda: [_rows(n, 64, seed=n) for n in range(2, 10)],
        trains=True,
        dynamic=True,
    ),
    Program(
        "transformer",
        "a causal transformer block on token embeddings, trained on the next token",
        _fresh(lambda: Transformer(layers=1)),
        lambda: [tokens_batch(n, seed=n) for n in (4, 6, 5)],
        trains=True,
        dynamic=True,
    ),
    Program(
        "residual_network",
        "a residual convolutional network with batch norm, which updates its running statistics",
        _fresh(ResidualNetwork),
        # Seeds with a margin. At one in ten the bound fails by rounding alone: it is twice eager's own error,
        # which may be small by chance, and an activation near the kink of relu may fall on its other side.
        lambda: [images_batch(n, seed=seed) for n, seed in ((4, 6), (6, 5), (5, 2))],
        trains=True,
        dynamic=True,
    ),
    Program(
        "recurrent",
        "a gated recurrent cell written by hand, six steps",
        _fresh(Recurrent),
        lambda: [series_batch(n, seed=n) for n in (4, 6, 5)],
        trains=True,
        dynamic=True,
    ),
    Program(
        "unet",
        "down by average pooling, up by interpolation, with skip connections",
        _fresh(UNet),
        lambda: [masks_batch(n, seed=seed) for n, seed in ((4, 16), (6, 13), (5, 11))],
        trains=True,
        dynamic=True,
    ),
)
