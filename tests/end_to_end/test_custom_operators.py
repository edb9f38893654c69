"""Operators that the user registered: one call in the generated program, or a break that says why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc

T = torch.Tensor


@torch.library.custom_op("cutaway_tests::double", mutates_args=())
def double(x: T) -> T:
    return x * 2


double.register_fake(torch.empty_like)
double.register_autograd(lambda ctx, gradient: gradient * 2)


@torch.library.custom_op("cutaway_tests::shapeless", mutates_args=())
def shapeless(x: T) -> T:
    return x * 2


@torch.library.custom_op("cutaway_tests::double_", mutates_args=("x",))
def double_(x: T) -> None:
    x.mul_(2)


def by_function(x: T) -> T:
    return double(x.sin()) * 2


def by_name(x: T) -> T:
    made: T = torch.ops.cutaway_tests.double(x.sin()) * 2
    return made


def without_a_fake(x: T) -> T:
    return shapeless(x.sin()) * 2


def writes(x: T) -> T:
    y = x.sin()
    double_(y)
    return y * 2


@pytest.mark.parametrize("fn", [by_function, by_name])
def test_an_operator_with_a_fake_is_a_call_of_the_program(fn: Callable[[T], T]) -> None:
    compiled = cc.compile(fn, options=STRICT)
    with compiling(graphs=1, breaks=0, ops_library=1):
        for number in range(3):
            x, z = (torch.full((4,), 0.5 + number, requires_grad=True) for _ in range(2))
            y, w = compiled(x), fn(z)
            torch.testing.assert_close(y, w)
            y.sum().backward(), w.sum().backward()
            torch.testing.assert_close(x.grad, z.grad)


@pytest.mark.parametrize("fn, reason", [(without_a_fake, "CC153"), (writes, "CC186")])
def test_others_break(fn: Callable[[T], T], reason: str) -> None:
    compiled = cc.compile(fn, options=STRICT)
    with cc.record() as recorder, compiling(graphs=2, breaks=1):
        for number in range(3):
            x = torch.full((4,), 0.5 + number)
            torch.testing.assert_close(compiled(x), fn(x))
    decisions = [d for f in recorder.recording.frames for v in f.versions for d in v.decisions]
    (found,) = [d for d in decisions if d.kind == "break"]
    assert found.outcome == reason and "cutaway_tests" in found.reason
