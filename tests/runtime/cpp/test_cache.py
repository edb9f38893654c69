"""The disk cache: hits, misses that say what differs, folders that cannot be used, several builders."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from cpp_programs import context_for, fused

from compiler_core.codegen import generate
from compiler_core.options import Context
from compiler_core.recording import Decision
from compiler_core.runtime import build, build_cpp
from compiler_core.runtime.keys import Key
from compiler_core.stages import Built

TEXT = """
program p(x):
  in  x: f32[8] stride [1]
  out y: f32[8] stride [1]
  nest add_0 for i < 8:
    a: f32 = load x[i]
    c: f32 = const 3.0
    b: f32 = add a c
    store y[i] = b
  return y"""


def make(context: Context, text: str = TEXT) -> Built:
    return build(generate(fused(text), context), context)


def decisions(context: Context) -> list[Decision]:
    return [d for d in context.recorder.here.decisions if d.kind == "cache"]


def test_second_build_is_a_hit(tmp_path: Path) -> None:
    outcomes = []
    for _ in range(2):
        context = context_for(tmp_path)
        assert torch.equal(make(context).run(torch.zeros(8))[0], torch.full((8,), 3.0))
        (decision,) = decisions(context)
        outcomes.append(decision.outcome)
        assert decision.about == ("fuse:forward/add_0",)
    assert outcomes == ["miss", "hit"]


def test_a_hit_starts_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(context_for(tmp_path))
    monkeypatch.setattr(build_cpp, "compile_c", None)
    assert torch.equal(make(context_for(tmp_path)).run(torch.zeros(8))[0], torch.full((8,), 3.0))


def test_a_miss_says_which_part_differs(tmp_path: Path) -> None:
    first = context_for(tmp_path)
    make(first)
    assert decisions(first)[0].reason == "no entry for kernels of these names"
    second = context_for(tmp_path)
    program = make(second, TEXT.replace("3.0", "4.0"))
    (decision,) = decisions(second)
    assert decision.outcome == "miss" and decision.data["differs"] == ["source"]
    assert decision.reason == "the closest entry differs in: source"
    assert torch.equal(program.run(torch.zeros(8))[0], torch.full((8,), 4.0))


def test_flags_and_headers_are_parts_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(context_for(tmp_path))
    monkeypatch.setattr(build_cpp, "FLAGS", (*build_cpp.FLAGS, "-O2"))
    context = context_for(tmp_path)
    make(context)
    assert decisions(context)[0].data["differs"] == ["flags"]
    monkeypatch.setattr(build_cpp, "_headers_text", lambda: b"other")
    context = context_for(tmp_path)
    make(context)
    assert decisions(context)[0].data["differs"] == ["headers"]


def test_key_names_what_differs() -> None:
    key = Key.of("a b", {"source": "1", "flags": "-O3"})
    assert key.differs_in(dict(Key.of("a b", {"source": "1", "flags": "-O2"}).parts)) == ("flags",)
    assert key.differs_in({}) == ("source", "flags")
    assert key.name == Key.of("a b", {"source": "1", "flags": "-O3"}).name
    assert key.name != Key.of("a c", {"source": "1", "flags": "-O3"}).name


def test_a_folder_that_cannot_be_made_is_replaced_for_this_process(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    context = context_for(blocked)
    program = make(context)
    assert torch.equal(program.run(torch.zeros(8))[0], torch.full((8,), 3.0))
    kept, built = decisions(context)
    assert (
        kept.outcome == "not kept"
        and str(blocked) in kept.reason
        and built.outcome in ("miss", "hit")
    )
    assert blocked.read_text() == "not a folder"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_replaced_for_this_process(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    context = context_for(tmp_path)
    make(context).run(torch.zeros(8))
    assert decisions(context)[0].outcome == "not kept"


def test_a_damaged_library_is_built_again(tmp_path: Path) -> None:
    make(context_for(tmp_path / "a"))
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # a path that this process has not loaded yet
    (library,) = (tmp_path / "b").rglob("*.so")
    library.write_bytes(b"not a library")
    context = context_for(tmp_path / "b")
    assert torch.equal(make(context).run(torch.zeros(8))[0], torch.full((8,), 3.0))
    assert [d.outcome for d in decisions(context)] == ["hit", "damaged", "miss"]


def test_a_failed_build_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "k.c"
    broken.write_text("this is not C")
    with pytest.raises(Exception, match="CC601"):
        make(context_for(tmp_path / "cache", replace={"kernels/add_0": str(broken)}))
    assert list((tmp_path / "cache").rglob("*.*")) == []


SCRIPT = """
import sys, torch
from pathlib import Path
sys.path.insert(0, {programs!r})
from test_cache import TEXT
from cpp_programs import built
program = built(TEXT, Path({cache!r}))
for start in (0.0, 1.0):
    (y,) = program.run(torch.full((8,), start))
    assert torch.equal(y, torch.full((8,), start + 3.0))
"""


def test_two_processes_build_at_once(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    programs = str(root / "tests" / "codegen" / "cpp")
    script = SCRIPT.format(programs=programs, cache=str(tmp_path))
    env = {**os.environ, "PYTHONPATH": f"{root}:{Path(__file__).parent}"}
    both = [subprocess.Popen([sys.executable, "-c", script], env=env, stderr=subprocess.PIPE, text=True) for _ in range(2)]  # fmt: skip
    for process in both:
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
    assert len(list(tmp_path.rglob("*.so"))) == 1 and not list(tmp_path.rglob("*.part"))
