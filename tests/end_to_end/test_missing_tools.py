"""Machines that lack something, each in a process of its own: no C++ compiler, no triton, no cache folder."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from agreement import STRICT, compiling
from programs import wave

import compiler_core as cc

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
    compiled = cc.compile(wave, options=STRICT)
    with cc.record() as recorder, compiling(graphs=1):
        for k in range(3):
            x, y = torch.randn(3, 7), torch.randn(7) + k
            torch.testing.assert_close(compiled(x, y), wave(x, y))
    (version,) = recorder.recording.frames[0].versions
    reasons = [d.reason for d in version.decisions if d.outcome == "not kept"]
    assert len(reasons) == 1 and "cannot be written" in reasons[0]


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
