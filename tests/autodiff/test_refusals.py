"""What the stage refuses, by its code; nothing is compiled wrong instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler_core.autodiff import refusals, trace_joint
from compiler_core.errors import CATALOGUE, InternalError, Kind
from compiler_core.options import Context, Options
from compiler_core.recording import Recorder

T = torch.Tensor


def call(function: Callable[..., Any], *args: Any, near: Any) -> Any:
    if isinstance(near, torch.fx.Proxy):
        return near.tracer.create_proxy("call_function", function, args, {})
    return function(*args)


def draw(*shape: int, seed: int = 0, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def test_a_draw_that_the_trace_lost(captured_of: Any) -> None:
    """A captured node notes how often it draws; the trace must not draw more or less often."""
    captured = captured_of(lambda x: F.dropout(x, 0.5, True), draw(3))
    for node in captured.graph.graph.nodes:
        node.meta["draws"] = 2 * (node.op == "call_function")
    with pytest.raises(InternalError, match="CC201.*2 draws captured, 1 traced"):
        trace_joint(captured, Context(Options(), Recorder()))


def test_dropout_that_drops_nothing_is_not_random(staged: Any) -> None:
    (y,) = staged(lambda x: F.dropout(x, 0.5, False) * 2, draw(3)).call(x := draw(3))
    torch.testing.assert_close(y, x * 2)


def test_an_operator_that_reads_a_value(captured_of: Any, staged: Any) -> None:
    def fn(x: T) -> T:
        return x.nonzero()

    with pytest.raises(Exception, match="nonzero|data-dependent"):
        staged(fn, draw(3))


def test_outputs_with_two_bases(staged: Any) -> None:
    def fn(x: T) -> tuple[T, T]:
        y = x.sin()
        return y, y.detach().requires_grad_()

    with pytest.raises(InternalError, match="CC205.*more than one base"):
        staged(fn, draw(3, 2))


def test_an_output_that_views_an_input_as_another_dtype(staged: Any) -> None:
    with pytest.raises(InternalError, match="CC205.*another dtype"):
        staged(lambda x: x.view(torch.int64), draw(3, grad=False))


def test_gradients_switched_on_inside_beside_a_view(staged: Any) -> None:
    def fn(x: T) -> tuple[T, T]:
        call(torch._C._set_grad_enabled, True, near=x)
        y = x * 2
        call(torch._C._set_grad_enabled, False, near=x)
        return y, x[0]

    with pytest.raises(InternalError, match="CC208"):
        staged(fn, draw(3), grad=False)
    assert torch.is_grad_enabled()


def test_every_row_is_whole_and_in_the_range_of_this_stage() -> None:
    rows = [value for value in vars(refusals).values() if isinstance(value, Kind)]
    assert len(rows) == 8
    for row in rows:
        assert re.fullmatch(r"CC2\d\d", row.code) and CATALOGUE[row.code] is row
        assert row.sentence and row.explanation.endswith(".") and row.hints
