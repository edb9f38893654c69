"""From `Generated` to `Built` without a GPU: evaluated calls, artifacts on demand, cache, refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from compiler_core.codegen import generate
from compiler_core.errors import InternalError, ToolMissing
from compiler_core.ir.parse import parse_program
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Recorder
from compiler_core.runtime import build, build_triton, launch_triton
from compiler_core.runtime.build_triton import kernel_facts
from compiler_core.stages import Fused, Generated, Kernel

TEXT = """
program p(x, w):
  size s0 = x.size(0)
  in x: f32[s0, 12] stride [12, 1]
  in w: f32[12] stride [1]
  temp t: f32[s0, 12] stride [12, 1]
  out o: f32[s0] stride [1]
  nest scale_0 for i < s0, j < 12:
    a: f32 = load x[12*i + j]
    b: f32 = load w[j]
    c: f32 = mul a b
    store t[12*i + j] = c
  nest sum_0 for k < s0:
    r: f32 = sum over n < 12:
      v: f32 = load t[12*k + n]
      yield v
    store o[k] = r
  return o
"""


def context_in(folder: Path) -> Context:
    return Context(Options.of({"strict": True, "cache_dir": str(folder)}), Recorder())


def generated(where: Context) -> Generated:
    program = parse_program(TEXT)
    kernels = {
        "scale_0": Kernel("scale_0", "pointwise", ("x", "w"), ("t",), ("s0",), ("scale_0",)),
        "sum_0": Kernel("sum_0", "row", ("t",), ("o",), ("s0",), ("sum_0",)),
    }
    fused = Fused(program, kernels, {}, {"t": 1}, Target("cuda", 90), "forward")
    return generate(fused, where)


def test_two_kernels_and_a_host_program(tmp_path: Path) -> None:
    where = context_in(tmp_path)
    made = build(generated(where), where)
    assert made.evaluates
    for rows in (7, 1, 0, 300):
        x, w = torch.randn(rows, 12), torch.randn(12)
        arguments = [x, w]
        (got,) = made.call(arguments)
        assert arguments == []
        torch.testing.assert_close(got, (x * w).sum(1))


def test_inputs_at_any_address(tmp_path: Path) -> None:
    """A view that starts in the middle of 16 bytes takes the variant that assumes nothing."""
    where = context_in(tmp_path)
    made = build(generated(where), where)
    memory = torch.randn(5 * 12 + 1)
    x, w = memory[1:].view(5, 12), torch.randn(12)
    assert not launch_triton.is_aligned([x]) and launch_triton.is_aligned([memory, 3])
    for _ in range(2):
        (got,) = made.run(x, w)
        torch.testing.assert_close(got, (x * w).sum(1))


def test_a_call_compiles_no_further_than_it_needs(tmp_path: Path) -> None:
    where = context_in(tmp_path)
    build(generated(where), where).run(torch.randn(3, 12), torch.randn(12))
    stages = {timing.phase.rpartition("/")[2] for timing in where.recorder.here.timings}
    assert {"frontend", "ttir"} <= stages and not stages & {"llir", "ptx", "cubin"}


def test_artifacts_in_order_and_sass_when_asked(tmp_path: Path) -> None:
    where = context_in(tmp_path)
    made = build(generated(where), where)
    assert [a.stage for a in made.artifacts("sum_0")] == ["ttir", "ttgir", "llir", "ptx"]
    assert [a.stage for a in made.artifacts("sum_0", lazy=True)][-1] == "sass"
    assert [a.stage for a in made.artifacts("sum_0")] == ["ttir", "ttgir", "llir", "ptx"]
    with pytest.raises(KeyError, match="no kernel 'sum_1'; did you mean 'sum_0'"):
        made.artifacts("sum_1")
    facts = kernel_facts(made.generated.kernels[0], made.generated.target, where)
    assert facts.registers > 0 and facts.occupancy is not None and facts.spills is None


def outcomes(where: Context) -> list[str]:
    return [d.outcome for d in where.recorder.here.decisions if d.kind == "cache"]


def test_compiled_forms_are_kept_on_disk(tmp_path: Path) -> None:
    first = context_in(tmp_path)
    one = build(generated(first), first).artifacts("sum_0")
    second = context_in(tmp_path)
    two = build(generated(second), second).artifacts("sum_0")
    assert one == two
    assert (outcomes(first), outcomes(second)) == (["miss"], ["hit"])


def test_a_damaged_file_is_made_again(tmp_path: Path) -> None:
    first = context_in(tmp_path)
    one = build(generated(first), first).artifacts("sum_0")
    (kept,) = (tmp_path / "triton").glob("*.json")
    kept.write_text(kept.read_text()[:500])
    second = context_in(tmp_path)
    assert build(generated(second), second).artifacts("sum_0") == one
    assert outcomes(second) == ["miss"]
    assert json.loads(kept.read_text())["texts"].keys() == {"ttir", "ttgir", "llir", "ptx"}


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "triton").write_text("a file where the folder should be")
    where = context_in(tmp_path)
    made = build(generated(where), where)
    assert len(made.artifacts("sum_0")) == 4


def edited(where: Context, old: str, new: str) -> Generated:
    value = generated(where)
    first = value.kernels[0]
    assert old in first.source
    source = first.source.replace(old, new)
    return replace(value, kernels=(replace(first, source=source), *value.kernels[1:]))


def test_edited_kernel_runs_as_edited(tmp_path: Path) -> None:
    where = context_in(tmp_path)
    made = build(edited(where, "c = a * b", "c = a + b"), where)
    x, w = torch.randn(4, 12), torch.randn(12)
    (got,) = made.run(x, w)
    torch.testing.assert_close(got, (x + w).sum(1))


@pytest.mark.parametrize(
    "new,words",
    [("c = a * missing", "missing"), ("c = a *", "SyntaxError"), ("c = tl.no_such(a)", "no_such")],
)
def test_text_that_triton_refuses(tmp_path: Path, new: str, words: str) -> None:
    where = context_in(tmp_path)
    with pytest.raises(InternalError, match=f"(?s)CC611.*scale_0.*{words}"):
        build(edited(where, "c = a * b", new), where)


def test_without_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = context_in(tmp_path)
    value = generated(where)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ToolMissing, match="CC004.*triton is not installed"):
        build(value, where)


def test_kernels_for_a_gpu_are_compiled_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine with the GPU, up to the launch: in threads, the same code as one by one."""
    alone = context_in(tmp_path / "a")
    value = generated(alone)
    one_by_one = [build(value, alone).artifacts(k.name)[-1].text for k in value.kernels]
    monkeypatch.setattr(build_triton, "has_gpu", lambda target: True)
    where = context_in(tmp_path / "b")
    made = build(value, where)
    assert not made.evaluates
    assert outcomes(where) == ["miss", "miss"]
    assert [made.artifacts(k.name)[-1].text for k in value.kernels] == one_by_one
    stages = [t.phase for t in where.recorder.here.timings]
    assert {"triton/sum_0/cubin", "triton/scale_0/cubin"} <= set(stages)


