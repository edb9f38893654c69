"""Four small models of the kinds that people train, and example batches for them.

In: sizes. Out: modules whose forward gives a loss, written as in any tutorial: a causal transformer, a residual
convolutional network with batch norm, a recurrent cell by hand, a U-Net. `*_batch(n, seed)` makes inputs.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

__all__ = [
    "Recurrent", "ResidualNetwork", "Transformer", "UNet", "images_batch", "masks_batch", "series_batch",
    "tokens_batch",
]  # fmt: skip

Pair = tuple[torch.Tensor, torch.Tensor]

VOCABULARY, CONTEXT = 48, 8


class Attention(nn.Module):
    """Causal self-attention with the mask and the softmax written out (Vaswani et al. 2017)."""

    causal: torch.Tensor

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("causal", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        size = width // self.heads
        q, k, v = (
            part.view(batch, length, self.heads, size).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(size)
        scores = scores.masked_fill(~self.causal[:length, :length], float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and a perceptron, each after a layer norm and beside a shortcut."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Transformer(nn.Module):
    """A language model: its output layer is its token embedding; the loss is on the next tokens."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, VOCABULARY), following.view(-1))


class Residual(nn.Module):
    """Two convolutions with batch norm beside a shortcut (He et al. 2015)."""

    def __init__(self, inner: int, outer: int, stride: int):
        super().__init__()
        self.conv_1 = nn.Conv2d(inner, outer, 3, stride, padding=1, bias=False)
        self.conv_2 = nn.Conv2d(outer, outer, 3, padding=1, bias=False)
        self.norm_1, self.norm_2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or inner != outer:
            convolution = nn.Conv2d(inner, outer, 1, stride, bias=False)
            self.short = nn.Sequential(convolution, nn.BatchNorm2d(outer))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm_1(self.conv_1(x)))
        return F.relu(self.norm_2(self.conv_2(y)) + self.short(x))


class ResidualNetwork(nn.Module):
    """A small residual classifier: max pooling, a residual block, the average of each channel."""

    def __init__(self, classes: int = 10):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.blocks = nn.Sequential(Residual(8, 16, stride=2))
        self.head = nn.Linear(16, classes)

    def forward(self, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.pool(F.relu(self.norm(self.stem(x)))))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.cross_entropy(self.head(x), label)


class Recurrent(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) over the steps of a series, and a regression on its last state."""

    def __init__(self, width: int = 12, hidden: int = 24):
        super().__init__()
        self.hidden = hidden
        self.from_input = nn.Linear(width, 3 * hidden)
        self.from_hidden = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, 1)

    def cell(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        r_x, z_x, n_x = self.from_input(x).chunk(3, dim=-1)
        r_h, z_h, n_h = self.from_hidden(h).chunk(3, dim=-1)
        r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
        n = torch.tanh(n_x + r * n_h)
        return (1 - z) * n + z * h

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], self.hidden)
        for step in range(x.shape[1]):
            h = self.cell(x[:, step], h)
        return F.mse_loss(self.out(h).squeeze(-1), target)


class UNet(nn.Module):
    """Down by average pooling, up by interpolation, with skip connections (Ronneberger et al. 2015)."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.down_1 = nn.Conv2d(1, width, 3, padding=1)
        self.down_2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.middle = nn.Conv2d(2 * width, 2 * width, 3)
        self.up_2 = nn.Conv2d(4 * width, width, 3, padding=1)
        self.up_1 = nn.Conv2d(2 * width, width, 3, padding=1)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        a = F.relu(self.down_1(x))
        b = F.relu(self.down_2(F.avg_pool2d(a, 2)))
        c = F.relu(self.middle(F.pad(F.avg_pool2d(b, 2), (1, 1, 1, 1))))
        c = F.interpolate(c, scale_factor=2, mode="nearest")
        d = F.relu(self.up_2(torch.cat([b, c], dim=1)))
        d = F.interpolate(d, scale_factor=2, mode="bilinear", align_corners=False)
        e = F.relu(self.up_1(torch.cat([a, d], dim=1)))
        return F.binary_cross_entropy_with_logits(self.out(e), mask)


def tokens_batch(n: int, seed: int) -> Pair:
    """Tokens and the ones that follow, (n, CONTEXT) int64 each."""
    both = torch.randint(0, VOCABULARY, (n, CONTEXT + 1), generator=_generator(seed))
    return both[:, :-1].contiguous(), both[:, 1:].contiguous()


def images_batch(n: int, seed: int) -> Pair:
    """Images (n, 3, 16, 16) and labels (n,) below 10."""
    generator = _generator(seed)
    x = torch.randn(n, 3, 16, 16, generator=generator)
    return x, torch.randint(0, 10, (n,), generator=generator)


def series_batch(n: int, seed: int) -> Pair:
    """Series (n, 6 steps, 12) and a number for each, (n,)."""
    generator = _generator(seed)
    return torch.randn(n, 6, 12, generator=generator), torch.randn(n, generator=generator)


def masks_batch(n: int, seed: int) -> Pair:
    """Images (n, 1, 16, 16) and masks of zeros and ones of that shape."""
    generator = _generator(seed)
    x, y = (torch.randn(n, 1, 16, 16, generator=generator) for _ in range(2))
    return x, (y > 0).float()


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
