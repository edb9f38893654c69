"""A failure planted inside each stage: strict raises it, otherwise eager makes it good and says why."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc
from compiler_core import driver, pipeline
from compiler_core.capture import CannotCapture

STAGES = {
    "capture": (driver, "capture_frame"),
    "guards": (driver, "compile_guards"),
    "replacement": (driver, "assemble"),
    "joint": (pipeline, "trace_joint"),
    "tidy": (pipeline, "tidy"),
    "partition": (pipeline, "partition"),
    "lower": (pipeline, "lower"),
    "fuse": (pipeline, "fuse"),
    "codegen": (pipeline, "generate"),
    "build": (pipeline, "build"),
    "attach": (pipeline, "attach"),
}


class PlantedError(Exception):
    pass


@pytest.fixture(params=STAGES)
def broken_stage(request, monkeypatch):
    def fails(*args, **kwargs):
        raise PlantedError(f"planted in {request.param}")

    monkeypatch.setattr(*STAGES[request.param], fails)
    return request.param


def program(x, y):
    return (torch.sin(x) * y + torch.cos(y)).sum(0)


def run(compiled):
    for k in range(3):
        x, y = torch.randn(3, 4, requires_grad=True), torch.randn(4) + k
        eager = x.detach().clone().requires_grad_()
        ours, theirs = compiled(x, y), program(eager, y)
        torch.testing.assert_close(ours, theirs)
        ours.sum().backward(), theirs.sum().backward()
        torch.testing.assert_close(x.grad, eager.grad)


def test_strict_raises(broken_stage):
    compiled = cc.compile(program, options=STRICT)
    with compiling(graphs=0):
        for _ in range(2):
            with pytest.raises(PlantedError, match=f"planted in {broken_stage}"):
                compiled(torch.randn(3, 4), torch.randn(4))


def test_otherwise_the_value_is_right_and_one_fallback_is_counted(broken_stage):
    compiled = cc.compile(program, options={"strict": False})
    runs_captured_graph = broken_stage not in ("capture", "guards", "replacement")
    with compiling(graphs=int(runs_captured_graph), fallbacks=1):
        run(compiled)


def test_the_reason_is_explained_and_logged(broken_stage, capsys):
    cc.set_logs(fallbacks=True)
    try:
        for _ in range(2):
            explained = cc.explain(program, options={"strict": False})(
                torch.randn(3, 4), torch.randn(4)
            )
            assert len(explained.fallbacks) == 1
            assert f"PlantedError: planted in {broken_stage}" in str(explained)
    finally:
        cc.set_logs(fallbacks=False)
    assert capsys.readouterr().err.count(f"PlantedError: planted in {broken_stage}") == 2


def test_a_failure_at_a_later_version_leaves_the_earlier_ones_in_use(monkeypatch):
    compiled = cc.compile(program, options={"strict": False})
    x, y = torch.randn(3, 4), torch.randn(4)
    with compiling(graphs=1, fallbacks=1):
        compiled(x, y)
        with monkeypatch.context() as patch:
            patch.setattr(driver, "capture_frame", lambda *args: 1 / 0)
            for _ in range(3):
                assert torch.equal(compiled(x.double(), y), program(x.double(), y))
        with cc.record() as recorder, torch.profiler.profile() as profile:
            torch.testing.assert_close(compiled(x, y), program(x, y))
    assert recorder.recording.frames == []
    assert sum(event.name == "aten::sin" for event in profile.events()) == 1  # eager's alone


def test_a_function_refused_for_some_values_is_compiled_for_others(monkeypatch):
    """After as many refusals as the recompile limit it is not asked about again."""
    capture_frame = driver.capture_frame
    asked = []

    def refusing_doubles(view, context, entries):
        asked.append(view.locals["x"].dtype)
        if view.locals["x"].dtype is torch.float64:
            raise CannotCapture("no doubles today")
        return capture_frame(view, context, entries)

    monkeypatch.setattr(driver, "capture_frame", refusing_doubles)
    compiled = cc.compile(program, options={**STRICT, "recompile_limit": 3})
    x, y = torch.randn(3, 4), torch.randn(4)
    with compiling(graphs=1, skipped_frames=3):
        for value in (x.double(), x, x.double(), x, x.double(), x.double(), x, x.half()):
            torch.testing.assert_close(compiled(value, y), program(value, y))
    assert asked == [torch.float64, torch.float32, torch.float64, torch.float64]
    assert "skipped  frame:program/0: no doubles today" in str(cc.explain(program)(x.double(), y))


def test_user_mistakes_are_not_swallowed():
    compiled = cc.compile(program, options={"strict": False, "target": "cuda:none"})
    for _ in range(2):
        with pytest.raises(cc.errors.OptionError, match="unknown target"):
            compiled(torch.randn(3, 4), torch.randn(4))
