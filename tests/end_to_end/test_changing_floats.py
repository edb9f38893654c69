"""Floats that change between calls: right for each value, with few graphs, in values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import compiler_core as cc

VALUES = (0.3, 0.5, 2.0, 3.25, -1.5, math.inf, math.nan, -0.0)


def outcome(fn: Callable[..., Any], x: torch.Tensor, *args: Any) -> tuple[Any, ...]:
    """(result, gradient) of a call, or the type and text of what it raises."""
    x = x.clone().requires_grad_(x.dtype.is_floating_point)
    try:
        result = fn(x, *args)
    except Exception as error:
        return type(error), str(error)
    tensor = result[0] if isinstance(result, tuple) else result
    if not tensor.requires_grad:
        return result, None
    return result, torch.autograd.grad(tensor.float().sum(), x, allow_unused=True)[0]


def leaves(value: Any) -> list[Any]:
    return [x for part in value for x in leaves(part)] if isinstance(value, tuple) else [value]


def same(one: Any, two: Any, message: str) -> None:
    """Equal in type and value; tensors as close as eager's own rounding."""
    assert type(one) is type(two), message
    if isinstance(one, (torch.Tensor, float)):
        torch.testing.assert_close(one, two, equal_nan=True, msg=message)
    else:
        assert one == two, message


def agrees(
    fn: Callable[..., Any], values: tuple[float, ...], x: torch.Tensor, **options: Any
) -> Any:
    """Call `fn(x, value)` compiled and plain; equal each time, without a fallback."""
    cc.reset()
    compiled = cc.compile(fn, options={"strict": True}, **options)
    for value in values:
        want, got = outcome(fn, x, value), outcome(compiled, x, value)
        for one, two in zip(leaves(got), leaves(want), strict=True):
            same(one, two, f"{value}: {got} is not {want}")
    assert cc.stats().fallbacks == 0
    return cc.stats()


KEPT: dict[str, Callable[..., Any]] = {
    "scale": lambda x, t: x * t,
    "scale from the left": lambda x, t: t * x + t,
    "divide": lambda x, t: x / t,
    "divide by": lambda x, t: t / x,
    "subtract": lambda x, t: t - x,
    "alpha": lambda x, t: torch.add(x, x, alpha=t),
    "clamp": lambda x, t: x.clamp(max=t),
    "power": lambda x, t: x.abs() ** t,
    "power of": lambda x, t: t**x,
    "slope": lambda x, t: F.leaky_relu(x, t),
    "where": lambda x, t: torch.where(x > 0, x, t),
    "compare": lambda x, t: (x > t) * x,
    "addcmul": lambda x, t: torch.addcmul(x, x, x, value=t),
    "full": lambda x, t: x + torch.full((4,), t),
    "fill": lambda x, t: x.masked_fill(x > 0, t),
    "in place": lambda x, t: (x + 1).mul_(t),
    "eps": lambda x, t: F.layer_norm(x, (4,), eps=t * t),
    "rms eps": lambda x, t: F.rms_norm(x, (4,), eps=t * t),
    "tensor": lambda x, t: x * torch.tensor(t),
    "remainder": lambda x, t: x % t,
    "product": lambda x, t: torch.addmm(x @ x.t(), x, x.t(), beta=t, alpha=t),
    "python arithmetic": lambda x, t: x * (t * 0.5**3 - abs(t)) + t / 4,
    "python kept": lambda x, t: (x * t, t * 2 + 1, -t, isinstance(t, float)),
    "softmax": lambda x, t: F.softmax(x * t, -1),
    "stack": lambda x, t: torch.stack([x * t, x - t]),
}


@pytest.mark.parametrize("name", KEPT)
def test_value_stays_symbolic(name):
    torch.manual_seed(0)
    x = torch.rand(3, 4) + 0.1
    values = VALUES[:5] if name in ("power of", "softmax") else VALUES
    assert agrees(KEPT[name], values, x).graphs <= 3


READ: dict[str, Callable[..., Any]] = {
    "branch": lambda x, t: x * t if t > 1 else x - t,
    "truth": lambda x, t: x * t if t else x,
    "int": lambda x, t: x * int(abs(t) if abs(t) < 9 else 1.0),
    "text": lambda x, t: (x * t, f"{t:.2f}"),
    "key": lambda x, t: x * {0.3: 1.0, 0.5: 2.0}.get(t, 3.0),
    "extremes": lambda x, t: x * min(t, 1.0) + max(t, 0.4),
    "square root": lambda x, t: x * math.sqrt(t),
    "logarithm": lambda x, t: x + math.log(t),
    "division by it": lambda x, t: x * (1.0 / t),
    "overflow": lambda x, t: x * (10.0 ** (t * 400)),
    "complex root": lambda x, t: x * (t**0.5).real,
    "arange": lambda x, t: x.sum() + torch.arange(0, 2, 0.5 if t > 1 else 0.25),
    "batch norm": lambda x, t: F.batch_norm(x, None, None, training=True, eps=t * t),
    "group norm": lambda x, t: F.group_norm(x[None], 1, eps=t * t),
    "attention": lambda x, t: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=t),
    "pad": lambda x, t: F.pad(x, (1, 1), value=t),
}


