"""A compiled backward pass that is itself differentiated: the captured graph runs again, as the call left it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from agreement import STRICT, compiling
from torch import nn

import compiler_core as cc

T = torch.Tensor
BUFFER = torch.zeros(5)
torch.manual_seed(2)
NORM = nn.BatchNorm1d(5)
WEIGHT = torch.rand(5, 5)
TRIPLED: list[int] = []


def counted(x: T) -> T:
    BUFFER.add_(1)
    return (x**3 + BUFFER).sin()


def counted_after(x: T) -> T:
    y = (x**3 + BUFFER).sin()
    BUFFER.add_(1)
    return y


def normalised(x: T) -> T:
    made: T = NORM(x) * x
    return made


def two_views(x: T) -> tuple[T, T]:
    y = x**3
    return y[0], y[1:]


def cast(x: T) -> T:
    return (x @ WEIGHT).float().pow(3)


def written_inside(x: T) -> T:
    y = x * 2
    y.mul_(x)
    return y.sin()


def masked(x: T) -> T:
    return F.dropout(x**3, 0.5) * torch.rand_like(x)


PROGRAMS = [counted, counted_after, normalised, two_views, cast, written_inside, masked]


def penalty(fn: Callable[[T], Any], number: int) -> list[T]:
    """Outputs, gradient, gradient of the gradient, and the state behind it."""
    BUFFER.zero_()
    NORM.reset_running_stats()
    torch.manual_seed(number)
    x = torch.rand(6, 5).requires_grad_()
    result = fn(x)
    y = result if isinstance(result, torch.Tensor) else result[1]
    torch.rand(3)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad((g * g).sum(), x)
    return [
        y.detach(),
        g.detach(),
        gg,
        BUFFER.clone(),
        NORM.running_mean.clone(),
        torch.get_rng_state(),
    ]


def agree(
    run: Callable[[Callable[[T], Any], int], list[T]], fn: Callable[[T], Any], **counts: Any
) -> None:
    eager = [run(fn, number) for number in range(3)]
    with compiling(**counts):
        compiled = cc.compile(fn, options=STRICT)
        ours = [run(compiled, number) for number in range(3)]
    for number, rows in enumerate(zip(ours, eager)):
        for place, (mine, other) in enumerate(zip(*rows, strict=True)):
            torch.testing.assert_close(mine, other, msg=lambda m, p=(number, place): f"{p}: {m}")


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_second_gradients_are_eagers(fn: Callable[[T], Any]) -> None:
    def run(f: Callable[[T], Any], number: int) -> list[T]:
        if fn is not cast:
            return penalty(f, number)
        with torch.autocast("cpu", torch.bfloat16):
            return penalty(f, number)

    agree(run, fn, graphs=1, breaks=0)


def test_autocast_at_the_backward_is_not_that_of_the_call() -> None:
    def run(f: Callable[[T], T], number: int) -> list[T]:
        x = torch.full((6, 5), 0.3 + number).requires_grad_()
        y = f(x)
        with torch.autocast("cpu", torch.bfloat16):
            (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return [y.detach(), g.detach(), *torch.autograd.grad(g.square().sum(), x)]

    agree(run, cast, graphs=1)


def test_a_hook_on_an_input_runs_once_for_each_gradient() -> None:
    def run(f: Callable[[T], T], number: int) -> list[T]:
        TRIPLED.clear()
        x = torch.rand(6, 5, generator=torch.Generator().manual_seed(number)).requires_grad_()
        h = x * 2
        h.register_hook(lambda g: (TRIPLED.append(1), g * 3)[1])
        (g,) = torch.autograd.grad(f(h).sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.square().sum(), x)
        return [g.detach(), gg, torch.tensor(len(TRIPLED))]

    agree(run, lambda x: (x**3).sin(), graphs=1)


def test_weights_that_the_caller_made_and_dropped() -> None:
    layer = nn.Linear(5, 1)

    def run(f: Callable[..., T], number: int) -> list[T]:
        layer.zero_grad()
        x = torch.full((6, 5), 0.3 + number).requires_grad_()
        y = f(x, layer.weight * 2, layer.bias * 3)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.square().sum().backward()
        return [p.grad.clone() for p in layer.parameters()]

    agree(run, lambda x, w, b: F.linear(x, w, b).sin() * 2, graphs=1)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x**3).sin(),
        lambda x: F.softmax(x * 2, -1) * x,
        lambda x: F.layer_norm(x, (4,)) * x,
    ],
    ids=["pointwise", "softmax", "layer_norm"],
)
def test_second_gradients_by_finite_differences(fn: Callable[[T], T]) -> None:
    compiled = cc.compile(fn, options=STRICT)
    x = torch.rand(3, 4, dtype=torch.double).requires_grad_()
    with compiling(graphs=1, breaks=0):
        assert torch.autograd.gradcheck(compiled, (x,))
        assert torch.autograd.gradgradcheck(compiled, (x,))


def test_a_third_gradient() -> None:
    def run(f: Callable[[T], T], number: int) -> list[T]:
        x = torch.full((4,), 0.3 + number).requires_grad_()
        g = f(x)
        for _ in range(3):
            (g,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        return [g.detach()]

    agree(run, lambda x: x**5, graphs=1)


def takes_a_gradient(x: T) -> T:
    y = (x**3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * 2


def makes_a_leaf(x: T) -> T:
    z = torch.ones(5, requires_grad=True)
    return z * x.sum()


@pytest.mark.parametrize("fn", [takes_a_gradient, makes_a_leaf])
def test_autograd_inside_is_left_to_eager(fn: Callable[[T], T]) -> None:
    def run(f: Callable[[T], T], number: int) -> list[T]:
        x = torch.full((5,), 0.3 + number).requires_grad_(fn is takes_a_gradient)
        y = f(x)
        assert y.requires_grad
        y.sum().backward()
        return [y.detach()] + ([x.grad] if x.requires_grad else [])

    before = cc.stats()
    agree(run, fn)
    assert cc.stats().breaks > before.breaks
