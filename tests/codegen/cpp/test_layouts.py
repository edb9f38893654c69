"""Where elements lie: strides, views, symbolic sizes, masks, indirect loads, small types."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cpp_programs import built, run

UNARY = """
program p(x):
  in  x: f32[{shape}] stride [{stride}]
  out y: f32[6, 10] stride [{out}]
  nest k for i < 6, j < 10:
    a: f32 = load x[{at}]
    b: f32 = neg a
    store y[{to}] = b
  return y"""


@pytest.mark.parametrize("out", [(10, 1), (1, 6)])
@pytest.mark.parametrize("stride", [(10, 1), (1, 6), (0, 1), (1, 0), (0, 0), (20, 2)])
def test_strided_and_expanded_inputs(
    stride: tuple[int, int], out: tuple[int, int], tmp_path: Path
) -> None:
    x = torch.randn(200).as_strided((6, 10), stride)
    text = UNARY.format(
        shape="6, 10", stride=f"{stride[0]}, {stride[1]}", out=f"{out[0]}, {out[1]}",
        at=f"{stride[0]}*i + {stride[1]}*j", to=f"{out[0]}*i + {out[1]}*j",
    )  # fmt: skip
    got = run(text, tmp_path, x)
    assert torch.equal(got, -x) and got.stride() == out


def test_axes_that_walk_memory_as_one_are_merged(tmp_path: Path) -> None:
    text = UNARY.format(shape="6, 10", stride="10, 1", out="10, 1", at="10*i + j", to="10*i + j")
    source = built(text, tmp_path).generated.kernels[0].source
    assert "j < 60" in source and "i < " not in source


BINARY = """
program p(x, w):
  size s0 = x.size(0)
  size s1 = x.size(1)
  in  x: f32[s0, s1] stride [s1, 1]
  in  w: f32[s1] stride [1]
  out y: f32[s0, s1] stride [s1, 1]
  nest k for i < s0, j < s1:
    a: f32 = load x[s1*i + j]
    b: f32 = load w[j]
    c: f32 = mul a b
    store y[s1*i + j] = c
  return y"""


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_symbolic_sizes(threads: int, tmp_path: Path) -> None:
    program = built(BINARY, tmp_path, threads=threads)
    for shape in [(3, 4), (1, 1), (0, 5), (5, 0), (513, 1025), (2, 300000)]:
        x, w = torch.randn(shape), torch.randn(shape[1])
        assert torch.equal(program.run(x, w)[0], x * w)


def test_masked_load_reads_nothing_outside(tmp_path: Path) -> None:
    """Padding by one on either side: positions outside give the constant."""
    text = """
program pad(x):
  size s0 = x.size(0)
  in  x: f32[s0] stride [1]
  out y: f32[s0 + 2] stride [1]
  nest k for i < s0 + 2:
    at: i64 = index i
    one: i64 = const 1
    end: i64 = index s0
    low: bool = ge at one
    high: bool = le at end
    ok: bool = and low high
    a: f32 = load x[i - 1] if ok else -7.5
    store y[i] = a
  return y"""
    program = built(text, tmp_path)
    for n in (1, 3, 1000):
        x = torch.randn(n)
        assert torch.equal(program.run(x)[0], torch.nn.functional.pad(x, (1, 1), value=-7.5))


def test_indirect_load(tmp_path: Path) -> None:
    text = """
program take(x, where):
  size s0 = x.size(0)
  size s1 = where.size(0)
  in  x: f32[s0] stride [1]
  in  where: i64[s1] stride [1]
  out y: f32[s1] stride [1]
  nest k for i < s1:
    n: i64 = load where[i]
    a: f32 = load x[(n + s0)%s0]
    store y[i] = a
  return y"""
    x, where = torch.randn(11), torch.tensor([0, 10, -1, -11, 5])
    assert torch.equal(run(text, tmp_path, x, where), x[where])


def test_floor_division_of_positions_rounds_down(tmp_path: Path) -> None:
    text = """
program p(x):
  in  x: i64[20] stride [1]
  out y: i64[20] stride [1]
  out z: i64[20] stride [1]
  nest k for i < 20:
    a: i64 = index (i - 10)//3
    b: i64 = index (i - 10)%3
    store y[i] = a
    store z[i] = b
  return y, z"""
    y, z = built(text, tmp_path).run(torch.zeros(20, dtype=torch.int64))
    assert y.tolist() == [(i - 10) // 3 for i in range(20)]
    assert z.tolist() == [(i - 10) % 3 for i in range(20)]


def test_unsigned_bytes_wrap(tmp_path: Path) -> None:
    text = """
