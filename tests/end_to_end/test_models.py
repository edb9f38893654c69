"""Small models of the usual kinds, trained for some calls: outputs, all gradients and the state at the end."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from agreement import agree_module
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """A transformer block, written out."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (
            part.view(shape).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Residual(nn.Module):
    """Convolutions and batch norm, whose statistics are state."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(3)])
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        y = F.relu(x + self.norms[1](self.second(y)))
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


class Recurrent(nn.Module):
    """A loop over time, unrolled."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 5)

    def forward(self, x):
        state = torch.zeros(x.size(1), 5, dtype=x.dtype)
        states = []
        for step in range(x.size(0)):
            state = self.cell(x[step], state)
            states.append(state)
        return torch.stack(states), state


class Tied(nn.Module):
    """One parameter under two names."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 6)
        self.out = nn.Linear(6, 10, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, tokens):
        return F.log_softmax(self.out(self.embedding(tokens)), -1)


class Averaged(nn.Module):
    """Buffers that every call writes, read in the same call."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        y = self.linear(x)
        self.count += 1
        self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        return OrderedDict(y=y * self.count - self.mean, calls=len(x))


class Losses(nn.Module):
    """The usual losses, added up."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x, labels, values):
        y = self.linear(x)
        return (
            F.cross_entropy(y, labels, label_smoothing=0.1)
            + F.mse_loss(y[:, 0], values)
            + F.smooth_l1_loss(y[:, 1], values)
            + F.binary_cross_entropy_with_logits(y[:, 2], values.sigmoid())
        )


MODELS = {
    "attention": (Attention, lambda: (torch.randn(2, 5, 16, requires_grad=True),)),
    "residual": (Residual, lambda: (torch.randn(2, 3, 8, 8),)),
    "recurrent": (Recurrent, lambda: (torch.randn(4, 2, 4),)),
    "tied": (Tied, lambda: (torch.randint(0, 10, (3, 4)),)),
    "averaged": (Averaged, lambda: (torch.randn(3, 4),)),
    "losses": (Losses, lambda: (torch.randn(5, 4), torch.randint(0, 3, (5,)), torch.randn(5))),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        lambda: (torch.randn(2, 3, 8),),
    ),
    "weight_norm": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
        lambda: (torch.randn(2, 4),),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    make, inputs = MODELS[name]
    agree_module(make(), *(inputs() for _ in range(3)), graphs=1, breaks=0)
