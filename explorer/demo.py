"""The main job: compile the example programs, check every stage, time them, say what happened.

In: `programs.PROGRAMS`. Out: one `Outcome` per program, printed by `terminal.py`, saved as JSON,
shown by `html.py`. Nothing in an outcome is assumed: errors, counts and times are measured here.
"""

from __future__ import annotations

import contextlib
import copy
import io
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

import compiler_core as cc
from compiler_core.devtools.compare_stages import StageCheck, bounded_error, check_stages
from compiler_core.recording import Recording
from explorer.programs import Program

__all__ = ["Outcome", "run_program"]

Compiled = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one program did. Times are in seconds, the median of several calls; `recording` is the tree."""

    name: str
    about: str
    calls: int
    graphs: int
    breaks: int
    fallbacks: int
    recompiles: int
    guards: int
    kernels: int
    library_calls: int
    max_error: float
    tolerance: float
    stages: tuple[StageCheck, ...]
    phases: dict[str, float]
    first_call: float
    compiled_call: float
    eager_call: float
    reasons: tuple[str, ...]
    recording: Recording

    @property
    def ok(self) -> bool:
        """Every call and every stage within tolerance, and nothing fell back."""
        return (
            self.max_error <= self.tolerance
            and not self.fallbacks
            and all(s.ok for s in self.stages)
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data; the recording is left out, it has a file format of its own."""
        stages = [{**asdict(s), "ok": s.ok} for s in self.stages]
        skip = ("recording", "stages")
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in skip}
        return {**plain, "ok": self.ok, "stages": stages}


def run_program(program: Program, also: Sequence[str] = (), explore: bool = True) -> Outcome:
    """Compile a program, run its calls, compare each with eager, then check its stages and time it.

    also: further targets to compile for ("cuda:90"); without a GPU their kernels are evaluated.
    """
    with _quiet():
        return _outcome(program, also, explore)


def _outcome(program: Program, also: Sequence[str], explore: bool) -> Outcome:
    eager = program.make()
    before = cc.stats()
    with cc.record(explore=explore, inputs=True) as recorder:
        compiled = cc.compile(
            copy.deepcopy(eager), options={"also": tuple(also), "explore": explore}
        )
        start = time.perf_counter()
        errors = [_compare(program, eager, compiled, inputs) for inputs in program.calls()]
        seconds = time.perf_counter() - start
    after = cc.stats()
    versions = [v for frame in recorder.recording.frames for v in frame.versions]
    checks = [
        replace(c, version=name)
        for name, code in recorder.compilations.items()
        for c in check_stages(code, recorder.inputs[name])
    ]
    worst = max(errors, key=lambda pair: pair[0] - pair[1])
    last = program.calls()[-1]
    return Outcome(
        name=program.name,
        about=program.about,
        calls=len(errors),
        graphs=after.graphs - before.graphs,
        breaks=after.breaks - before.breaks,
        fallbacks=after.fallbacks - before.fallbacks,
        recompiles=after.recompiles - before.recompiles,
        guards=sum(len(v.guards) for v in versions),
        kernels=sum(
            s.name == "kernels" and s.language == "cpp" for v in versions for s in v.stages
        ),
        library_calls=after.ops_library - before.ops_library,
        max_error=worst[0],
        tolerance=worst[1],
        stages=tuple(checks),
        phases=_phases(recorder.recording),
        first_call=seconds,
        compiled_call=_median(lambda: _call(program, compiled, last)),
        eager_call=_median(lambda: _call(program, eager, last)),
        reasons=tuple(
            d.reason
            for v in versions
            for d in v.decisions
            if d.kind in ("break", "fallback", "skip")
        ),
        recording=recorder.recording,
    )


def _call(program: Program, fn: Compiled, inputs: Sequence[Any]) -> list[Any]:
    """One call: the output, and for a training step the gradients of all parameters."""
    if program.dynamic:
        for value in inputs:
            cc.mark_dynamic(value, 0)
    output = fn(*inputs)
    if not program.trains:
        return [output]
    assert isinstance(fn, torch.nn.Module)
    fn.zero_grad(set_to_none=True)
    output.backward()
    return [output.detach(), *(p.grad for p in fn.parameters())]


def _compare(
    program: Program, eager: Compiled, compiled: Compiled, inputs: Sequence[Any]
) -> tuple[float, float]:
    """(error against float64, tolerance) of the value that is worst in proportion."""
    own = _call(program, eager, inputs)
    truth = _call(program, _in_float64(eager), [_double(v) for v in inputs])
    results = _call(program, compiled, inputs)
    pairs = [bounded_error(r, e, t) for r, e, t in zip(results, own, truth, strict=True)]
    return max(pairs, key=lambda pair: pair[0] - pair[1])


def _in_float64(fn: Compiled) -> Compiled:
    return copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn


def _double(value: Any) -> Any:
    return (
        value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    )


def _phases(recording: Recording) -> dict[str, float]:
    """Seconds of each outermost phase, summed over versions."""
    totals: dict[str, float] = {}
    for timing in (t for frame in recording.frames for v in frame.versions for t in v.timings):
        if "/" not in timing.phase:
            totals[timing.phase] = totals.get(timing.phase, 0.0) + timing.seconds
    return totals


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What the programs print is not part of the demonstration."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def _median(call: Callable[[], Any], seconds: float = 0.3, most: int = 200) -> float:
    """Median wall time of a call over about `seconds`, after one warm call."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < most):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