program p(x, y):
  in  x: u8[256] stride [1]
  in  y: u8[256] stride [1]
  out z: u8[256] stride [1]
  nest k for i < 256:
    a: u8 = load x[i]
    b: u8 = load y[i]
    c: u8 = mul a b
    d: u8 = sub c a
    e: u8 = add d b
    f: u8 = floordiv e a
    store z[i] = f
  return z"""
    x = torch.arange(256).to(torch.uint8).roll(1).clamp(min=1)
    y = torch.arange(256).to(torch.uint8).flip(0)
    assert torch.equal(run(text, tmp_path, x, y), (x * y - x + y) // x)


@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3", "f8e5m2"])
def test_copies_of_small_floats_keep_every_bit(name: str, tmp_path: Path) -> None:
    from compiler_core.ir.dtypes import DTYPES

    count, bits = (65536, torch.int16) if DTYPES[name].bytes == 2 else (256, torch.uint8)
    x = torch.arange(count).to(torch.int32).to(bits).view(DTYPES[name].torch)
    text = f"""
program p(x):
  in  x: {name}[{count}] stride [1]
  out y: {name}[{count}] stride [1]
  nest k for i < {count}:
    a: {name} = load x[i]
    store y[i] = a
  return y"""
    y = built(text, tmp_path).run(x)[0]
    is_nan = x.float().isnan()
    assert (
        torch.equal(x.view(bits)[~is_nan], y.view(bits)[~is_nan])
        and y.float()[is_nan].isnan().all()
    )


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_each_statement_rounds_once(name: str, tmp_path: Path) -> None:
    from compiler_core.ir.dtypes import DTYPES

    text = f"""
program p(x, y):
  size s0 = x.size(0)
  in  x: {name}[s0] stride [1]
  in  y: {name}[s0] stride [1]
  out z: {name}[s0] stride [1]
  nest k for i < s0:
    a: {name} = load x[i]
    b: {name} = load y[i]
    t: {name} = const 0.1
    c: {name} = mul a b
    d: {name} = add c t
    e: {name} = sub d a
    store z[i] = e
  return z"""
    dtype = DTYPES[name].torch
    x, y = torch.randn(50000).to(dtype), torch.randn(50000).to(dtype)
    tenth = torch.tensor(0.1, dtype=dtype)
    assert torch.equal(run(text, tmp_path, x, y), x * y + tenth - x)


def test_names_that_are_words_of_c(tmp_path: Path) -> None:
    text = """
program p(double, register):
  in  double: f64[4] stride [1]
  in  register: f64[4] stride [1]
  out float: f64[4] stride [1]
  nest exp for int < 4:
    sin: f64 = load double[int]
    log: f64 = load register[int]
    cos: f64 = sin sin
    if: f64 = pow cos log
    store float[int] = if
  return float"""
    x, y = torch.rand(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    torch.testing.assert_close(run(text, tmp_path, x, y), x.sin() ** y)


def test_constants_are_exact(tmp_path: Path) -> None:
    values = {"f64": [0.1, 1e-310, -0.0, 1e300], "f32": [0.1, 1e-45, 3.4028234663852886e38, -0.0], "i64": [-(2**63), 2**63 - 1, 0, -1], "i32": [-(2**31), 2**31 - 1, 0, 1], "u8": [255, 0, 1, 7], "bool": [True, False, True, False]}  # fmt: skip
    from compiler_core.ir.dtypes import DTYPES

    for name, numbers in values.items():
        outs = "\n".join(f"  out y{n}: {name}[] stride []" for n in range(4))
        body = "\n".join(
            f"    c{n}: {name} = const {v!r}\n    store y{n}[0] = c{n}"
            for n, v in enumerate(numbers)
        )
        text = f"program p():\n{outs}\n  nest k:\n{body}\n  return y0, y1, y2, y3"
        outputs = built(text, tmp_path).run()
        for got, number in zip(outputs, numbers):
            want = torch.tensor(number, dtype=DTYPES[name].torch)
            assert torch.equal(got, want) and torch.equal(
                got.double().signbit(), want.double().signbit()
            )
