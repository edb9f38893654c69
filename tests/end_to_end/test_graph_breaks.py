"""What `fullgraph=True` refuses, and what a program does that breaks."""

from __future__ import annotations

import re

import pytest
import torch
from agreement import STRICT, compiling
from programs import printing, wave

import compiler_core as cc
from compiler_core.errors import GraphBreakError


def test_a_break_splits_the_function_and_keeps_the_order(capsys):
    compiled = cc.compile(printing, options=STRICT)
    with compiling(graphs=2, breaks=1):
        for k in range(3):
            x = torch.randn(4) + k
            torch.testing.assert_close(compiled(x), (x.sin() + 1) * 2)
    assert capsys.readouterr().out == "between\n" * 3


def test_fullgraph_raises_the_break_with_its_place_and_what_to_do(capsys):
    compiled = cc.compile(printing, fullgraph=True)
    with compiling(graphs=0, breaks=2):
        for _ in range(2):
            with pytest.raises(GraphBreakError, match="the program prints") as refusal:
                compiled(torch.randn(4))
    line = printing.__code__.co_firstlineno + 3
    text = str(refusal.value)
    assert re.search(rf"at   \S*programs\.py:{line}\n", text)
    assert "\n  why  " in text and "\n  do   Remove the print" in text
    assert capsys.readouterr().out == ""


def test_fullgraph_raises_after_a_version_that_splits():
    x = torch.randn(4)
    with compiling(graphs=2):
        cc.compile(printing, options=STRICT)(x)
        with pytest.raises(GraphBreakError):
            cc.compile(printing, fullgraph=True, options=STRICT)(x)
        cc.compile(printing, options=STRICT)(x)


def test_fullgraph_runs_a_function_that_is_one_graph():
    compiled = cc.compile(wave, fullgraph=True, options=STRICT)
    with compiling(graphs=1, breaks=0):
        for k in range(3):
            x, y = torch.randn(4) + k, torch.randn(4)
            torch.testing.assert_close(compiled(x, y), wave(x, y))


def test_fullgraph_refuses_a_state_in_which_nothing_is_captured():
    compiled = cc.compile(wave, fullgraph=True)
    x, y = torch.randn(4), torch.randn(4)
    with compiling(graphs=1):
        for _ in range(2):
            with pytest.raises(GraphBreakError, match="cannot be captured.*torch.func"):
                torch.func.vmap(compiled)(x, y)
            torch.testing.assert_close(compiled(x, y), wave(x, y))


def inner(x):
    print("inside")
    return x + 1


def outer(x):
    return inner(x * 2) * 3


def test_a_break_in_a_called_function_is_named_at_the_call_and_at_its_cause():
    compiled = cc.compile(outer, options=STRICT)
    with compiling(graphs=3, breaks=2):
        for k in range(3):
            x = torch.randn(3) + k
            torch.testing.assert_close(compiled(x), (x * 2 + 1) * 3)
    call, cause = outer.__code__.co_firstlineno + 1, inner.__code__.co_firstlineno + 1
    explained = cc.explain(outer)(torch.randn(3))
    assert [d.data["where"].rpartition(":")[2] for d in explained.breaks] == [str(call), str(cause)]
    file = "test_graph_breaks.py"
    assert f"in: {file}:{call} in outer > {file}:{cause} in inner" in str(explained)
