"""One program run in plain Python and compiled, call by call, and everything that can be seen compared.

In: the source text of a program. Out: a `Verdict`: what went wrong first, if anything, the graphs
that ran and the breaks with their reasons. The two runs live in modules of their own, begin each
call with the same random streams, and see the same mutations between the calls.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import linecache
import logging
import random
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from world import Comparison

import compiler_core as cc

__all__ = ["CALLS", "Verdict", "judge"]

CALLS = 3
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_serial = itertools.count()


class NotAProgram(Exception):
    """The text does not even load in plain Python (as happens while shrinking)."""


@dataclass(slots=True)
class Verdict:
    """`failure` is '' for a program that holds; `kind` groups failures, for shrinking."""

    failure: str = ""
    kind: str = ""
    graphs: int = 0
    breaks: list[str] = field(default_factory=list)
    raised: int = 0  # calls that raised, both ways

    def fail(self, kind: str, text: str) -> Verdict:
        self.kind, self.failure = kind, text
        return self


@dataclass(slots=True)
class Run:
    """One of the two runs: its module, its state, the function to call."""

    module: types.ModuleType
    state: Any
    call: Callable[..., Any]


@dataclass(slots=True)
class Seen:
    """What one call left: result or exception, texts, streams, modes."""

    outcome: Any
    texts: dict[str, Any]
    arguments: tuple[Any, ...]


@functools.cache
def _warm() -> None:
    """Load what the first compile of a process loads: some of it changes the list of warning filters."""
    cc.compile(lambda x: x.sin() + x.nonzero().shape[0], backend="eager")(torch.ones(2))


def judge(source: str, backend: str = "eager") -> Verdict:
    """Run the program of `source` `CALLS` times both ways."""
    _warm()
    verdict, before = Verdict(), cc.stats()
    tolerance = 0.0 if backend == "eager" else 2e-5
    try:
        plain, ours = _load(source, lambda fn: fn), _load(source, lambda fn: cc.compile(fn, backend=backend, options={"strict": True}))  # fmt: skip
    except NotAProgram as error:
        return verdict.fail("not a program", str(error))
    with cc.record() as recorder:
        try:
            all(_one_call(plain, ours, number, tolerance, verdict) for number in range(CALLS))
        except NotAProgram as error:
            return verdict.fail("not a program", str(error))
    verdict.breaks = [d.reason for f in recorder.recording.frames for v in f.versions for d in v.decisions if d.kind == "break"]  # fmt: skip
    now = cc.stats()
    verdict.graphs = now.graphs - before.graphs
    if not verdict.failure and now.fallbacks != before.fallbacks:
        verdict.fail("fallback", "something fell back to eager")
    if not verdict.failure and not verdict.graphs:
        verdict.fail("no graph", "nothing was compiled")
    return verdict


def _load(source: str, wrap: Callable[[Any], Any]) -> Run:
    name = f"<generated {next(_serial)}>"
    module = types.ModuleType("generated")
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    _seed(0)
    sys.modules["generated"] = module  # where dataclasses look
    try:
        exec(compile(source, name, "exec"), module.__dict__)
        return Run(module, module.State(), wrap(module.program))
    except Exception as error:
        raise NotAProgram(f"{type(error).__name__}: {error}") from error


def _seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def _one_call(plain: Run, ours: Run, number: int, tolerance: float, verdict: Verdict) -> bool:
    expected, got = _called(plain, number), _called(ours, number)
    where = f"call {number}"
    if isinstance(expected.outcome, BaseException):
        verdict.raised += 1
    elif isinstance(got.outcome, BaseException):
        text = "".join(traceback.format_exception(got.outcome))
        verdict.fail(f"raises {type(got.outcome).__name__} {_place(got.outcome)}", f"{where}: {text}")  # fmt: skip
        return False
    comparison = Comparison(tolerance)
    pairs = [
        (expected.outcome, got.outcome, "result"),
        (expected.arguments, got.arguments, "arguments"),
        (plain.state, ours.state, "state"),
        (_globals(plain), _globals(ours), "globals"),
        (_rounded(expected.texts, tolerance), _rounded(got.texts, tolerance), "seen"),
    ]
    for a, b, path in pairs:
        for difference in comparison.differences(a, b, path):
            kind = re.sub(r"\d+", "", difference.partition(":")[0].split(".")[0].split("[")[0])
            verdict.fail(f"differs: {kind}", f"{where}: {difference}")
            return False
    return True


def _globals(run: Run) -> dict[str, Any]:
    return {k: v for k, v in vars(run.module).items() if not k.startswith("__") and k != "program" and not isinstance(v, types.ModuleType)}  # fmt: skip


def _place(error: BaseException) -> str:
    """The function of the compiler that raised, so that a shrunk program fails alike."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "compiler_core" in f.filename]
    return f"in {frames[-1].name}" if frames else ""


def _rounded(texts: dict[str, Any], tolerance: float) -> dict[str, Any]:
    if not tolerance:
        return texts
    return {k: _NUMBER.sub(lambda m: f"{float(m[0]):.2f}", v) if isinstance(v, str) else v for k, v in texts.items()}  # fmt: skip


def _called(run: Run, number: int) -> Seen:
    _seed(number)
    try:
        run.module.mutate(number, run.state)
        arguments = run.module.inputs(number)
    except Exception as error:
        raise NotAProgram(f"{type(error).__name__}: {error}") from error
    with _watched() as texts:
        try:
            outcome = run.call(*arguments, run.state)
        except Exception as error:
            outcome = error
    texts["streams"] = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]  # fmt: skip
    return Seen(outcome, texts, arguments)


@contextlib.contextmanager
def _watched() -> Iterator[dict[str, Any]]:
    """What is printed, logged and warned, and the modes of torch that the program leaves."""
    texts: dict[str, Any] = {}
    printed, logged = io.StringIO(), io.StringIO()
    handler, log = logging.StreamHandler(logged), logging.getLogger("generated")
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s %(funcName)s"))
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        yield texts
        texts["filters"] = len(warnings.filters)
    texts["modes"] = [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")]  # fmt: skip
    torch.set_grad_enabled(True)
    texts["printed"], texts["logged"] = printed.getvalue(), logged.getvalue()
    told = [f"{w.category.__name__} {w.message} {w.lineno}" for w in warned]
    texts["warned"] = [
        text for text in told if "the limit; from now" not in text
    ]  # said by the compiler
