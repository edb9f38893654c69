"""The host program: order, views, memory, sizes, outputs, provenance, and the script made of it."""

from __future__ import annotations

import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from cpp_programs import context_for, fused

from compiler_core.codegen import generate, standalone
from compiler_core.runtime import build
from compiler_core.stages import Built

ADD_MM = """
program p(x, w):
  size s0 = x.size(0)
  in   x: f32[s0, 8] stride [8, 1]
  in   w: f32[4, 8] stride [8, 1]
  temp t: f32[s0, 8] stride [8, 1]
  temp m: f32[s0, 4] stride [4, 1]
  out  y: f32[s0, 4] stride [4, 1]
  nest add_0 for i < s0, j < 8:
    a: f32 = load x[8*i + j]
    b: f32 = add a a
    store t[8*i + j] = b
  call mm: m = aten.mm.default(t, view(w, [8, 4], [1, 8], 0)) because 'matrix product'
  nest neg_0 for k < 4*s0:
    c: f32 = load m[k]
    d: f32 = neg c
    store y[k] = d
  return y, s0, None, 2.5, view(y, [4, s0], [1, 4], 0)"""


def make(text: str, cache: Path, **changes: Any) -> Built:
    context = context_for(cache)
    return build(generate(fused(text, **changes), context), context)


def test_text_reads_as_a_person_would_write_it(tmp_path: Path) -> None:
    value = fused(ADD_MM, last_use={"x": 0, "t": 1, "w": 1, "m": 2})
    host = generate(value, context_for(tmp_path)).host
    body = host.source.partition("def call(args):\n")[2]
    assert body == (
        "    x, w = args\n"
        "    args.clear()\n"
        "    s0 = x.size(0)\n"
        "    t = empty_strided((s0, 8), (8, 1), dtype=float32, device=DEVICE)\n"
        "    add_0(x.data_ptr(), t.data_ptr(), s0)\n"
        "    del x\n"
        "    m = aten.mm.default(t, w.t())\n"
        "    m = as_planned(m, (4, 1))\n"
        "    del t, w\n"
        "    y = empty_strided((s0, 4), (4, 1), dtype=float32, device=DEVICE)\n"
        "    neg_0(m.data_ptr(), y.data_ptr(), s0)\n"
        "    del m\n"
        "    return (y, s0, None, 2.5, y.t())\n"
    )


def test_calls_with_several_sizes(tmp_path: Path) -> None:
    program = make(ADD_MM, tmp_path, last_use={"x": 0, "t": 1, "w": 1, "m": 2})
    for rows in (1, 7, 300):
        x, w = torch.randn(rows, 8), torch.randn(4, 8)
        y, size, nothing, number, view = program.run(x, w)
        torch.testing.assert_close(y, -((x + x) @ w.t()))
        assert (size, nothing, number) == (rows, None, 2.5)
        assert view.data_ptr() == y.data_ptr() and torch.equal(view, y.t())


def test_each_line_knows_its_kernel(tmp_path: Path) -> None:
    host = generate(fused(ADD_MM, part="backward"), context_for(tmp_path)).host
    lines = dict(zip(host.source.splitlines(), host.line_origins, strict=True))
    assert lines["    add_0(x.data_ptr(), t.data_ptr(), s0)"] == {"fuse:backward/add_0"}
    assert lines["    m = aten.mm.default(t, w.t())"] == {"fuse:backward/mm"}
    everything = {"fuse:backward/add_0", "fuse:backward/mm", "fuse:backward/neg_0"}
    assert lines["    args.clear()"] == everything
    assert all(origins for line, origins in lines.items() if line)


def test_arguments_are_freed_after_their_last_use(tmp_path: Path) -> None:
    program = make(ADD_MM, tmp_path, last_use={"x": 0, "t": 1, "w": 1, "m": 2})
    x, w = torch.randn(3, 8), torch.randn(4, 8)
    args, alive = [x, w], weakref.ref(x)
    del x
    outputs = program.call(args)
    assert args == [] and alive() is None and outputs[0].shape == (3, 4)


CHAIN = """
program p(x):
  in   x: f32[6, 4] stride [4, 1]
  temp t: f32[6, 4] stride [4, 1]
  temp u: f32[6, 4] stride [4, 1]
  temp v: f32[4, 6] stride [1, 4]
  out  y: f32[6, 4] stride [4, 1]
  nest a_0 for i < 24:
    a: f32 = load x[i]
    b: f32 = exp a
    store t[i] = b
  nest b_0 for j < 24:
    c: f32 = load t[j]
    d: f32 = neg c
    store u[j] = d
  nest c_0 for k < 24:
    e: f32 = load u[k]
    f: f32 = mul e e
    store v[k] = f
  nest d_0 for l < 24:
    g: f32 = load v[l]
    h: f32 = sqrt g
    store y[l] = h
  return y"""


