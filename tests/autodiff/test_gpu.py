"""The stage on CUDA inputs: autograd of fake CUDA tensors stays in the calling thread."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

T = torch.Tensor


def block(x: T, w: T, b: T, g: T, t: T) -> tuple[T, T]:
    h = F.gelu(F.layer_norm(F.linear(x, w, b), (8,), g, b))
    y = h.softmax(-1) + 1
    y.mul_(2)
    return F.mse_loss(y, t), y[0]


def attention(q: T, k: T, v: T) -> T:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def convolution(x: T, w: T, g: T, b: T) -> T:
    h = F.batch_norm(F.conv2d(x, w, padding=1), None, None, g, b, True)
    return F.max_pool2d(F.relu(h), 2)


def draw(*shape: int, seed: int, dtype: torch.dtype) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to("cuda", dtype).requires_grad_()


PROGRAMS = {
    "block": (block, [(5, 8), (8, 8), (8,), (8,), (5, 8)], torch.double),
    "attention": (attention, [(2, 4, 64, 32)] * 3, torch.bfloat16),
    "convolution": (convolution, [(2, 3, 8, 8), (4, 3, 3, 3), (4,), (4,)], torch.double),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_equals_eager(name: str, staged: Any) -> None:
    fn, shapes, dtype = PROGRAMS[name]

    def make(seed: int) -> list[T]:
        return [draw(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]

    run = staged(fn, *make(0))
    tolerance = {"rtol": 1e-10, "atol": 1e-10} if dtype is torch.double else {}
    for seed in (1, 9):
        ours, eager = make(seed), make(seed)
        results, expected = run.call(*ours), fn(*eager)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for a, b in zip(results, expected, strict=True):
            torch.testing.assert_close(a, b, **tolerance)
            assert a.stride() == b.stride()
        found = torch.autograd.grad([a.sum() for a in results], ours)
        wanted = torch.autograd.grad([b.sum() for b in expected], eager)
        for a, b in zip(found, wanted):
            torch.testing.assert_close(a, b, **tolerance)
