"""torch.cond and torch.while_loop in one graph: values and gradients of eager, whichever branch is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from agreement import STRICT
from torch import nn
from torch._higher_order_ops import while_loop

import compiler_core as cc

T = torch.Tensor
torch.manual_seed(0)
LAYER = nn.Linear(4, 4)


def chooses(x: T) -> T:
    scale = 3

    def one(t: T) -> T:
        return t.sin() * scale

    made: T = torch.cond(x.sum() > 4, one, lambda t: t.cos(), (x * 2,))
    return made * 2


def chooses_twice(x: T) -> T:
    def inner(t: T) -> T:
        made: T = torch.cond(t.max() > 1, lambda u: u * x, lambda u: u * 3, (t,))
        return made.sin()

    made: T = torch.cond(x.sum() > 1, inner, lambda t: t.cos(), (x * 2,))
    return made * 2


def uses_a_module(x: T) -> T:
    return torch.cond(x.sum() > 4, lambda t: LAYER(t[:4]).relu(), lambda t: t[:4] * 2, (x,))


def several_results(x: T) -> T:
    def one(t: T) -> tuple[T, T]:
        return t * 2, (t * t).sum()

    a, b = torch.cond(x.sum() > 4, one, lambda t: (t.exp(), t.sum() * 2), (x,))
    return a * b


def reads_a_list(x: T) -> T:
    parts = [x.sin(), x.cos()]
    made: T = torch.cond(
        x.sum() > 4, true_fn=lambda: parts[0] * parts[1], false_fn=lambda: parts[1] * 2
    )
    return made + 1


def reads_a_size(x: T) -> T:
    n = x.shape[0]

    def other(t: T) -> T:
        return t.reshape(n, 1).expand(n, n).mean(0) * n

    return torch.cond(x.sum() > 4, lambda t: t.sin() * n, other, (x * 2,))


def works_in_place(x: T) -> T:
    made: T = torch.cond(
        x.sum() > 4, lambda t: t.sin().mul_(t).add_(1), lambda t: t.cos(), (x * 2,)
    )
    return made * 2


def one_after_the_other(x: T) -> T:
    y = torch.cond(x.sum() > 4, lambda t: t.sin(), lambda t: t.cos(), (x,))
    made: T = torch.cond(y.sum() > 1, lambda t: t.sin() + y, lambda t: t.exp() - y, (y,))
    return made


def never_differentiable_there(x: T) -> T:
    with torch.no_grad():
        y = torch.cond(x.sum() > 4, lambda t: t.sin(), lambda t: t.cos(), (x,))
    return y * x


def repeats(x: T) -> T:
    def body(i: T, t: T, total: T) -> tuple[T, T, T]:
        return i + 1, t * 1.5, total + t @ LAYER.weight

    def goes_on(i: T, t: T, total: T) -> T:
        return (i < 5) & (total.sum() < 6)

    start = torch.zeros((), dtype=torch.int64)
    count, last, total = while_loop(goes_on, body, (start, x.abs().sin(), x * 0))
    return total + last * count


CONDITIONS = [
    chooses, chooses_twice, uses_a_module, several_results, reads_a_list, reads_a_size, works_in_place,
    one_after_the_other, never_differentiable_there,
]  # fmt: skip


def example(number: int, size: int = 4, dtype: torch.dtype = torch.float32) -> T:
    torch.manual_seed(number)
    x = torch.rand(size) * (3 if number % 2 else 0.2)
    return x.to(dtype).requires_grad_()


def run(fn: Callable[[T], T], x: T) -> tuple[Any, ...]:
    LAYER.to(x.dtype).zero_grad()
    y = fn(x)
    y.sum().backward()
    weight = LAYER.weight.grad
    return y.detach(), x.grad, None if weight is None else weight.clone()


def assert_alike(ours: Sequence[Any], eager: Sequence[Any], exact: Sequence[Any]) -> None:
    for mine, other, true in zip(ours, eager, exact, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other)
            torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["cutaway", "eager"])
@pytest.mark.parametrize("fn", CONDITIONS, ids=lambda f: f.__name__)
def test_both_branches_in_one_graph(fn: Callable[[T], T], backend: str) -> None:
    compiled = cc.compile(fn, backend=backend, fullgraph=True, options=STRICT)
    before = cc.stats()
    for number in range(4):
        ours, eager = (run(f, example(number)) for f in (compiled, fn))
        assert_alike(ours, eager, run(fn, example(number, dtype=torch.float64)))
        LAYER.float()
    now = cc.stats()
    assert (now.graphs - before.graphs, now.fallbacks - before.fallbacks) == (1, 0)


@pytest.mark.parametrize("fn", [chooses, reads_a_size, chooses_twice], ids=lambda f: f.__name__)
def test_sizes_that_change_are_symbols_in_branches_too(fn: Callable[[T], T]) -> None:
    compiled = cc.compile(fn, fullgraph=True, options=STRICT)
    before = cc.stats()
    for number, size in enumerate((4, 6, 7, 9, 12)):
        ours, eager = (run(f, example(number, size)) for f in (compiled, fn))
        assert_alike(ours, eager, run(fn, example(number, size, torch.float64)))
        LAYER.float()
    now = cc.stats()
    assert (now.graphs - before.graphs, now.fallbacks - before.fallbacks) == (2, 0)


@pytest.mark.parametrize("backend", ["cutaway", "eager"])
def test_a_loop_runs_as_often_as_its_values_say(backend: str) -> None:
    compiled = cc.compile(repeats, backend=backend, fullgraph=True, options=STRICT)
    before = cc.stats()
    for number in range(4):
        with torch.no_grad():
            torch.testing.assert_close(compiled(example(number)), repeats(example(number)))
    assert cc.stats().graphs == before.graphs + 1 and cc.stats().fallbacks == before.fallbacks


def test_a_second_gradient_goes_through_the_branch() -> None:
    compiled = cc.compile(chooses, fullgraph=True, options=STRICT)
    for number in range(3):  # torch's own has no second gradient: the formula is the reference
        x = example(number)
        (slope,) = torch.autograd.grad(compiled(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(slope.sum(), x)
        x = x.detach()
        true = -24 * (2 * x).sin() if x.sum() > 4 else -8 * (2 * x).cos()
        torch.testing.assert_close(second, true)


def test_a_predicate_that_python_knows_chooses_with_a_guard() -> None:
    def f(x: T, flag: bool) -> T:
        made: T = torch.cond(flag, lambda t: t.sin(), lambda t: t.cos(), (x,))
        return made

    compiled = cc.compile(f, fullgraph=True, options=STRICT)
    before = cc.stats()
    for flag in (True, False, True, False):
        x = example(3).detach()
        torch.testing.assert_close(compiled(x, flag), x.sin() if flag else x.cos())
    assert cc.stats().graphs == before.graphs + 2


def test_every_stage_has_the_operator_and_the_branch_has_its_lines() -> None:
    compiled = cc.compile(chooses, options=STRICT)
    with cc.record() as recorder:
        run(compiled, example(1))
    (frame,) = recorder.recording.frames
    stages = {s.name: s for s in frame.versions[0].stages}
    for stage in ("capture", "joint", "forward", "backward"):
        assert "def true_graph_" in stages[stage].text, (stage, list(stages))
    (node,) = (i for i in stages["capture"].items if i.data["target"] == "cutaway.cond.default")
    lines = {by.lines for by in stages["bytecode"].items if by.handle in node.origins}
    assert len(lines) >= 3  # the call's own, and that of either branch
    reasons = [d.reason for d in frame.versions[0].decisions if d.kind == "library"]
    assert any("branch" in reason for reason in reasons)


REFUSED: list[tuple[str, Callable[[T], Any]]] = [
    ("a branch writes", lambda t: t.mul_(2)),
    ("memory of an operand", lambda t: t),
    ("differ", lambda t: t[:2].sin()),
    ("other than a tensor", lambda t: 3),
    ("raises", lambda t: t.sin() + {}["a"]),
]


@pytest.mark.parametrize("detail, branch", REFUSED, ids=[d for d, _ in REFUSED])
def test_what_a_graph_may_not_do_is_torchs_affair(detail: str, branch: Callable[[T], Any]) -> None:
    def f(x: T) -> Any:
        return torch.cond(x.sum() > 0.1, branch, lambda t: t.cos(), (x * 2,))

    compiled = cc.compile(f, options=STRICT)
    with cc.record() as recorder:
        for number in range(3):
            found = []
            for fn in (compiled, f):
                try:
                    found.append(str(type(fn(example(number).detach()))))
                except Exception as error:
                    found.append(type(error).__name__)
            assert found[0] == found[1]
    decisions = [d for f in recorder.recording.frames for v in f.versions for d in v.decisions]
    assert any(d.outcome == "CC187" and detail in d.reason for d in decisions)
