"""Operators that take functions, and Python classes of autograd: right, and the break says which one it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from agreement import STRICT
from torch import nn

import compiler_core as cc

T = torch.Tensor
LAYER = nn.Linear(4, 4)


def draws(x: T) -> T:
    made: T = torch.cond(x.sum() > 0.5, lambda t: t + torch.rand(4), lambda t: t.cos(), (x * 2,))
    return made * 2


def batched(x: T) -> T:
    return torch.func.vmap(lambda t: (t**3).sum())(x[None].sin()) * 2


def slope(x: T) -> T:
    return torch.func.grad(lambda t: (t**3).sum())(x.sin()) * 2


def forward_slope(x: T) -> T:
    return torch.func.jvp(lambda t: t**3, (x.sin(),), (x,))[1] * 2


def other_weights(x: T) -> T:
    weights = {name: value * 2 for name, value in LAYER.named_parameters()}
    made: T = torch.func.functional_call(LAYER, weights, (x,))
    return made * 2


class Tilted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: T) -> T:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: T) -> T:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient + 1


def own_gradient(x: T) -> T:
    made: T = Tilted.apply(x * 2)
    return made.sin()


def whole_jacobian(x: T) -> T:
    made: T = torch.autograd.functional.jacobian(lambda t: t**3, x.sin(), create_graph=True)
    return made * 2


PROGRAMS: list[tuple[Callable[[T], T], str, str]] = [
    (draws, "CC187", "a branch draws random numbers"),
    (batched, "CC166", "vmap"),
    (slope, "CC166", "grad"),
    (forward_slope, "CC166", "jvp"),
    (other_weights, "CC166", "functional_call"),
    (own_gradient, "CC180", "Function.apply"),
    (whole_jacobian, "CC118", "jacobian"),
]


def run(fn: Callable[[T], T], number: int, grad: bool) -> tuple[Any, ...]:
    LAYER.zero_grad()
    torch.manual_seed(number)
    x = (torch.rand(4) * (1 + number)).requires_grad_(grad)
    y = fn(x)
    if grad:
        y.sum().backward()
    return y.detach(), x.grad, LAYER.weight.grad, torch.get_rng_state()


@pytest.mark.parametrize("fn, code, name", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_it_runs_natively_and_the_break_names_it(
    fn: Callable[[T], T], code: str, name: str
) -> None:
    compiled = cc.compile(fn, options=STRICT)
    before = cc.stats()
    with cc.record() as recorder:
        for number in range(4):
            ours, eager = (run(f, number, grad=True) for f in (compiled, fn))
            for mine, other in zip(ours, eager, strict=True):
                assert (mine is None) == (other is None)
                if mine is not None:
                    torch.testing.assert_close(mine, other)
    assert cc.stats().graphs >= before.graphs + 2 and cc.stats().fallbacks == before.fallbacks
    decisions = [d for f in recorder.recording.frames for v in f.versions for d in v.decisions]
    assert any(d.kind == "break" and d.outcome == code and name in d.reason for d in decisions)


def test_branches_that_do_not_match_raise_as_in_eager() -> None:
    def f(x: T) -> T:
        made: T = torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: (t, t), (x * 2,))
        return made

    compiled = cc.compile(f, options=STRICT)
    for _ in range(3):
        errors = []
        for fn in (f, compiled):
            with pytest.raises(Exception) as caught:  # noqa: PT011  (which one is torch's affair)
                fn(torch.ones(4))
            errors.append(type(caught.value))
        assert errors[0] is errors[1]
