"""Every kind of reduction along rows, down columns and over everything, at awkward sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from accuracy import assert_as_good_as_eager
from cpp_programs import built, run

from compiler_core.ir.ops import REDUCTIONS

BOOLEAN = ("any", "all")
WIDE = {"sum", "prod"}  # of integers: into i64


def result_type(kind: str, name: str) -> str:
    if kind.startswith("arg"):
        return "i64"
    return "i64" if kind in WIDE and name[0] in "iu" else name


def program(kind: str, name: str, along: str) -> str:
    """y = kind of x[s0, s1] along rows ("row"), down columns ("column") or over everything ("full")."""
    shape, stride = {"row": ("s0", "1"), "column": ("s1", "1"), "full": ("", "")}[along]
    outer = {"row": " for i < s0", "column": " for i < s1", "full": ""}[along]
    inner = {"row": "r < s1", "column": "r < s0", "full": "q < s0, r < s1"}[along]
    at = {"row": "s1*i + r", "column": "s1*r + i", "full": "s1*q + r"}[along]
    result = result_type(kind, name)
    return f"""
program p(x):
  size s0 = x.size(0)
  size s1 = x.size(1)
  in  x: {name}[s0, s1] stride [s1, 1]
  out y: {result}[{shape}] stride [{stride}]
  nest {kind}_0{outer}:
    m: {result} = {kind} over {inner}:
      a: {name} = load x[{at}]
      yield a
    store y[{"i" if outer else 0}] = m
  return y"""


def expected(kind: str, x: torch.Tensor, along: str) -> torch.Tensor:
    dim = {"row": 1, "column": 0, "full": None}[along]
    if dim is None:
        x, dim = x.reshape(-1), 0
    return REDUCTIONS[kind].reference(x, dim)


def matrix(kind: str, name: str, rows: int, columns: int) -> torch.Tensor:
    torch.manual_seed(rows * 1009 + columns)
    x = torch.randn(rows, columns)
    if name == "bool":
        return x > 0.5 if kind == "any" else x < 0.5
    if name == "u8":
        return torch.randint(0, 256, (rows, columns), dtype=torch.uint8)
    if name == "i32":
        return torch.randint(-9, 9, (rows, columns), dtype=torch.int32)
    return (1 + x / 64 if kind == "prod" else x).to(
        {"f32": torch.float32, "f64": torch.float64}[name]
    )


@pytest.mark.parametrize("along", ["row", "column", "full"])
@pytest.mark.parametrize("kind", list(REDUCTIONS))
def test_reduction(kind: str, along: str, tmp_path: Path) -> None:
    for name in ["bool"] if kind in BOOLEAN else ["f32", "f64", "i32", "u8"]:
        call = built(program(kind, name, along), tmp_path).run
        for rows, columns in [(1, 1), (7, 5), (3, 1000), (300, 7), (257, 513)]:
            x = matrix(kind, name, rows, columns)
            (got,) = call(x)
            eager = expected(kind, x, along)
            if not eager.is_floating_point() or kind in ("max", "min"):
                assert torch.equal(got, eager), (name, rows, columns)
                continue
            assert_as_good_as_eager(got, eager, exactly(kind, x, along), of_scale=True)


def exactly(kind: str, x: torch.Tensor, along: str) -> torch.Tensor:
    """In numpy's long double, which is wider than double on this machine."""
    dim = {"row": 1, "column": 0, "full": None}[along]
    wide = getattr(np, kind)(x.numpy().astype(np.longdouble), axis=dim)
    return torch.from_numpy(np.asarray(wide, dtype=np.float64))


@pytest.mark.parametrize("along", ["row", "column", "full"])
def test_reduction_over_nothing(along: str, tmp_path: Path) -> None:
    x = torch.empty(0, 5) if along != "row" else torch.empty(5, 0)
    for kind in ("sum", "prod"):
        got = run(program(kind, "f32", along), tmp_path, x)
        assert torch.equal(got, expected(kind, x, along))


@pytest.mark.parametrize("along", ["row", "column", "full"])
@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin", "sum"])
def test_nan_and_infinity_are_found_wherever_they_stand(
    kind: str, along: str, tmp_path: Path
) -> None:
    call = built(program(kind, "f32", along), tmp_path).run
    for value in (float("nan"), -float("nan"), float("inf"), -float("inf")):
        for row, column in [(0, 0), (5, 36), (19, 18), (11, 1)]:
            x = torch.randn(20, 37)
            x[row, column] = value
            (got,) = call(x)
            torch.testing.assert_close(got, expected(kind, x, along), equal_nan=True)
    (got,) = call(torch.full((20, 37), float("nan")))
    torch.testing.assert_close(
        got, expected(kind, torch.full((20, 37), float("nan")), along), equal_nan=True
    )


@pytest.mark.parametrize("along", ["row", "column", "full"])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_the_first_of_equals_wins(kind: str, along: str, tmp_path: Path) -> None:
    call = built(program(kind, "i32", along), tmp_path).run
    for rows, columns in [(40, 33), (9, 2), (2, 9000)]:
        x = torch.randint(0, 3, (rows, columns), dtype=torch.int32)
        assert torch.equal(call(x)[0], expected(kind, x, along))


