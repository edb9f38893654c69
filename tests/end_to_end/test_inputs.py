"""Inputs of every shape, layout and dtype, and values that are not numbers, against eager and float64."""

from __future__ import annotations

import math

import pytest
import torch
from agreement import agree
from torch.nn import functional as F

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def reduced(x, y):
    return (x.sin() * y).sum(-1), (x + y).mean(), x * 2


def test_empty_tensors():
    agree(reduced, (torch.randn(0, 3), torch.randn(3)), (torch.ones(0, 3), torch.zeros(3)),
          (torch.randn(2, 3), torch.randn(3)), (torch.randn(0, 3), torch.randn(3)))  # fmt: skip
    agree(reduced, *[(torch.randn(3, 0), torch.randn(3, 0))] * 3, graphs=1)


def test_tensors_without_dimensions():
    def f(x, y):
        return x.sin() + y, x.sum(), (x * y).mean()

    scalar = torch.tensor(2.5, requires_grad=True)
    agree(f, (scalar, torch.randn(())), (scalar * 2, scalar), (torch.randn(3), scalar))


@pytest.mark.parametrize(
    "layout",
    [
        lambda: torch.randn(6, 4).t(),
        lambda: torch.randn(8, 7)[::2, 1:],
        lambda: torch.randn(1, 6).expand(4, 6),
        lambda: torch.randn(4, 1).expand(4, 6),
        lambda: torch.randn(()).expand(4, 6),
        lambda: torch.randn(24).as_strided((4, 6), (1, 3)),  # rows overlap
        lambda: torch.randn(4, 12)[:, ::2],
        lambda: torch.randn(30)[3:27].view(4, 6),
    ],
    ids=[
        "transposed",
        "sliced",
        "rows",
        "columns",
        "one_element",
        "overlapping",
        "steps",
        "offset",
    ],
)
def test_strided_inputs(layout):
    def f(x, y):
        return x * y + 1, (x - y).amax(0), x.relu().sum(1)

    plain = torch.randn(4, 6)
    agree(f, (layout(), plain), (plain, layout()), (layout(), layout()), breaks=0)


def test_strided_inputs_with_gradients():
    def f(x, y):
        return (x * y).exp().sum(0)

    x = torch.randn(6, 4).t().requires_grad_()
    y = torch.randn(1, 6).expand(4, 6).requires_grad_()
    agree(f, (x, y), (y, x), (x, torch.randn(4, 6)), breaks=0)


def test_flips_and_rolls():
    def f(x):
        return x.flip(0, 1) * 2, x.roll(1, 0) + x.flip(-1)

    agree(
        f, (torch.randn(3, 4),), (torch.randn(4, 3).t(),), (torch.randn(3, 4, requires_grad=True),)
    )


def test_channels_last():
    def f(x, w):
        y = F.conv2d(x, w, padding=1).relu()
        return y, y.mean((2, 3)), F.max_pool2d(x, 2)

    x, w = torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3)
    last = x.to(memory_format=torch.channels_last)
    agree(f, (last, w), (x, w), (last * 2, w.to(memory_format=torch.channels_last)))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype):
    def f(x, y):
        return (x + y * 3, x // y, x % y, -x, x > y, x.sum(0), x.amax(1), x / y, x * 2.5, x & y,
                x << 1, torch.where(x > y, x, y))  # fmt: skip

    x = torch.randint(0, 100, (5, 6)).to(dtype)
    y = torch.randint(1, 9, (5, 6)).to(dtype)
    agree(f, (x, y), (x + 50, y), (y, x + 1), graphs=1, breaks=0)


def test_integers_that_float64_cannot_hold():
    def f(x):
        return x + 1, x.sum(0), x.amax(), x // 3, x % 10

    x = torch.tensor([2**53 + 1, -(2**62) - 1, 7, 2**63 - 2])
    agree(f, (x,), (x - 4,), (x.flip(0),), graphs=1)


def test_booleans():
    def f(x, y):
        return (x & y, x | y, ~x, x ^ y, x.sum(), x.any(0), x.all(1), x * 1.5,
                torch.where(x, y.int(), 7), x.float().mean())  # fmt: skip

    x = torch.rand(5, 6) > 0.5
    agree(f, (x, ~x), (~x, x), (x, x.clone()), graphs=1, breaks=0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype):
    def f(x, y):
        return torch.softmax(x * y, -1), (x.exp() + y).sum(0), x.square().mean(), x.sigmoid() - y

    x = torch.randn(5, 6, dtype=dtype).requires_grad_()
    y = torch.randn(6, dtype=dtype).requires_grad_()
    agree(f, (x, y), (x * 2, y), (x.detach(), y.detach()), breaks=0)


def test_mixed_dtypes_are_promoted():
    def f(x, y, n):
        return x + y, x * n, y / n, (x > y).float() * 2, x.half() + y

    values = [torch.randn(4).to(d) for d in (torch.bfloat16, torch.float32, torch.float64)]
    whole = torch.tensor([1, 2, 3, 4])
    agree(f, *[(x, y, whole) for x in values for y in values[:2]], breaks=0)


def test_complex_numbers():
    def f(x, y):
        return (x * y).abs() + x.real, x.conj_physical() * 2, x.imag - 1

    x = torch.randn(4, 4, dtype=torch.complex64)
    agree(f, (x, x * 2), (x.t(), x), (x.to(torch.complex128), x), backward=False)


def test_fourier_transform_between_generated_code():
    def f(x):
        return torch.fft.rfft(x * 2).abs().sin() + 1

    agree(f, (torch.randn(8),), (torch.randn(8),), (torch.randn(8, requires_grad=True),))


def test_nan_and_infinity():
    def f(x):
        return (x.relu(), x.amax(), x.max(0), x.sum(), torch.maximum(x, -x), x.clamp(-1, 1),
                x.sign(), torch.where(x > 0, x, -x), x.sqrt(), x.log(), x.exp(), x.isnan(), x.argmax(),
                torch.softmax(x, 0), x.isinf(), x == x, x.floor(), torch.nan_to_num(x))  # fmt: skip

    x = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -3.0, 1e30])
    agree(f, (x,), (x[1:].clone(),), (x[3:].clone(),), (x.flip(0),), breaks=0)


def test_negative_zero_keeps_its_sign():
    def f(x):
        return 1 / (x * 1.0), 1 / -x, x.copysign(-x)

    zeros = torch.tensor([0.0, -0.0, 1.0])
    agree(f, (zeros,), (-zeros,), (zeros * 2,), graphs=1)
