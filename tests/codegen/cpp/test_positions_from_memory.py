"""Positions that lie in tensors: interpreter, C (whatever the threads) and evaluated Triton give the same.

Random positions by hypothesis: many that meet, negative ones where the check wraps, none at all.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cpp_programs import built, fused, generated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler_core.codegen import generate
from compiler_core.codegen.cpp.places import disjoint_axes
from compiler_core.ir.interpret import run_program
from compiler_core.ir.loop import Nest
from compiler_core.ir.parse import parse_program
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Recorder
from compiler_core.runtime.build_triton import build_triton
from compiler_core.stages import Fused

TAKE = """
program take(x, h):
  size s0 = x.size(0)
  size s1 = h.size(0)
  in  x: f32[s0, 6] stride [6, 1]
  in  h: i64[s1] stride [1]
  out y: f32[s1, 6] stride [6, 1]
  nest k for i < s1, j < 6:
    p: i64  = load h[i]
    at: i64 = place p < s0 as subscript 0
    a: f32  = load x[6*at + j]
    b: f32  = add a a
    store y[6*i + j] = b
  return y"""

# the places lie along the rows, along the columns, and in both dimensions
SUMS = {
    "rows": ("for i < s1, j < 6", "h[i]", "6*at + j", "x[6*i + j]", {"j"}),
    "columns": ("for j < 6, i < s1", "h[i]", "at + s0*j", "x[6*i + j]", {"j"}),
    "elements": ("for i < s1, j < 6", "h[i]", "at", "x[6*i + j]", set()),
    "alone": ("for i < s1", "h[i]", "at", "x[6*i]", set()),
}


def sums(axes: str, where: str, offset: str, term: str) -> str:
    return f"""
program add(h, x, z):
  size s1 = h.size(0)
  size s0 = z.size(0)
  in  h: i64[s1] stride [1]
  in  x: f32[s1, 6] stride [6, 1]
  in  z: f32[s0, 6] stride [6, 1]
  out y: f32[s0, 6] stride [6, 1]
  nest start for q < 6*s0:
    c: f32 = load z[q]
    store y[q] = c
  nest add {axes}:
    p: i64  = load {where}
    at: i64 = place p < s0 as subscript 0
    a: f32  = load {term}
    store y[{offset}] += a
  return y"""


def evaluated(text: str):
    """The program's Triton, built for the evaluator."""
    value = fused(text)
    kernels = {
        n: type(k)(k.name, "pointwise", k.reads, k.writes, tuple(value.program.symbols), k.members)
        for n, k in value.kernels.items()
    }
    context = Context(Options.of({"strict": True}), Recorder())
    moved = Fused(value.program, kernels, {}, {}, Target("cuda", 90), "forward")
    return build_triton(generate(moved, context), context)


RANDOM = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
positions = st.integers(1, 9).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.integers(-n, n - 1), max_size=40))
)


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory):
    return built(TAKE, tmp_path_factory.mktemp("take")), evaluated(TAKE)


@RANDOM
@given(positions)
def test_reads_agree(takes, drawn) -> None:
    n, places = drawn
    x, h = torch.randn(n, 6), torch.tensor(places, dtype=torch.int64)
    want = run_program(parse_program(TAKE), [x, h])[0]
    assert torch.equal(want, x[h] * 2)
    for program in takes:
        assert torch.equal(program.run(x, h)[0], want)


@pytest.fixture(scope="module", params=list(SUMS))
def adders(request, tmp_path_factory: pytest.TempPathFactory):
    *parts, _ = SUMS[request.param]
    text = sums(*parts)
    folder = tmp_path_factory.mktemp("sums")
    threads = [built(text, folder, threads=n) for n in (1, 2)]
    return text, threads, evaluated(text)


@RANDOM
@given(positions)
def test_sums_agree(adders, drawn) -> None:
    text, (one, two), gpu = adders
    n, places = drawn
    h = torch.tensor(places, dtype=torch.int64)
    x, z = torch.randn(len(places), 6), torch.randn(n, 6)
    want = run_program(parse_program(text), [h, x, z])[0]
    got = one.run(h, x, z)[0]
    assert torch.equal(got, two.run(h, x, z)[0])  # not a bit depends on the threads
    for value in (got, gpu.run(h, x, z)[0]):
        torch.testing.assert_close(value, want, rtol=1e-5, atol=1e-5)


def test_threads_share_what_cannot_meet(tmp_path: Path) -> None:
    for name, (*parts, free) in SUMS.items():
        nest = parse_program(sums(*parts)).body[1]
        assert isinstance(nest, Nest)
        assert disjoint_axes(nest) == free, name


def test_a_large_sum_is_shared_out_and_exact(tmp_path: Path) -> None:
    *parts, _ = SUMS["rows"]
    text = sums(*parts).replace("6", "600").replace("i6004", "i64")
    source = generated(text, tmp_path, threads=2).kernels[1].source
    assert "omp parallel for" in source and "stretch" in source
    h, x = torch.randint(-20, 20, (300,)), torch.randn(300, 600)
    z = torch.randn(20, 600)
    got = [built(text, tmp_path, threads=n).run(h, x, z)[0] for n in (1, 2, 1)]
    assert torch.equal(got[0], got[1]) and torch.equal(got[0], got[2])
    exact = z.double().index_put((h,), x.double(), accumulate=True)
    torch.testing.assert_close(got[0].double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", [TAKE, sums(*SUMS["rows"][:4])], ids=["reads", "sums"])
def test_the_first_position_out_of_bounds_is_told(text: str, tmp_path: Path) -> None:
    x, h = torch.randn(4, 6), torch.tensor([1, -4, 3, -5, 9])
    given_ = (x, h) if text is TAKE else (h, torch.randn(5, 6), x)
    program = built(text, tmp_path)
    for _ in range(2):
        with pytest.raises(
            IndexError, match="^index -5 is out of bounds for dimension 0 with size 4$"
        ):
            program.run(*given_)
    with pytest.raises(IndexError, match="index is out of bounds for dimension 0 with size s0"):
        evaluated(text).run(*given_)


def test_nothing_is_read_from_a_dimension_without_positions(tmp_path: Path) -> None:
    program = built(TAKE, tmp_path)
    assert program.run(torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64))[0].shape == (0, 6)
    with pytest.raises(IndexError, match="index 0 is out of bounds for dimension 0 with size 0"):
        program.run(torch.zeros(0, 6), torch.tensor([0]))
