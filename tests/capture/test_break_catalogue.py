"""Every row of the catalogue of graph breaks: the failing example breaks so, the fixed one does not."""

from __future__ import annotations

import contextlib
import decimal
import io
import logging
import logging.handlers
import random
import sys
import types
import warnings

import numpy
import pytest
import torch
from capturing import same

import compiler_core as cc
from compiler_core.capture.break_examples import catalogue, examples, marked_lines
from compiler_core.capture.break_kinds.control_flow import UNCAUGHT
from compiler_core.errors import GraphBreakError

EXAMPLES = examples()
CALLS = 3
by_name = pytest.mark.parametrize("example", EXAMPLES, ids=[e.failing.__name__ for e in EXAMPLES])


def compiled(fn, **arguments):
    return cc.compile(fn, backend="eager", options={"strict": True}, **arguments)


@contextlib.contextmanager
def outside(call):
    """The world around a call: what it prints, logs and warns is kept, what it reads is set."""
    random.seed(call)
    numpy.random.seed(call)
    torch.manual_seed(call)
    printed, heard, root = (
        io.StringIO(),
        logging.handlers.BufferingHandler(1000),
        logging.getLogger("compiler_core.capture"),
    )
    root.addHandler(heard)
    said, stdin, sys.stdin = [], sys.stdin, io.StringIO("3\n")
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        said.append(printed.getvalue())
        said += [(r.levelname, r.getMessage(), r.funcName, r.lineno) for r in heard.buffer]
        said += [(w.category, str(w.message), w.lineno, w.filename) for w in caught]
    finally:
        sys.stdin = stdin
        root.removeHandler(heard)


def plainly(value):
    """Results that are compared by what they hold."""
    if isinstance(value, types.GeneratorType):
        return [list(value)]
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, io.BytesIO):
        return torch.load(io.BytesIO(value.getvalue()))
    return type(value)(map(plainly, value)) if type(value) in (tuple, list) else value


def told(fn, arguments, call):
    """(value or exception, arguments afterwards, output) of one call."""
    given = arguments(call)
    with outside(call) as said:
        try:
            result = plainly(fn(*given))
        except Exception as error:
            result = (type(error), str(error))
    after = [plainly(a) for a in given if isinstance(a, (torch.Tensor, list, dict, io.BytesIO))]
    return result, after, said


def agree(fn, other, arguments):
    for call in range(CALLS):
        same(told(fn, arguments, call), told(other, arguments, call))


@by_name
def test_the_failing_example_breaks_at_its_line(example):
    cc.reset()
    with cc.record() as recorder:
        agree(example.failing, compiled(example.failing), example.arguments)
    decisions = [d for f in recorder.recording.frames for v in f.versions for d in v.decisions]
    breaks = [d for d in decisions if d.kind == "break"]
    file, lines = marked_lines(example.failing)
    assert {d.outcome for d in breaks} == {example.kind.code}, [
        (d.outcome, d.reason) for d in breaks
    ]
    assert {d.data["where"] for d in breaks} <= {f"{file}:{line}" for line in lines}
    assert breaks[0].data["where"] == f"{file}:{lines[0]}"
    assert breaks[0].reason.startswith(example.kind.sentence)
    assert not [d for d in decisions if d.kind in ("fallback", "skip", "limit")]


@by_name
def test_fullgraph_raises_with_the_same_text(example):
    cc.reset()
    file, lines = marked_lines(example.failing)
    with outside(0), pytest.raises((GraphBreakError, ValueError)) as caught:
        compiled(example.failing, fullgraph=True)(*example.arguments(0))
    if example.kind is UNCAUGHT:
        assert str(caught.value) == "n is negative"
        return
    text = str(caught.value)
    assert caught.value.kind is example.kind and text.startswith(
        f"[{example.kind.code}] {example.kind.sentence}"
    )
    assert all(hint in text for hint in example.kind.hints)
    assert caught.value.where == f"{file}:{lines[0]}"


@by_name
def test_the_fixed_example_is_one_graph(example):
    cc.reset()
    arguments = example.fixed_arguments or example.arguments
    with cc.record() as recorder:
        agree(example.fixed, compiled(example.fixed, fullgraph=True), arguments)
    decisions = [d for f in recorder.recording.frames for v in f.versions for d in v.decisions]
    assert not [d for d in decisions if d.kind in ("break", "fallback", "skip", "limit")]
    if not example.alternative:
        for call in range(CALLS):
            failing, fixed = (
                told(example.failing, example.arguments, call),
                told(example.fixed, arguments, call),
            )
            same(failing[0], fixed[0])


def test_every_kind_has_one_example():
    rows = catalogue()
    assert len({row.code for row in rows}) == len(rows) >= 60
    for row in rows:
        assert len(row.explanation) > 30 and len(row.hints) >= 2, row.code
        assert "# breaks" in row.failing and "# breaks" not in row.fixed
