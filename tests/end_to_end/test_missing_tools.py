"""Machines that lack something, each in a process of its own: no C++ compiler, no triton, no cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest
import torch
from agreement import STRICT, compiling
from programs import wave

import compiler_core as cc
from compiler_core.errors import INTERNAL, InternalError, ToolMissing
from compiler_core.runtime import build_triton, disk_cache

PROGRAM = """
import torch
import compiler_core as cc
from compiler_core.errors import ToolMissing

def f(x, y):
    return (torch.sin(x) * y).sum(0)

x, y = torch.randn(3, 4), torch.randn(4)
for strict in (True, False):
    compiled = cc.compile(f, options={"strict": strict, "target": TARGET})
    for k in range(3):
        try:
            torch.testing.assert_close(compiled(x, y * k), f(x, y * k))
            print("right value")
        except ToolMissing as error:
            print("refused:", error)
print(cc.stats())
print(cc.explain(f, options={"strict": False, "target": TARGET})(x, y))
"""


def output_of(program, target, **environment):
    given = {**os.environ, "CUTAWAY_STRICT": "", **environment}
    text = program.replace("TARGET", repr(target))
    done = subprocess.run(
        [sys.executable, "-c", text], env=given, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def check_refusal_then_fallback(output, what):
    """Strict raises with what to do; non-strict is right, falls back once, and says why."""
    strict, _, rest = output.partition("right value")
    assert strict.count("refused: [CC004] a tool that this target needs is missing") == 3
    assert what in strict and "  do   Install it" in strict
    assert rest.count("right value") == 2
    assert "fallbacks=1," in rest and "graphs=1," in rest
    assert "1 fallback(s)" in rest and "ToolMissing: [CC004]" in rest and what in rest


def test_no_compiler_on_the_path(tmp_path):
    output = output_of(PROGRAM, "cpu", PATH="", CUTAWAY_CACHE_DIR=str(tmp_path), CXX="", CC="")
    check_refusal_then_fallback(output, "compiler")


def test_no_triton_for_a_gpu_target(tmp_path):
    program = "import sys\nsys.modules['triton'] = None\n" + PROGRAM
    output = output_of(program, "cuda:90", CUTAWAY_CACHE_DIR=str(tmp_path))
    check_refusal_then_fallback(output, "triton")


@pytest.mark.parametrize("folder", ["/proc/cutaway", "/dev/null/cutaway", "not_writable"])
def test_a_cache_folder_that_cannot_be_written_costs_only_the_cache(folder, tmp_path, monkeypatch):
    if folder == "not_writable":
        folder = tmp_path / "file"
        folder.write_text("a file stands where the folder should be")
    monkeypatch.setenv("CUTAWAY_CACHE_DIR", str(folder))
    disk_cache.say_not_kept.cache_clear()
    compiled = cc.compile(wave, options=STRICT)
    told = pytest.warns(RuntimeWarning, match="CC013.*cutaway|CC013.*file")
    with cc.record() as recorder, compiling(graphs=1), told as warned:
        for k in range(3):
            x, y = torch.randn(3, 7), torch.randn(7) + k
            torch.testing.assert_close(compiled(x, y), wave(x, y))
    (version,) = recorder.recording.frames[0].versions
    reasons = [d.reason for d in version.decisions if d.outcome == "not kept"]
    assert len(reasons) == 1 and "cannot be written" in reasons[0]
    with warnings.catch_warnings(record=True) as again:
        cc.compile(lambda x: x * 5, options=STRICT)(torch.ones(3))
    assert len(warned) == 1 and not again and "CUTAWAY_CACHE_DIR" in str(warned[0].message)


@pytest.mark.parametrize("trains", [False, True])
def test_a_further_target_that_cannot_be_built_leaves_the_cpu_code_running(trains, monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    options = {"also": ("cuda:90",), "strict": False}
    for explore in (False, True):
        cc.reset()
        compiled = cc.compile(wave, options=options)
        told = pytest.warns(RuntimeWarning, match="CC014.*cuda:90.*triton")
        with cc.record(explore=explore) as recorder, compiling(graphs=1), told:
            for k in range(3):
                x = torch.randn(3, 7, requires_grad=trains)
                y = torch.randn(7) + k
                torch.testing.assert_close(compiled(x, y), wave(x, y))
        ((version,),) = (frame.versions for frame in recorder.recording.frames)
        (left,) = [d for d in version.decisions if d.kind == "target"]
        assert left.outcome == "left out" and left.about == ("target:cuda:90",)
        assert {s.target for s in version.stages} == {"", "cpu"}
    with pytest.raises(ToolMissing):
        cc.compile(wave, options={**options, "strict": True})(torch.ones(2), torch.ones(2))


def test_a_text_of_a_further_target_that_cannot_be_made_leaves_the_others(monkeypatch):
    def refuses(*args, **kwargs):
        raise InternalError(INTERNAL, "no PTX today")

    monkeypatch.setattr(build_triton.TritonBuild, "artifacts", refuses)
    with pytest.warns(RuntimeWarning, match="no PTX today"), cc.record() as recorder:
        compiled = cc.compile(wave, options={"also": ("cuda:90",), "strict": False})
        torch.testing.assert_close(
            compiled(torch.ones(2), torch.ones(2)), wave(torch.ones(2), torch.ones(2))
        )
    version = recorder.recording.frames[0].versions[0]
    assert {s.target for s in version.stages} == {"", "cpu"}


def test_a_damaged_kernel_in_the_cache_is_built_again(tmp_path):
    first = output_of(PROGRAM, "cpu", CUTAWAY_CACHE_DIR=str(tmp_path))
    assert "refused" not in first and "fallbacks=0" in first
    libraries = list(tmp_path.rglob("*.so"))
    assert libraries
    for library in libraries:
        library.write_bytes(b"not a library")
    second = output_of(PROGRAM, "cpu", CUTAWAY_CACHE_DIR=str(tmp_path))
    assert second.count("right value") == 6 and "fallbacks=0" in second


def test_environment_sets_strict():
    program = (
        "import compiler_core as cc\nfrom compiler_core.options import Options\n"
        "print(Options.of().strict, Options.of({'strict': False}).strict)"
    )
    assert output_of(program, "cpu", CUTAWAY_STRICT="1").split() == ["True", "False"]
    assert output_of(program, "cpu", CUTAWAY_STRICT="0").split() == ["False", "False"]
