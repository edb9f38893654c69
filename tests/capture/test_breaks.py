"""Graph breaks: each kind, its line, and that the program goes on behind it as plain Python would."""

from __future__ import annotations

import contextlib

import pytest
import torch
from capturing import agree, captured
from torch import nn

from compiler_core.capture import breaks
from compiler_core.errors import CATALOGUE

ONE = torch.ones(3)


def line_of(fn, text: str) -> int:
    import inspect

    lines, first = inspect.getsourcelines(fn)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_tensor_branch_compiles_both_ways():
    def f(x):
        y = x * 2
        if y.sum() > 0:  # branch
            z = y + 1
        else:
            z = y - 1
        return z * y

    log = agree(lambda: f, [(ONE,), (-ONE,), (ONE * 3,), (-ONE * 2,)])
    assert log.graphs == 3 and log.kinds == ["CC101"]
    info = log.breaks[0]
    assert info.where.line == line_of(f, "# branch") and len(info.resumes) == 2
    assert info.alive == ("y",) and info.stack == (f"test_breaks.py:{info.where.line} in f",)


def prints(x):
    y = x + 1
    print("y", end="")
    return y * 2


def reads_item(x):
    return x * (x + 1).sum().item()


def reads_float(x):
    return x * float(x.sum()) + int(x[0])


def reads_list(x):
    return [v * 2 for v in (x + 1).tolist()], x * 3


def selects(x):
    y = x * 2
    return y[y > 0].sum() + 1


def finds(x):
    return torch.nonzero(x + 1).sum() * 2


def draws(x):
    torch.manual_seed(3)
    return x * torch.rand(3) + torch.randn_like(x)


def differentiates(x):
    y = (x * 2).requires_grad_()
    (g,) = torch.autograd.grad((y * y).sum(), y)
    return g * 2


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x


def applies(x):
    return Square.apply(x + 1) * 2


apply_square = Square.apply


def applies_bound(x):
    return apply_square(x + 1) * 2


def formats(x):
    y = x + 1
    return f"{y}", y * 2


def defines_a_class(x):
    class Local:
        v = 3

    return x * Local.v


def identifies(x):
    return (id(x) == id(x)), x + 1


def expands(x):
    try:
        y = (x * 2).expand(7, 7)
    except RuntimeError:
        y = x + 1
    return y * 2


def catches_native(x):
    def fails():
        print(end="")
        return 1 // 0

    y = x + 1
    try:
        y = y * fails()
    except ZeroDivisionError:
        y = y - 5
    return y * 2


def in_with(x):
    log = []

    class Manager:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *exc):
            log.append("out")

    with Manager():
        y = x * 2
        print(end="")
        y = y + 1
    return y, log


@contextlib.contextmanager
def scope(log):
    log.append("in")
    try:
        yield 5
    finally:
        log.append("out")


def in_generator_manager(x):
    log = []
    with scope(log) as k:
        y = x * k
        print(end="")
        y = y + 1
    return y, log


def in_handler(x):
    y = x + 1
    try:
        raise ValueError
    except ValueError:
        print(end="")
        y = y * 2
    return y


def in_callee(x):
    def g(v):
        w = v + 1
        print(end="")
        return w * 2

    a = x * 3
    return g(a) + a


def in_loop(x):
    out = []
    for i in range(6):
        x = x + 1
        print(end="")
        out.append(x * i)
    return x, out


def with_cells(x):
    n = 1

    def inc():
        nonlocal n
        n += 1
        return n

    inc()
    print(end="")
    inc()
    return x * n, inc()


def short_circuits(x):
    a = x.sum() > 1 and x.mean() < 5
    return a, not x.sum(), 1 if x.sum() > 0 else 2


def while_tensor(x):
    n = 0
    while x.sum() < 20:
        x = x * 2
        n += 1
    return x, n


PROGRAMS = [
    (prints, ["CC103"], 2),
    (reads_item, ["CC102"], 2),
    (reads_float, ["CC138", "CC138"], 3),
    (reads_list, ["CC137"], 2),
    (selects, ["CC107"], 2),
    (finds, ["CC150"], 2),
    (draws, ["CC121"], 1),
    (differentiates, ["CC182", "CC118"], 3),
    (applies, ["CC180"], 3),
    (applies_bound, ["CC180"], 3),
    (formats, ["CC141"], 2),
    (identifies, ["CC123", "CC123"], 1),
    (expands, ["CC110"], 1),
    (catches_native, ["CC103"], 1),
    (in_with, ["CC103"], 2),
    (in_generator_manager, ["CC114"], 2),
    (in_handler, ["CC103"], 1),
    (in_callee, ["CC103"], 4),
    (in_loop, ["CC103"], 6),
    (with_cells, ["CC103"], 1),
    (short_circuits, ["CC132", "CC132", "CC101"], 3),
    (while_tensor, ["CC130"], 3),
]


@pytest.mark.parametrize("fn, kinds, graphs", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_break(fn, kinds, graphs, capsys):
    log = agree(lambda: fn, [(ONE,), (ONE * 2,), (ONE,)])
    assert [k for k in log.kinds if k in kinds][: len(kinds)] == kinds, log.kinds
    assert log.graphs >= graphs and log.graph_calls > log.graphs, (log.graphs, log.graph_calls)


def test_uncaught_exception_is_the_plain_one():
    seen = []

    def f(x, n):
        y = x + 1
        seen.append(n)
        if n < 0:
            raise ValueError(f"bad {n}")
        return y

    log = agree(lambda: f, [(ONE, -1), (ONE, 1), (ONE, -1)], state=lambda fn: None)
    assert "CC108" in log.kinds
    assert seen == [-1, -1, 1, 1, -1, -1]  # plain Python's call and ours, each time


def test_traceback_names_the_users_line():
    import traceback

    def f(x):
        y = x + 1
        raise KeyError("here")  # raises
        return y

    wrapped, _, _ = captured(f)
    with pytest.raises(KeyError) as caught:
        wrapped(ONE)
    lines = [entry.lineno for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert line_of(f, "# raises") in lines


def test_dropout_is_part_of_the_graph():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(x * 2) + 1

    net = Net()

    def f(x):
        torch.manual_seed(0)
        return net(x)

    log = agree(lambda: f, [(ONE,), (ONE,)])
    assert log.kinds == ["CC121"]
    net.eval()
    log = agree(lambda: lambda x: net(x), [(ONE,), (ONE,)])
    assert log.kinds == [] and log.graphs == 1


def test_a_class_statement_breaks():
    log = agree(lambda: defines_a_class, [(ONE,), (ONE,)])
    assert log.kinds[:2] == ["CC173", "CC173"] and log.graphs >= 1


def test_every_kind_has_an_explanation_and_two_hints():
    kinds = [
        k for code, k in CATALOGUE.items() if code.startswith("CC1") and hasattr(breaks, "Break")
    ]
    assert len(kinds) >= 20
    for kind in kinds:
        assert len(kind.explanation) > 30 and len(kind.hints) >= 2, kind.code


def test_a_disabled_function_runs_natively():
    @torch.compiler.disable
    def g(x):
        return x * 2

    def f(x):
        return g(x + 1) + 1, torch.compiler.is_compiling()

    wrapped, log, _ = captured(f)
    value, compiling = wrapped(ONE)
    assert torch.equal(value, ONE * 5) and compiling is True
    assert log.kinds[0] == "CC119"
