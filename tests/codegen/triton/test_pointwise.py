"""Positions, offsets and masks: transposes, broadcasts, gathers, views, in-place, 64 bits, names."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler_core.errors import InternalError

SIZES = [1, 2, 127, 128, 129, 5000]


def test_sizes_of_every_block(kit: Any) -> None:
    for size in [0, *SIZES, 300_000]:
        text = f"""
program p(x):
  in x: f32[{size}] stride [1]
  out o: f32[{size}] stride [1]
  nest double_0 for i < {size}:
    v: f32 = load x[i]
    r: f32 = add v v
    store o[i] = r
  return o
"""
        kit.check(text, "pointwise", torch.randn(size), eager=lambda x: x + x)


def test_symbolic_sizes_from_one_compile(kit: Any) -> None:
    text = """
program p(x, w):
  size s0 = x.size(0)
  size s1 = x.size(1)
  in x: f32[s0, s1] stride [s1, 1]
  in w: f32[s1] stride [1]
  out o: f32[s1, s0] stride [s0, 1]
  nest scale_0 for i < s0, j < s1:
    v: f32 = load x[s1*i + j]
    w1: f32 = load w[j]
    r: f32 = mul v w1
    store o[s0*j + i] = r
  return o
"""
    shapes = [(1, 1), (33, 7), (2, 900), (0, 3)]
    again = [(torch.randn(shape), torch.randn(shape[1])) for shape in shapes]
    made = kit.check(
        text,
        "pointwise",
        torch.randn(5, 6),
        torch.randn(6),
        eager=lambda x, w: (x * w).t(),
        again=again,
    )
    assert made.generated.kernels[0].launch.grid == ("(s0*s1 + 1023) // 1024",)


def test_whole_position_is_not_taken_apart(kit: Any) -> None:
    """A contiguous offset is the linear position; only the broadcast operand needs its axis."""
    text = """
program p(x, w):
  in x: f32[4, 5, 6] stride [30, 6, 1]
  in w: f32[6] stride [1]
  out o: f32[4, 5, 6] stride [30, 6, 1]
  nest add_0 for i < 4, j < 5, k < 6:
    v: f32 = load x[30*i + 6*j + k]
    w1: f32 = load w[k]
    r: f32 = add v w1
    store o[30*i + 6*j + k] = r
  return o
"""
    kit.check(text, "pointwise", torch.randn(4, 5, 6), torch.randn(6), eager=torch.add)
    source = kit.kernel(text, "pointwise").source
    assert "k = xindex % 6" in source and "x_ptr + xindex" in source and "//" not in source


def test_permuted_and_offset_views(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[6, 8] stride [8, 1]
  out o: f32[7, 3] stride [3, 1]
  nest copy_0 for i < 7, j < 3:
    v: f32 = load x[16*j + i + 9]
    store o[3*i + j] = v
  return o
"""
    kit.check(text, "pointwise", torch.randn(6, 8), eager=lambda x: x[1::2, 1:].t().contiguous())


