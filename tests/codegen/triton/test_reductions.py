"""Reductions of every kind: one tile or looped, rows, columns and all; ties, NaN, odd and empty sizes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from compiler_core.ir.dtypes import DTYPES

KINDS = ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all"]
EAGER = {
    "sum": lambda x: x.sum(1), "prod": lambda x: x.prod(1), "max": lambda x: x.amax(1), "min": lambda x: x.amin(1),
    "argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin(1), "any": lambda x: x.any(1), "all": lambda x: x.all(1),
}  # fmt: skip

# rows, columns: one row a program, several rows a program, a looped row, one element, a power of two
SHAPES = [(3, 700), (37, 5), (2, 20000), (5, 1), (1, 64), (130, 33)]


def row(rows: Any, columns: Any, dtype: str, kind: str, result: str, offset: str) -> str:
    return f"""
program p(x):
  in x: {dtype}[{rows}, {columns}] stride [{columns}, 1]
  out o: {result}[{rows}] stride [1]
  nest fold_0 for i < {rows}:
    r: {result} = {kind} over j < {columns}:
      v: {dtype} = load x[{offset}]
      yield v
    store o[i] = r
  return o
"""


def result_type(kind: str, dtype: str) -> str:
    if kind.startswith("arg"):
        return "i64"
    is_whole = not DTYPES[dtype].is_float
    return "i64" if kind in ("sum", "prod") and is_whole else dtype


def data(dtype: str, rows: int, columns: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rows * columns)
    if dtype == "bool":
        return torch.rand(rows, columns, generator=generator) < (0.5 / columns + 0.3)
    if DTYPES[dtype].is_float:
        return torch.randn(rows, columns, generator=generator).to(DTYPES[dtype].torch)
    return torch.randint(-3 if dtype != "u8" else 0, 5, (rows, columns), generator=generator).to(
        DTYPES[dtype].torch
    )


@pytest.mark.parametrize("rows,columns", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows(kit: Any, kind: str, rows: int, columns: int) -> None:
    dtype = "bool" if kind in ("any", "all") else "f32"
    text = row(rows, columns, dtype, kind, result_type(kind, dtype), f"{columns}*i + j")
    kit.check(text, "row", data(dtype, rows, columns), eager=EAGER[kind])


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"])
@pytest.mark.parametrize("kind", KINDS[:6])
def test_types(kit: Any, kind: str, dtype: str) -> None:
    if dtype == "bool" and kind.startswith("arg"):
        eager = lambda x: EAGER[kind](x.to(torch.int8))  # noqa: E731
    else:
        eager = EAGER[kind]
    text = row(9, 70, dtype, kind, result_type(kind, dtype), "70*i + j")
    kit.check(text, "row", data(dtype, 9, 70), eager=eager)


@pytest.mark.parametrize("columns", [1, 30, 100, 900])
@pytest.mark.parametrize("kind", KINDS[:6])
def test_columns(kit: Any, kind: str, columns: int) -> None:
    """The reduced axis is not the contiguous one."""
    length = 300
    text = row(columns, length, "f32", kind, result_type(kind, "f32"), f"i + {columns}*j").replace(
        f"in x: f32[{columns}, {length}] stride [{length}, 1]",
        f"in x: f32[{length}, {columns}] stride [{columns}, 1]",
    )
    kit.check(
        text,
        "column",
        data("f32", length, columns),
        eager=lambda x: EAGER[kind](x.t().contiguous()),
    )


@pytest.mark.parametrize("length", [1, 7, 4096, 20001])
@pytest.mark.parametrize("kind", KINDS[:6])
def test_all_elements(kit: Any, kind: str, length: int) -> None:
    result = result_type(kind, "f32")
    text = f"""
program p(x):
  in x: f32[{length}] stride [1]
  out o: {result}[] stride []
  nest fold_0:
    r: {result} = {kind} over j < {length}:
      v: f32 = load x[j]
      yield v
    store o[0] = r
  return o
