"""Building and launching: tools that are missing, threads, the language subset, machine code."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest
import torch
from cpp_programs import built, generated

from compiler_core.errors import ToolMissing
from compiler_core.runtime.assembly import assembly_of
from compiler_core.runtime.build_cpp import FLAGS, HEADERS, find_compiler, translation_unit

TEXT = """
program p(x):
  size s0 = x.size(0)
  in  x: f32[s0] stride [1]
  out y: f32[s0] stride [1]
  out z: f32[] stride []
  nest exp_0 for i < s0:
    a: f32 = load x[i]
    b: f32 = exp a
    c: f32 = sin b
    store y[i] = c
  nest sum_0:
    s: f32 = sum over r < s0:
      d: f32 = load y[r]
      yield d
    store z[0] = s
  return y, z"""


def test_no_compiler_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ToolMissing, match=r"\[CC004\].*looked for g\+\+, c\+\+, clang\+\+, gcc, cc"
    ):
        built(TEXT, tmp_path)


def test_the_user_chooses_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "my-compiler"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nexec {find_compiler()} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    assert find_compiler() == str(wrapper)
    x = torch.randn(5)
    torch.testing.assert_close(built(TEXT, tmp_path).run(x)[0], x.exp().sin())
    assert "-march=native" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_threads(threads: int, tmp_path: Path) -> None:
    program = built(TEXT, tmp_path, threads=threads)
    assert ("num_threads(2)" in program.text()) == (threads == 2)
    assert ("parallel" in program.text()) == (threads != 1)
    for size in (0, 1, 300_001):
        x = torch.randn(size)
        y, z = program.run(x)
        torch.testing.assert_close(y, x.exp().sin())
        torch.testing.assert_close(z, y.sum(), rtol=1e-4, atol=1e-3)


def test_calls_from_several_python_threads(tmp_path: Path) -> None:
    program = built(TEXT, tmp_path)
    inputs = [torch.randn(1000 + n) for n in range(8)]
    results: list[torch.Tensor | None] = [None] * 8

    def work(n: int) -> None:
        for _ in range(20):
            results[n] = program.run(inputs[n])[0]

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for x, y in zip(inputs, results):
        torch.testing.assert_close(y, x.exp().sin())


def test_kernels_are_cpp_too(tmp_path: Path) -> None:
    """Every header and kernel reads as C++17 once `restrict` has its C++ name."""
    unit = tmp_path / "unit.cpp"
    headers = "".join(f'#include "{path.name}"\n' for path in sorted(HEADERS.glob("*.h")))
    unit.write_text(headers + translation_unit(generated(TEXT, tmp_path).kernels))
    flags = [
        "-x",
        "c++",
        "-std=c++17",
        "-Drestrict=__restrict__",
        "-fsyntax-only",
        "-fopenmp",
        "-Wall",
        "-Werror",
    ]
    done = subprocess.run(
        [find_compiler(), *flags, "-I", str(HEADERS), str(unit)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_headers_compile_without_warnings(tmp_path: Path) -> None:
    unit = tmp_path / "unit.c"
    headers = "".join(f'#include "{path.name}"\n' for path in sorted(HEADERS.glob("*.h")))
    unit.write_text(headers + translation_unit(generated(TEXT, tmp_path).kernels))
    command = [
        find_compiler(),
        *FLAGS,
        "-Wall",
        "-Wextra",
        "-Wno-type-limits",
        "-Werror",
        "-I",
        str(HEADERS),
        str(unit),
    ]
    done = subprocess.run([*command, "-o", str(tmp_path / "x.so")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_machine_code_knows_its_kernel_lines(tmp_path: Path) -> None:
    program = built(TEXT, tmp_path)
    assert program.artifacts("exp_0") == ()
    (asm,) = program.artifacts("exp_0", lazy=True)
    assert program.artifacts("exp_0") == (asm,)
    lines = program.generated.kernels[0].source.splitlines()
    texts = asm.text.splitlines()
    assert asm.stage == "asm" and len(asm.lines) == len(texts)
    assert [line.number for line in asm.lines] == list(range(1, len(texts) + 1))
    reached = {lines[n - 1].split("=")[0].strip() for line in asm.lines for n in line.kernel_lines}
    assert {"const float b", "const float c", "y[i]"} <= reached
    instructions = [line for line in asm.lines if line.is_instruction]
    known = [line for line in instructions if line.kernel_lines]
    assert len(known) > 0.9 * len(instructions) > 50
    sine = lines.index("        const float c = v_sin(b);") + 1
    vectors = [texts[line.number - 1] for line in asm.lines if line.kernel_lines == (sine,)]
    assert sum("vfmadd" in text or "fmla" in text for text in vectors) > 4


def test_an_unknown_kernel_has_no_machine_code(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match=r"exp_1.*did you mean 'exp_0'.*sum_0"):
        built(TEXT, tmp_path).artifacts("exp_1")


def test_machine_code_without_objdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = generated(TEXT, tmp_path).kernels[0]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissing, match="objdump"):
        assembly_of(kernel)