def test_two_nans_the_first_wins(tmp_path: Path) -> None:
    x = torch.tensor(
        [[1.0, float("nan"), 3.0, float("nan")], [float("inf"), 1.0, float("inf"), 2.0]]
    )
    assert run(program("argmax", "f32", "row"), tmp_path, x).tolist() == [1, 0]
    assert run(program("argmin", "f32", "row"), tmp_path, x).tolist() == [1, 1]


def test_large_full_reduction_does_not_depend_on_threads(tmp_path: Path) -> None:
    x = torch.rand(1000003, 1)
    text = program("sum", "f32", "full")
    one, two = (run(text, tmp_path, x, threads=n) for n in (1, 2))
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(run(text, tmp_path, x).item())
    finally:
        torch.set_num_threads(before)
    assert len(set(results)) == 1
    exact = x.double().sum()
    for got in (one, two):
        assert_as_good_as_eager(got, x.sum(), exact)


def test_tall_matrix_shares_its_rows_out(tmp_path: Path) -> None:
    text = (
        program("sum", "f32", "column").replace("s1", "12").replace("  size 12 = x.size(1)\n", "")
    )
    text = text.replace("s0", "100000").replace("  size 100000 = x.size(0)\n", "")
    x = torch.randn(100000, 12)
    for threads in (1, 2):
        program_ = built(text, tmp_path, threads=threads)
        assert ("parts" in program_.text()) == (threads == 2)
        (got,) = program_.run(x)
        assert_as_good_as_eager(got, x.sum(0), x.double().sum(0))


ROWS = """
program softmax(x):
  size s0 = x.size(0)
  in  x: f32[s0, {n}] stride [{n}, 1]
  out y: f32[s0, {n}] stride [{n}, 1]
  nest softmax_0 for i < s0:
    m: f32 = max over r < {n}:
      a: f32 = load x[{n}*i + r]
      yield a
    z: f32 = sum over q < {n}:
      a1: f32 = load x[{n}*i + q]
      b1: f32 = sub a1 m
      c1: f32 = exp b1
      yield c1
    for k < {n}:
      a2: f32 = load x[{n}*i + k]
      b2: f32 = sub a2 m
      c2: f32 = exp b2
      d2: f32 = div c2 z
      store y[{n}*i + k] = d2
  return y"""


@pytest.mark.parametrize("n", [1, 37, 1024, 5000])
def test_row_kernel_with_phases(n: int, tmp_path: Path) -> None:
    program_ = built(ROWS.format(n=n), tmp_path)
    source = program_.generated.kernels[0].source
    assert ("c1_row" in source) == (n <= 4096)  # exp is computed once where a row fits in the cache
    for rows in (1, 5, 64):
        x = torch.randn(rows, n) * 9
        x[0, -1] = -float("inf") if n > 1 else 0.0
        (got,) = program_.run(x)
        assert_as_good_as_eager(got, x.softmax(1), x.double().softmax(1), of_scale=True)
    x[:, 0] = float("nan")
    assert program_.run(x)[0].isnan().all()


COLUMNS = ROWS.replace("[{n}, 1]", "[1, s0]").replace("{n}*i + r", "s0*r + i")
COLUMNS = COLUMNS.replace("{n}*i + q", "s0*q + i").replace("{n}*i + k", "s0*k + i")


def test_column_kernel_with_phases(tmp_path: Path) -> None:
    program_ = built(COLUMNS.format(n=29), tmp_path)
    assert "tile" in program_.generated.kernels[0].source
    for columns in (1, 255, 256, 700):
        x = (torch.randn(29, columns) * 9).t()
        (got,) = program_.run(x)
        assert got.stride() == (1, columns)
        assert_as_good_as_eager(got, x.softmax(1), x.double().softmax(1), of_scale=True)


def test_column_values_cross_between_groups(tmp_path: Path) -> None:
    """A load and a value before the reduction are used inside and after it."""
    text = """
program p(x, w):
  size s0 = x.size(0)
  size s1 = x.size(1)
  in  x: f32[s0, s1] stride [s1, 1]
  in  w: f32[s1] stride [1]
  out y: f32[s1] stride [1]
  nest k_0 for i < s1:
    two: f32 = const 2.0
    at: f32 = index i
    v: f32 = load w[i]
    u: f32 = mul v two
    m: f32 = sum over r < s0:
      a: f32 = load x[s1*r + i]
      b: f32 = mul a u
      yield b
    c: f32 = add m u
    d: f32 = add c at
    e: f32 = mul d two
    store y[i] = e
  return y"""
    program_ = built(text, tmp_path)
    for rows, columns in [(3, 4), (50, 300)]:
        x, w = torch.randn(rows, columns), torch.randn(columns)
        u = 2 * w
        expected_ = (((x * u).sum(0) + u) + torch.arange(columns)) * 2
        torch.testing.assert_close(program_.run(x, w)[0], expected_, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("along", ["row", "column", "full"])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_long_sums_are_as_exact_as_pairwise_ones(name: str, along: str, tmp_path: Path) -> None:
    x = torch.rand(3, 100003, dtype={"f32": torch.float32, "f64": torch.float64}[name])
    x = x.t().contiguous() if along == "column" else x
    call = built(program("sum", name, along), tmp_path).run
    assert_as_good_as_eager(call(x)[0], expected("sum", x, along), exactly("sum", x, along))
    x[0, 0] = float("inf")
    assert torch.equal(call(x)[0].isinf(), expected("sum", x, along).isinf())