"""
    kit.check(text, "row", data("f32", 1, length)[0], eager=lambda x: EAGER[kind](x[None])[0])


@pytest.mark.parametrize("columns", [60, 600, 17000])
@pytest.mark.parametrize("kind", ["max", "min", "argmax", "argmin"])
def test_nan_wins_and_the_first_of_equals(kit: Any, kind: str, columns: int) -> None:
    x = torch.zeros(5, columns)
    x[0, columns // 2] = x[0, columns - 1] = math.nan
    x[1, 3] = x[1, columns - 2] = 7.0
    x[2, 5] = x[2, columns - 2] = -7.0
    x[3] = -math.inf
    x[4] = math.inf
    text = row(5, columns, "f32", kind, result_type(kind, "f32"), f"{columns}*i + j")
    kit.check(text, "row", x, eager=EAGER[kind], again=[(x.flip(1).contiguous(),)])


@pytest.mark.parametrize("strategy", ["row", "column"])
def test_empty_length(kit: Any, strategy: str) -> None:
    text = row(6, 0, "f32", "sum", "f32", "i")
    kit.check(text, strategy, torch.empty(6, 0), eager=lambda x: x.sum(1))


def test_no_rows(kit: Any) -> None:
    text = row(0, 5, "f32", "sum", "f32", "5*i + j")
    kit.check(text, "row", torch.empty(0, 5), eager=lambda x: x.sum(1))


@pytest.mark.parametrize("kind", ["sum", "argmax"])
@pytest.mark.parametrize("strategy", ["row", "column"])
def test_symbolic_sizes_from_one_compile(kit: Any, kind: str, strategy: str) -> None:
    text = row("s0", "s1", "f32", kind, result_type(kind, "f32"), "s1*i + j").replace(
        "  in x", "  size s0 = x.size(0)\n  size s1 = x.size(1)\n  in x"
    )
    again = [(data("f32", *shape),) for shape in [(1, 1), (40, 3), (2, 5000), (0, 4)]]
    kit.check(text, strategy, data("f32", 7, 33), eager=EAGER[kind], again=again)


@pytest.mark.parametrize("columns", [100, 3000, 17000])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_softmax_in_one_kernel(kit: Any, dtype: str, columns: int) -> None:
    text = f"""
program p(x):
  in x: {dtype}[19, {columns}] stride [{columns}, 1]
  out o: {dtype}[19, {columns}] stride [{columns}, 1]
  nest softmax_0 for i < 19:
    m: f32 = max over j < {columns}:
      a: {dtype} = load x[{columns}*i + j]
      a1: f32 = cast a
      yield a1
    s: f32 = sum over k < {columns}:
      b: {dtype} = load x[{columns}*i + k]
      b1: f32 = cast b
      b2: f32 = sub b1 m
      b3: f32 = exp b2
      yield b3
    for l < {columns}:
      c: {dtype} = load x[{columns}*i + l]
      c1: f32 = cast c
      c2: f32 = sub c1 m
      c3: f32 = exp c2
      c4: f32 = div c3 s
      c5: {dtype} = cast c4
      store o[{columns}*i + l] = c5
  return o
"""
    kit.check(text, "row", data(dtype, 19, columns), eager=lambda x: x.softmax(1))


def test_one_tile_loads_a_row_once_and_says_whom_it_serves(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[4, 700] stride [700, 1]
  out o: f32[4, 700] stride [700, 1]
  nest centre_0 for i < 4:
    s: f32 = sum over j < 700:
      a: f32 = load x[700*i + j]
      yield a
    for k < 700:
      b: f32 = load x[700*i + k]
      d: f32 = sub b s
      store o[700*i + k] = d
  return o
"""
    kit.check(text, "row", data("f32", 4, 700), eager=lambda x: x - x.sum(1, keepdim=True))
    source = kit.kernel(text, "row")
    loads = [n for n, line in enumerate(source.source.splitlines()) if "tl.load(" in line]
    assert len(loads) == 1
    fuse = "fuse:forward/centre_0."
    assert source.line_origins[loads[0]] == {f"{fuse}a", f"{fuse}b"}