def test_dead_memory_is_used_again(tmp_path: Path) -> None:
    last = {"x": 0, "t": 1, "u": 2, "v": 3}
    program = make(CHAIN, tmp_path, last_use=last, reuse={"v": "t"})
    source = program.generated.host.source
    assert "    v = t.as_strided((4, 6), (1, 4))\n    del t\n" in source
    assert source.count("empty_strided(") == 3 and "del t, " not in source
    for _ in range(2):
        x = torch.randn(6, 4)
        torch.testing.assert_close(program.run(x)[0], x.exp())


MUTATE = """
program p(x, n):
  size n
  in   x: f32[8] stride [1]
  temp t: f32[8] stride [1]
  nest add_0 for i < 8:
    a: f32 = load x[i]
    s: f32 = index n
    b: f32 = add a s
    store t[i] = b
  update x = t
  return x"""


def test_mutated_inputs_are_written_back(tmp_path: Path) -> None:
    program = make(MUTATE, tmp_path, last_use={})
    x = torch.zeros(8)
    for n in (3, 5):
        (y,) = program.run(x, n)
        assert y is x
    assert torch.equal(x, torch.full((8,), 8.0))


OFFSET = """
program p(x):
  in   x: f32[10] stride [1]
  out  m: f32[] stride []
  call sum: m = aten.sum.default(view(x, [3], [2], 4)) because 'test'
  return m"""


def test_views_of_inputs_that_do_not_start_their_storage(tmp_path: Path) -> None:
    program = make(OFFSET, tmp_path)
    storage = torch.arange(20.0)
    for start in (0, 7):
        x = storage[start : start + 10]
        assert program.run(x)[0] == x[4:10:2].sum()


def test_a_library_result_in_another_layout_is_copied(tmp_path: Path) -> None:
    text = OFFSET.replace("out  m: f32[] stride []", "out  m: f32[3, 2] stride [1, 3]").replace(
        "aten.sum.default(view(x, [3], [2], 4))", "aten.clone.default(view(x, [3, 2], [2, 1], 0))"
    )
    (m,) = make(text, tmp_path).run(torch.arange(10.0))
    assert m.stride() == (1, 3) and torch.equal(m, torch.arange(6.0).view(3, 2))


SEVERAL = """
program p(x):
  in   x: f32[6] stride [1]
  out  v: f32[2] stride [1]
  call topk: v, None = aten.topk.default(x, 2, largest=False) because 'test'
  call full: None = aten.full.default([2], inf, dtype=torch.float64, device=device('cpu')) because 'test'
  return v"""


def test_library_calls_with_several_results_and_options(tmp_path: Path) -> None:
    program = make(SEVERAL, tmp_path)
    assert (
        'aten.full.default([2], float("inf"), dtype=torch.float64, device=torch.device("cpu"))'
        in program.text()
    )
    x = torch.randn(6)
    assert torch.equal(program.run(x)[0], x.topk(2, largest=False).values)


def test_a_program_without_inputs_and_kernels(tmp_path: Path) -> None:
    program = make("program p():\n  return 3, None", tmp_path)
    assert program.run() == (3, None) and program.run() == (3, None)


def test_names_that_the_host_program_needs_itself(tmp_path: Path) -> None:
    text = (
        MUTATE.replace("add_0", "call")
        .replace("x", "torch")
        .replace("t[", "args[")
        .replace("t:", "args:")
    )
    text = text.replace("update torch = t", "update torch = args").replace("indetorch", "index")
    program = make(text, tmp_path)
    x = torch.zeros(8)
    program.run(x, 4)
    assert torch.equal(x, torch.full((8,), 4.0))


def test_a_traceback_shows_the_host_program(tmp_path: Path) -> None:
    import traceback

    with pytest.raises(AttributeError) as caught:
        make(CHAIN, tmp_path).call([3])
    text = "".join(traceback.format_exception(caught.value))
    assert "a_0(x.data_ptr(), t.data_ptr())" in text


def test_standalone_script_runs(tmp_path: Path) -> None:
    code = generate(fused(ADD_MM), context_for(tmp_path))
    script = tmp_path / "script.py"
    script.write_text(
        standalone(code, [((5, 8), (8, 1), torch.float32), ((4, 8), (8, 1), torch.float32)])
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "output 0: (5, 4) torch.float32, sum" in done.stdout and "us a call" in done.stdout