def test_floor_division_of_negative_offsets(kit: Any) -> None:
    """(i - 5) // 3 rounds down in the IR; Triton's // rounds towards zero."""
    text = """
program p(x):
  in x: i64[20] stride [1]
  out o: i64[20] stride [1]
  nest floor_0 for i < 20:
    q: i64 = index (i - 5)//3
    m: i64 = index (i - 5)%3
    h: i64 = index min(i, 7) - max(i, 3)
    v: i64 = load x[i]
    a: i64 = add q v
    b: i64 = mul a m
    c: i64 = sub b h
    store o[i] = c
  return o
"""

    def eager(x: torch.Tensor) -> torch.Tensor:
        i = torch.arange(20)
        return ((i - 5) // 3 + x) * ((i - 5) % 3) - (i.clamp(max=7) - i.clamp(min=3))

    kit.check(text, "pointwise", torch.arange(20) * 3, eager=eager)


@pytest.mark.parametrize("index", ["i64", "i32", "u8"])
def test_gather_with_a_mask(kit: Any, index: str) -> None:
    """An integer value as part of an offset; a masked load gives its constant elsewhere."""
    text = f"""
program p(x, at):
  in x: f32[9, 4] stride [4, 1]
  in at: {index}[150] stride [1]
  out o: f32[150, 4] stride [4, 1]
  nest gather_0 for i < 150, j < 4:
    n: {index} = load at[i]
    e: {index} = const 9
    ok: bool = lt n e
    v: f32 = load x[4*n + j] if ok else -1.5
    store o[4*i + j] = v
  return o
"""
    at = torch.randint(0, 12, (150,)).to(
        {"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}[index]
    )

    def eager(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        rows = x[at.long().clamp(max=8)]
        return torch.where(at[:, None] < 9, rows, torch.full_like(rows, -1.5))

    kit.check(text, "pointwise", torch.randn(9, 4), at, eager=eager)


@pytest.mark.parametrize("dtype", ["bool", "f8e4m3", "f8e5m2", "f16", "u8", "f64"])
def test_masked_load_of_every_kind(kit: Any, dtype: str) -> None:
    types = {"bool": torch.bool, "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
    torch_type = (
        types.get(dtype) or {"f16": torch.half, "u8": torch.uint8, "f64": torch.double}[dtype]
    )
    other = "True" if dtype == "bool" else "1"
    text = f"""
program p(x, m):
  in x: {dtype}[150] stride [1]
  in m: bool[150] stride [1]
  out o: {dtype}[150] stride [1]
  nest pick_0 for i < 150:
    ok: bool = load m[i]
    v: {dtype} = load x[i] if ok else {other}
    store o[i] = v
  return o
"""
    x, m = (torch.randn(150).abs() * 2).to(torch_type), torch.rand(150) < 0.5
    (got,) = kit.built(text, "pointwise").run(x, m)
    want = torch.where(m, x.double(), torch.ones(150).double())
    assert got.dtype is torch_type and torch.equal(got.double(), want)


@pytest.mark.parametrize("known", ["True", "False"])
def test_mask_that_is_a_constant(kit: Any, known: str) -> None:
    text = f"""
program p(x):
  in x: f32[150] stride [1]
  out o: f32[150] stride [1]
  nest pick_0 for i < 150:
    ok: bool = const {known}
    v: f32 = load x[i] if ok else 2.5
    store o[i] = v
  return o
"""
    eager = lambda x: x.clone() if known == "True" else torch.full_like(x, 2.5)  # noqa: E731
    kit.check(text, "pointwise", torch.randn(150), eager=eager)


def test_store_where_an_axis_has_one_position(kit: Any) -> None:
    """The offset names no axis, yet only one lane may store."""
    text = """
program p(x):
  size s0 = x.size(0)
  in x: f32[s0] stride [1]
  out o: f32[1] stride [1]
  nest last_0 for i < min(s0, 1):
    v: f32 = load x[i]
    store o[0] = v
  return o
"""
    kit.check(text, "pointwise", torch.randn(4), eager=lambda x: x[:1].clone())


def test_mutation_of_an_input(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[300] stride [1]
  nest inc_0 for i < 300:
    v: f32 = load x[i]
    c: f32 = const 1.0
    r: f32 = add v c
    store x[i] = r
  return
"""
    x = torch.zeros(300)
    made = kit.built(text, "pointwise")
    assert made.run(x) == () and made.run(x) == ()
    assert torch.equal(x, torch.full((300,), 2.0))
    assert [(p.name, p.kind) for p in made.generated.kernels[0].params] == [("x", "out")]


def test_half_types_round_at_each_value(kit: Any) -> None:
    """Two operations, two roundings, as in eager; one rounding would be off by an ulp here."""
    text = """
program p(x, y):
  in x: bf16[4000] stride [1]
  in y: bf16[4000] stride [1]
  out o: bf16[4000] stride [1]
  nest fma_0 for i < 4000:
    a: bf16 = load x[i]
    b: bf16 = load y[i]
    m: bf16 = mul a b
    r: bf16 = add m a
    store o[i] = r
  return o
"""
    x, y = torch.randn(4000).bfloat16(), torch.randn(4000).bfloat16()
    (got,) = kit.built(text, "pointwise").run(x, y)
    assert torch.equal(got, x * y + x)
    assert not torch.equal(got, (x.float() * y.float() + x.float()).bfloat16())


def test_offsets_beyond_32_bits(kit: Any) -> None:
    """The last element of 2**31 + 100 is found (the memory in between is never touched)."""
    size = 2**31 + 100
    text = f"""
program p(x):
  in x: i8[2, {size // 2}] stride [{size // 2}, 1]
  out o: i8[2, 4] stride [4, 1]
  nest ends_0 for i < 2, j < 4:
    v: i8 = load x[{size // 2}*i + j + {size // 2 - 4}]
    store o[4*i + j] = v
  return o
"""
    x = torch.empty(2, size // 2, dtype=torch.int8)
    x[1, -4:] = torch.tensor([1, 2, 3, 4])
    x[0, -4:] = torch.tensor([5, 6, 7, 8])
    (got,) = kit.built(text, "pointwise").run(x)
    assert got.tolist() == [[5, 6, 7, 8], [1, 2, 3, 4]]
    assert "tl.program_id(0).to(tl.int64)" in kit.kernel(text, "pointwise").source


def test_names_that_the_text_uses_itself(kit: Any) -> None:
    text = """
program p(tl, xindex):
  in tl: f32[200] stride [1]
  in xindex: f32[200] stride [1]
  out o: f32[200] stride [1]
  nest maximum for xmask < 200:
    libdevice: f32 = load tl[xmask]
    triton: f32 = load xindex[xmask]
    rmask: f32 = maximum libdevice triton
    store o[xmask] = rmask
  return o
"""
    kit.check(text, "pointwise", torch.randn(200), torch.randn(200), eager=torch.maximum)


def test_every_line_has_origins_of_its_own_kernel(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[6, 50] stride [50, 1]
  out o: f32[6, 50] stride [50, 1]
  nest scale_0 for i < 6, j < 50:
    v: f32 = load x[50*i + j]
    c: f32 = const 2.0
    r: f32 = mul v c
    store o[50*i + j] = r
  return o
"""
    source = kit.kernel(text, "pointwise")
    lines = source.source.splitlines()
    assert len(lines) == len(source.line_origins)
    assert all(origins for line, origins in zip(lines, source.line_origins) if line)
    of = {line.strip(): origins for line, origins in zip(lines, source.line_origins)}
    fuse = "fuse:forward/scale_0."
    assert of["r = v * 2.0"] == {f"{fuse}r", f"{fuse}c"}
    assert of["tl.store(o_ptr + xindex, r, mask=xmask)"] == {f"{fuse}store_o"}


def test_operation_without_a_text_says_which(kit: Any) -> None:
    text = """
program p(x):
  in x: i64[4] stride [1]
  out o: i64[4] stride [1]
  nest sin_0 for i < 4:
    v: i64 = load x[i]
    r: i64 = sin v
    store o[i] = r
  return o
"""
    with pytest.raises(InternalError, match="CC511.*sin on i64"):
        kit.kernel(text, "pointwise")
