"""Small programs that several tests compile, and the layer that the module tests use."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def wave(x, y):
    return torch.sin(x) * y + torch.cos(y)


def printing(x):
    """Breaks at the print: two graphs."""
    y = x.sin() + 1
    print("between")
    return y * 2


class Layer(torch.nn.Module):
    """Parameters, a buffer that training writes, and a branch on the training flag."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        y = self.norm(self.linear(x))
        if self.training:
            y = y * 2
        return torch.relu(y) + self.shift


def softmax_of_scores(q, k):
    return F.softmax(q @ k.transpose(-2, -1) / 2.0, dim=-1)


def normalised(x, weight, bias):
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias


def joined(x, y):
    return torch.cat([x.relu(), y * 2, x[:, :1]], dim=1).sum(0)


def chosen(x, y):
    return torch.where(x > y, x.exp(), y.neg()).amax(1)


def picked(table, rows):
    return table[rows].tanh() * table[0]


def spread(x, y):
    return (x[:, None] + y[None, :]).sigmoid().sum(dim=(0, 1))