def test_looped_neighbours_share_a_pass(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[3, 20000] stride [20000, 1]
  out o: f32[3] stride [1]
  nest two_0 for i < 3:
    s: f32 = sum over j < 20000:
      a: f32 = load x[20000*i + j]
      yield a
    q: f32 = sum over k < 20000:
      b: f32 = load x[20000*i + k]
      c: f32 = mul b b
      yield c
    t: f32 = sub q s
    store o[i] = t
  return o
"""
    kit.check(text, "row", data("f32", 3, 20000), eager=lambda x: (x * x).sum(1) - x.sum(1))
    assert kit.kernel(text, "row").source.count("for rstart in range") == 1


def test_what_stands_between_neighbours_waits_for_them(kit: Any) -> None:
    """A store of the first result, and a value that both may use: still one pass over x."""
    text = """
program p(x, w):
  in x: f32[3, 20000] stride [20000, 1]
  in w: f32[3] stride [1]
  out o: f32[3] stride [1]
  out q: f32[3] stride [1]
  nest two_0 for i < 3:
    s: f32 = sum over j < 20000:
      a: f32 = load x[20000*i + j]
      yield a
    store o[i] = s
    c: f32 = load w[i]
    t: f32 = sum over k < 20000:
      b: f32 = load x[20000*i + k]
      d: f32 = sub b c
      e: f32 = mul d d
      yield e
    store q[i] = t
  return o, q
"""
    eager = lambda x, w: (x.sum(1), ((x - w[:, None]) ** 2).sum(1))  # noqa: E731
    inputs = data("f32", 3, 20000), data("f32", 1, 3)[0]
    kit.check(text, "row", *inputs, eager=eager)
    source = kit.kernel(text, "row").source
    assert source.count("for rstart in range") == 1 and "tl.debug_barrier()" not in source
    needs = text.replace("load w[i]", "load o[i]").replace("sub b c", "sub b s")
    eager = lambda x, w: (x.sum(1), ((x - x.sum(1, keepdim=True)) ** 2).sum(1))  # noqa: E731
    kit.check(needs, "row", *inputs, eager=eager)
    assert kit.kernel(needs, "row").source.count("for rstart in range") == 2


def test_looped_needs_its_predecessor(kit: Any) -> None:
    """A loop that uses another's result does not join it; what it stored is read after a barrier."""
    text = """
program p(x):
  in x: f32[3, 20000] stride [20000, 1]
  out y: f32[3, 20000] stride [20000, 1]
  out o: f32[3] stride [1]
  nest steps_0 for i < 3:
    s: f32 = sum over j < 20000:
      a: f32 = load x[20000*i + j]
      yield a
    for k < 20000:
      b: f32 = load x[20000*i + k]
      c: f32 = mul b s
      store y[20000*i + k] = c
    m: f32 = max over l < 20000:
      d: f32 = load y[20000*i + l]
      yield d
    store o[i] = m
  return y, o
"""

    def eager(x: torch.Tensor) -> Any:
        y = x * x.sum(1, keepdim=True)
        return y, y.amax(1)

    kit.check(text, "row", data("f32", 3, 20000), eager=eager)
    assert "tl.debug_barrier()" in kit.kernel(text, "row").source


@pytest.mark.parametrize("strategy", ["pointwise", "row", "column"])
def test_reduction_inside_a_loop(kit: Any, strategy: str) -> None:
    """Loops inside inner loops run one position after another."""
    text = """
program p(x, w):
  in x: f32[6, 10] stride [10, 1]
  in w: f32[10, 17] stride [17, 1]
  out o: f32[6, 17] stride [17, 1]
  out at: i64[6, 17] stride [17, 1]
  nest mm_0 for i < 6:
    for n < 17:
      s: f32 = sum over k < 10:
        a: f32 = load x[10*i + k]
        b: f32 = load w[17*k + n]
        c: f32 = mul a b
        yield c
      m: i64 = argmax over k1 < 5, k2 < 2:
        a1: f32 = load x[10*i + 2*k1 + k2]
        b1: f32 = load w[34*k1 + 17*k2 + n]
        c1: f32 = mul a1 b1
        yield c1
      store o[17*i + n] = s
      store at[17*i + n] = m
  return o, at
"""

    def eager(x: torch.Tensor, w: torch.Tensor) -> Any:
        products = x[:, :, None] * w[None]
        return products.sum(1), products.argmax(1)

    kit.check(text, strategy, data("f32", 6, 10), data("f32", 10, 17), eager=eager)


def test_two_lengths_in_one_kernel(kit: Any) -> None:
    text = """
program p(x, y):
  in x: f32[40, 30] stride [30, 1]
  in y: f32[40, 12] stride [12, 1]
  out o: f32[40] stride [1]
  nest both_0 for i < 40:
    s: f32 = sum over j < 30:
      a: f32 = load x[30*i + j]
      yield a
    m: f32 = max over k1 < 3, k2 < 4:
      b: f32 = load y[12*i + 4*k1 + k2]
      yield b
    t: f32 = mul s m
    store o[i] = t
  return o
"""
    inputs = data("f32", 40, 30), data("f32", 40, 12)
    kit.check(text, "row", *inputs, eager=lambda x, y: x.sum(1) * y.amax(1))


@pytest.mark.parametrize(
    "strategy,shape", [("row", (40, 30)), ("row", (2, 900)), ("column", (40, 30))]
)
def test_reduction_of_what_does_not_vary(kit: Any, strategy: str, shape: tuple[int, int]) -> None:
    """A constant, and a value of the row, added up along the row."""
    rows, columns = shape
    text = f"""
program p(x):
  in x: f32[{rows}] stride [1]
  out o: f32[{rows}] stride [1]
  nest same_0 for i < {rows}:
    v: f32 = load x[i]
    s: f32 = sum over j < {columns}:
      yield v
    n: f32 = sum over k < {columns}:
      c: f32 = const 2.0
      yield c
    t: f32 = add s n
    store o[i] = t
  return o
"""
    kit.check(text, strategy, data("f32", 1, rows)[0], eager=lambda x: x * columns + 2.0 * columns)


@pytest.mark.parametrize("length", [40, 700])
def test_softmax_over_columns(kit: Any, length: int) -> None:
    """Phases that keep a tile, and phases that read it again."""
    text = f"""
program p(x):
  in x: f32[{length}, 30] stride [30, 1]
  out o: f32[{length}, 30] stride [30, 1]
  nest softmax_0 for i < 30:
    m: f32 = max over j < {length}:
      a: f32 = load x[30*j + i]
      yield a
    s: f32 = sum over k < {length}:
      b: f32 = load x[30*k + i]
      b1: f32 = sub b m
      b2: f32 = exp b1
      yield b2
    for l < {length}:
      c: f32 = load x[30*l + i]
      c1: f32 = sub c m
      c2: f32 = exp c1
      c3: f32 = div c2 s
      store o[30*l + i] = c3
  return o
"""
    kit.check(text, "column", data("f32", length, 30), eager=lambda x: x.softmax(0))


def test_positions_of_a_static_row_need_no_64_bits(kit: Any) -> None:
    """Rows are symbolic, a row is not: its positions are i32, but a number made of one is what it says."""
    text = """
program p(x):
  size s0 = x.size(0)
  in x: i64[s0, 100] stride [100, 1]
  out o: i64[s0] stride [1]
  nest weigh_0 for i < s0:
    r: i64 = sum over j < 100:
      v: i64 = load x[100*i + j]
      n: i64 = index j
      big: i64 = const 1099511627776
      w: i64 = mul n big
      y: i64 = mul v w
      yield y
    store o[i] = r
  return o
"""
    eager = lambda x: (x * torch.arange(100) * 2**40).sum(1)  # noqa: E731
    again = [(data("i64", rows, 100),) for rows in (1, 50)]
    kit.check(text, "row", data("i64", 7, 100), eager=eager, again=again)
    lines = kit.kernel(text, "row").source.splitlines()
    (rindex,) = [line for line in lines if line.strip().startswith("rindex =")]
    assert "int64" not in rindex


def test_positions_that_may_leave_32_bits_have_64(kit: Any) -> None:
    text = row("s0", 100, "f32", "sum", "f32", "i + 100000000*j").replace(
        "  in x: f32[s0, 100] stride [100, 1]",
        "  size s0 = x.size(0)\n  in x: f32[s0, 100] stride [1, 100000000]",
    )
    lines = kit.kernel(text, "row").source.splitlines()
    (rindex,) = [line for line in lines if line.strip().startswith("rindex =")]
    assert ".to(tl.int64)" in rindex


def test_constants_of_a_reduction_are_among_its_origins(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[4] stride [1]
  out o: f32[4] stride [1]
  nest count_0 for i < 4:
    r: f32 = sum over j < 700:
      c: f32 = const 1.0
      yield c
    store o[i] = r
  return o
"""
    source = kit.kernel(text, "row")
    lines = source.source.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.strip().startswith("r = ")]
    assert source.line_origins[at] == {"fuse:forward/count_0.r", "fuse:forward/count_0.c"}


@pytest.mark.parametrize("columns", [700, 20000])
def test_what_was_stored_is_loaded_again(kit: Any, columns: int) -> None:
    """A tile that is kept from an earlier load is out of date after a store to its buffer."""
    text = f"""
program p(x):
  in x: f32[3, {columns}] stride [{columns}, 1]
  out o: f32[3] stride [1]
  nest bump_0 for i < 3:
    for j < {columns}:
      a: f32 = load x[{columns}*i + j]
      c: f32 = const 1.0
      b: f32 = add a c
      store x[{columns}*i + j] = b
    s: f32 = sum over k < {columns}:
      v: f32 = load x[{columns}*i + k]
      yield v
    store o[i] = s
  return o
"""
    x = torch.randint(0, 9, (3, columns)).float()
    before, made = x.clone(), kit.built(text, "row")
    for times in (1, 2):
        (got,) = made.run(x)
        assert torch.equal(x, before + times)
        assert torch.equal(got, x.sum(1))