@pytest.mark.parametrize("name", READ)
def test_value_that_is_read_is_guarded(name):
    """The answer decides, or the operator takes a plain number: never a stale one."""
    torch.manual_seed(0)
    assert (
        agrees(READ[name], (0.3, 0.5, 2.0, -1.5, 0.5, 0.0, 2.0), torch.rand(3, 4) + 0.1).graphs > 0
    )


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool]
)
@pytest.mark.parametrize("shape", [(3, 4), ()])
def test_float_is_weak(dtype, shape):
    """It promotes as a Python number does, and is rounded where eager rounds it."""
    torch.manual_seed(0)
    x = (torch.rand(shape) * 3).to(dtype)
    for fn in (
        lambda x, t: x * t,
        lambda x, t: x / t,
        lambda x, t: x * t * t,
        lambda x, t: x > t,
    ):
        assert agrees(fn, (0.3, 0.1, 1.0001, -2.7), x).graphs <= 2


def test_integer_tensor_refuses_what_it_cannot_hold():
    x = torch.zeros(3, dtype=torch.uint8)
    agrees(lambda x, t: x.masked_fill(x == 0, t), (1.0, 2.0, 3.0, 1e9), x)


class Scaled(torch.nn.Module):
    """A float in every place that a program keeps one."""

    factor = 0.25

    def __init__(self):
        super().__init__()
        self.rate, self.table, self.row = 0.5, {"a": 0.1}, [0.2, 0.3]

    def forward(self, x):
        self.rate = self.rate * 0.9
        return x * self.rate + self.factor * self.table["a"] + self.row[1]


@pytest.mark.parametrize("backend", ["cutaway", "eager"])
def test_floats_in_every_place(backend):
    cc.reset()
    plain, inner = Scaled(), Scaled()
    compiled = cc.compile(inner, options={"strict": True}, backend=backend)
    x = torch.rand(4)
    for step in range(6):
        for module in (plain, inner):
            module.table["a"] = 0.1 + step
            module.row[1] = step / 7
        torch.testing.assert_close(compiled(x), plain(x))
        assert inner.rate == plain.rate
    assert cc.stats().graphs <= 3


def test_closure_global_and_schedule():
    space: dict[str, Any] = {"torch": torch, "rate": 0.1}
    exec("def f(x, step):\n    return x * (rate * 0.5**step) + g()", space)
    values = [0.25]
    space["g"] = lambda: values[0] * 2
    cc.reset()
    compiled = cc.compile(space["f"], options={"strict": True})
    for step in range(2, 9):
        space["rate"], values[0] = 0.1 * step, 1 / step
        x = torch.rand(3)
        torch.testing.assert_close(compiled(x, step), space["f"](x, step))
    assert cc.stats().graphs <= 3


def test_bool_and_numpy_numbers_are_not_floats():
    numpy = pytest.importorskip("numpy")
    values = (
        0.5,
        0.25,
        True,
        2,
        numpy.float64(0.5),
        numpy.float64(1.5),
        numpy.float32(0.1),
        numpy.int64(3),
    )
    cc.reset()

    def f(x, t):
        return x * t

    compiled = cc.compile(f, options={"strict": True})
    x = torch.rand(3)
    for value in (*values, *values):
        got, want = compiled(x, value), f(x, value)
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)
    assert cc.stats().fallbacks == 0


def test_float_is_an_argument_of_a_triton_kernel():
    """The evaluator of the compiled kernel reads the number from memory, in double precision."""

    def f(x, t):
        return torch.sin(x) * t + t / 3

    cc.reset()
    compiled = cc.compile(f, options={"strict": True, "also": ("cuda:90",)})
    x = torch.rand(300, requires_grad=True)
    compiled(x, 0.5)
    with cc.record(explore=True) as recorder:
        compiled(x, 0.1)
    (code,) = recorder.compilations.values()
    for value in (0.1, 1 / 3, -7.5):
        inputs = [
            value if i.name.startswith(("t", "number")) else x.detach()
            for i in code.captured.inputs
        ]
        inputs = [
            value / 3 if i.name.startswith("number") else v
            for i, v in zip(code.captured.inputs, inputs)
        ]
        want = f(x.detach(), value)
        assert torch.equal(code.part("forward", "cpu").lowered.run(*inputs)[0], want)
        torch.testing.assert_close(code.part("forward", "cuda:90").built.run(*inputs)[0], want)