class Recorded:
    """Stands for Triton's launcher: notes what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.loads: list[tuple[int, bool]] = []

    def load(self, kernel: Any, key: tuple[int, bool]) -> tuple[Any, ...]:
        self.loads.append(key)
        note = lambda *arguments: self.calls.append(arguments)  # noqa: E731
        loaded = note, "function", "packed", lambda device: 7 + device
        kernel._loaded[key] = loaded
        return loaded


class FakeCuda:
    """As much of a CUDA tensor as a launch looks at."""

    def __init__(self, address: int):
        self._address, self.device = address, torch.device("cuda", 0)

    def data_ptr(self) -> int:
        return self._address

    def get_device(self) -> int:
        return 0


def launched(monkeypatch: pytest.MonkeyPatch, where: Context) -> tuple[Any, Recorded]:
    """A LaunchedKernel of `scale_0` whose driver is replaced by notes."""
    recorded = Recorded()
    monkeypatch.setattr(launch_triton, "_current_device", lambda: 0)
    monkeypatch.setattr(
        launch_triton.LaunchedKernel, "_load", lambda self, key: recorded.load(self, key)
    )
    kernel = generated(where).kernels[0]
    return launch_triton.LaunchedKernel(
        kernel, lambda aligned: pytest.fail("not compiled here")
    ), recorded


def arguments(*addresses: int) -> Sequence[Any]:
    return [*(FakeCuda(a) for a in addresses), 5]


def test_launch_passes_what_triton_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Grid, stream, handles, three hooks, arguments in order, constants last; keywords do not matter."""
    kernel, recorded = launched(monkeypatch, context_in(tmp_path))
    x, w, t, size = arguments(16, 32, 64)
    kernel[(3,)](x, w, t, size, XBLOCK=1024, num_warps=4, num_stages=2)
    assert recorded.calls == [
        (3, 1, 1, 7, "function", "packed", None, None, None, x, w, t, 5, 1024)
    ]


def test_launch_chooses_the_variant_by_alignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, recorded = launched(monkeypatch, context_in(tmp_path))
    for addresses in [(16, 32, 64), (16, 36, 64), (160, 32, 64), (8, 32, 64)]:
        kernel[(3,)](*arguments(*addresses))
    assert recorded.loads == [(0, True), (0, False)]
    assert len(recorded.calls) == 4


def test_launch_of_no_programs_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, recorded = launched(monkeypatch, context_in(tmp_path))
    kernel[(0,)](*arguments(16, 32, 64))
    assert recorded.calls == recorded.loads == []
