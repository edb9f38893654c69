"""The reference interpreter against torch, on programs written by hand, at several sizes each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler_core.ir import interpret_nest
from compiler_core.ir.checks import CHECKS
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.in_float64 import in_float64
from compiler_core.ir.interpret import operator_of, run_program
from compiler_core.ir.loop import Program
from compiler_core.ir.parse import parse_program


def program(body: str, **declared: str) -> Program:
    """A program whose inputs are the buffers of role 'in'; sizes are read from the first."""
    buffers = "\n".join(f"  {role} {rest}" for role, rest in _pairs(declared))
    inputs = [rest.split(":")[0] for role, rest in _pairs(declared) if role == "in"]
    outputs = [rest.split(":")[0] for role, rest in _pairs(declared) if role == "out"]
    used = [n for n in ("s0", "s1") if n in buffers]
    sizes = "\n".join(f"  size {n} = {inputs[0]}.size({k})" for k, n in enumerate(used))
    return parse_program(
        f"program p({', '.join(inputs)}):\n{sizes}\n{buffers}\n{body}\n  return {', '.join(outputs)}"
    )


def _pairs(declared: dict[str, str]) -> list[tuple[str, str]]:
    return [(key.rstrip("0123456789"), value) for key, value in declared.items()]


POINTWISE = """
  nest add_0 for i < s0:
    a: {t} = load x[i]
    b: {t} = {op} a a
    store y[i] = b
"""


def pointwise(dtype: str, op: str) -> Program:
    declared = {
        "in0": f"x: {dtype}[s0] stride [1]",
        "out0": f"y: {dtype}[s0] stride [1]",
    }
    return program(POINTWISE.format(t=dtype, op=op), **declared)


SOFTMAX = program(
    """
  nest softmax_0 for i < s0:
    m: f32 = max over j < s1:
      a: f32 = load x[i*s1 + j]
      yield a
    t: f32 = sum over k < s1:
      b: f32 = load x[i*s1 + k]
      c: f32 = sub b m
      d: f32 = exp c
      yield d
    for n < s1:
      e: f32 = load x[i*s1 + n]
      f: f32 = sub e m
      g: f32 = exp f
      h: f32 = div g t
      store y[i*s1 + n] = h
""",
    in0="x: f32[s0, s1] stride [s1, 1]",
    out0="y: f32[s0, s1] stride [s1, 1]",
)


@pytest.mark.parametrize("sizes", [(4, 7), (1, 1), (13, 2), (0, 5)])
def test_softmax_in_one_nest(sizes: tuple[int, int]) -> None:
    x = torch.randn(*sizes)
    (y,) = run_program(SOFTMAX, [x])
    torch.testing.assert_close(y, x.softmax(1), rtol=1e-6, atol=1e-7)
    exact = run_program(in_float64(SOFTMAX), [x.double()])[0]
    torch.testing.assert_close(exact, x.double().softmax(1), rtol=1e-14, atol=1e-15)


def test_nothing_of_one_call_is_left_for_the_next() -> None:
    for sizes in [(3, 5), (5, 3), (3, 5)]:
        x = torch.randn(*sizes)
        before = x.clone()
        (y,) = run_program(SOFTMAX, [x])
        torch.testing.assert_close(y, before.softmax(1), rtol=1e-6, atol=1e-7)
        assert torch.equal(x, before)


def test_large_spaces_are_cut_without_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(11, 6)
    whole = run_program(SOFTMAX, [x])[0]
    monkeypatch.setattr(interpret_nest, "_CHUNK", 13)
    assert torch.equal(run_program(SOFTMAX, [x])[0], whole)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_column_sum_over_no_rows_is_zero(rows: int) -> None:
    sums = program(
        """
  nest sum_0 for j < s1:
    t: f32 = sum over i < s0:
      a: f32 = load x[i*s1 + j]
      yield a
    store y[j] = t
""",
        in0="x: f32[s0, s1] stride [s1, 1]",
        out0="y: f32[s1] stride [1]",
    )
    x = torch.randn(rows, 5)
    torch.testing.assert_close(run_program(sums, [x])[0], x.sum(0))


def reduction(kind: str, dtype: str, result: str) -> Program:
    return program(
        f"""
  nest r_0:
    t: {result} = {kind} over i < s0, j < s1:
      a: {dtype} = load x[i*s1 + j]
      yield a
    store y[0] = t
""",
        in0=f"x: {dtype}[s0, s1] stride [s1, 1]",
        out0=f"y: {result}[] stride []",
    )


NAN = math.nan


@pytest.mark.parametrize("kind", ["argmax", "argmin", "max", "min"])
@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 7.0, 7.0], [7.0, 0.0, 0.0]],
        [[1.0, NAN, 7.0], [NAN, 0.0, -math.inf]],
        [[5.0, 5.0, 5.0]],
        [[-math.inf, -math.inf]],
    ],
)
def test_ties_and_nan_are_those_of_eager(kind: str, rows: list[list[float]]) -> None:
    x = torch.tensor(rows)
    eager = {"argmax": x.argmax, "argmin": x.argmin, "max": x.amax, "min": x.amin}[kind]()
    result = "i64" if kind.startswith("arg") else "f32"
    (found,) = run_program(reduction(kind, "f32", result), [x])
    torch.testing.assert_close(found, eager, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("kind", ["max", "argmin"])
def test_the_largest_of_nothing_is_refused(kind: str) -> None:
    result = "i64" if kind.startswith("arg") else "f32"
    with pytest.raises(IndexError, match=f"nest r_0, statement t: {kind} over no elements"):
        run_program(reduction(kind, "f32", result), [torch.empty(0, 3)])


@pytest.mark.parametrize(("kind", "over_none"), [("any", False), ("all", True)])
def test_truth_values_fold(kind: str, over_none: bool) -> None:
    fold = reduction(kind, "bool", "bool")
    for rows in ([[True, False]], [[False, False]], [[True, True]]):
        x = torch.tensor(rows)
        assert run_program(fold, [x])[0].item() is bool(getattr(x, kind)())
    assert run_program(fold, [torch.empty(0, 2, dtype=torch.bool)])[0].item() is over_none


def test_sums_wrap_in_their_own_type() -> None:
    x = torch.full((3, 100), 200, dtype=torch.uint8)
    (found,) = run_program(reduction("sum", "u8", "u8"), [x])
    assert found.item() == 3 * 100 * 200 % 256
    prod = run_program(reduction("prod", "i32", "i32"), [torch.full((1, 33), 2).int()])[0]
    assert prod.item() == 0


def test_a_yield_that_does_not_depend_on_the_axes_counts_them() -> None:
    count = program(
        """
  nest c_0:
    one: f32 = const 1.0
    t: f32 = sum over i < s0, j < 3:
      two: f32 = add one one
      yield two
    store y[0] = t
""",
        in0="x: f32[s0] stride [1]",
        out0="y: f32[] stride []",
    )
    assert run_program(count, [torch.empty(5)])[0].item() == 30


# ---------------------------------------------------------------------------------- arithmetic


def test_each_value_of_a_half_type_rounds_once() -> None:
    x = torch.randn(1000).bfloat16()
    expected = x + x
    assert torch.equal(run_program(pointwise("bf16", "add"), [x])[0], expected)
    chain = program(
        """
  nest c_0 for i < s0:
    a: bf16 = load x[i]
    b: bf16 = mul a a
    c: bf16 = add b a
    d: f32 = cast c
    store y[i] = d
""",
        in0="x: bf16[s0] stride [1]",
        out0="y: f32[s0] stride [1]",
    )
    assert torch.equal(run_program(chain, [x])[0], (x * x + x).float())
    fused = torch.addcmul(x.float(), x.float(), x.float()).bfloat16()
    assert not torch.equal(run_program(chain, [x])[0], fused.float())


@pytest.mark.parametrize("name", ["f8e4m3", "f8e5m2"])
def test_eight_bit_floats_compute_in_f32(name: str) -> None:
    dtype = {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}[name]
    x = torch.linspace(-20, 20, 41).to(dtype)
    (y,) = run_program(pointwise(name, "mul"), [x])
    assert torch.equal(y.float(), (x.float() * x.float()).to(dtype).float())


def test_uint8_wraps() -> None:
    x = torch.arange(256).to(torch.uint8)
    for op, eager in (("add", x + x), ("mul", x * x), ("sub", x - x)):
        assert torch.equal(run_program(pointwise("u8", op), [x])[0], eager)


INTEGER_OPS = ["floordiv", "truncdiv", "remainder", "fmod", "maximum", "minimum"]


@pytest.mark.parametrize("op", INTEGER_OPS)
@pytest.mark.parametrize("dtype", ["i64", "f32"])
def test_division_has_the_signs_of_eager(op: str, dtype: str) -> None:
    binary = program(
        f"""
  nest b_0 for i < s0:
    a: {dtype} = load x[i]
    b: {dtype} = load z[i]
    c: {dtype} = {op} a b
    store y[i] = c
""",
        in0=f"x: {dtype}[s0] stride [1]",
        in1=f"z: {dtype}[s0] stride [1]",
        out0=f"y: {dtype}[s0] stride [1]",
    )
    kind = torch.int64 if dtype == "i64" else torch.float32
    x = torch.tensor([7, -7, 7, -7, 0, 6], dtype=kind)
    z = torch.tensor([2, 2, -2, -2, 3, -3], dtype=kind)
    eager = {
        "floordiv": x // z,
        "truncdiv": torch.div(x, z, rounding_mode="trunc"),
        "remainder": x % z,
        "fmod": torch.fmod(x, z),
        "maximum": torch.maximum(x, z),
        "minimum": torch.minimum(x, z),
    }[op]
    assert torch.equal(run_program(binary, [x, z])[0], eager)


def test_positions_constants_and_casts() -> None:
    tri = program(
        """
  nest t_0 for i < s0, j < s1:
    r: i64 = index i
    c: i64 = index j + 1
    low: bool = ge r c
    a: f32 = load x[i*s1 + j]
    zero: f32 = const 0.0
    b: f32 = where low a zero
    n: i64 = cast b
    store y[i*s1 + j] = n
""",
        in0="x: f32[s0, s1] stride [s1, 1]",
        out0="y: i64[s0, s1] stride [s1, 1]",
    )
    for sizes in [(4, 4), (3, 5)]:
        x = torch.randn(*sizes) * 10
        assert torch.equal(run_program(tri, [x])[0], x.tril(-1).long())


# ---------------------------------------------------------------------------------- memory

CAT = program(
    """
  nest cat_0 for i < s0 + 3:
    at: i64 = index i
    end: i64 = index s0
    first: bool = lt at end
    second: bool = not first
    a: f32 = load x[i] if first else 0.0
    b: f32 = load z[i - s0] if second else 0.0
    c: f32 = where first a b
    store y[i] = c
""",
    in0="x: f32[s0] stride [1]",
    in1="z: f32[3] stride [1]",
    out0="y: f32[s0 + 3] stride [1]",
)


@pytest.mark.parametrize("length", [5, 0, 1])
def test_masked_loads_read_only_where_they_may(length: int) -> None:
    x, z = torch.randn(length), torch.randn(3)
    assert torch.equal(run_program(CAT, [x, z])[0], torch.cat([x, z]))


GATHER = program(
    """
  nest gather_0 for i < s0:
    k: i64 = load x[i]
    a: f32 = load z[2*k + 1]
    store y[i] = a
""",
    in0="x: i64[s0] stride [1]",
    in1="z: f32[4, 2] stride [2, 1]",
    out0="y: f32[s0] stride [1]",
)


def test_indirect_loads_check_their_bounds() -> None:
    z = torch.randn(4, 2)
    for places in ([3, 0, 0, 2], [1]):
        assert torch.equal(run_program(GATHER, [torch.tensor(places), z])[0], z[places, 1])
    for places, offset in (([0, 4], 9), ([-1], -1)):
        message = f"nest gather_0, statement a: offset {offset} is outside z, which has 8 elements"
        with pytest.raises(IndexError, match=message):
            run_program(GATHER, [torch.tensor(places), z])


SCATTER = """
  nest copy_0 for j < s1:
    c: {t} = load x[j]
    store y[j] = c
  nest add_0 for i < s0:
    k: i64 = load h[i]
    at: i64 = place k < s1 as {check} 2
    a: {t} = load v[i]
    store y[at] += a
"""


def scatter(dtype: str, check: str) -> Program:
    return program(
        SCATTER.format(t=dtype, check=check),
        in0="h: i64[s0] stride [1]",
        in1=f"x: {dtype}[s1] stride [1]",
        in2=f"v: {dtype}[s0] stride [1]",
        out0=f"y: {dtype}[s1] stride [1]",
    )


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i32"])
@pytest.mark.parametrize("places", [[3, 0, 3, 3, 1], [0], []])
def test_added_positions_may_meet(dtype: str, places: list[int]) -> None:
    torch_type = DTYPES[dtype].torch
    h, x = torch.tensor(places, dtype=torch.int64), torch.randn(4).mul(9).to(torch_type)
    v = torch.randn(len(places)).mul(9).to(torch_type)
    run = scatter(dtype, "element")
    run = replace(run, symbols={"s0": ("h", 0), "s1": ("x", 0)})
    (y,) = run_program(run, [h, x, v])
    torch.testing.assert_close(y, x.index_add(0, h, v))


@pytest.mark.parametrize("check", list(CHECKS))
def test_a_place_outside_its_dimension_raises_what_the_check_says(check: str) -> None:
    run = replace(scatter("f32", check), symbols={"s0": ("h", 0), "s1": ("x", 0)})
    x, v = torch.zeros(4), torch.ones(3)
    row = CHECKS[check]
    for bad in (4, -5):
        with pytest.raises(row.error) as caught:
            run_program(run, [torch.tensor([1, bad, 9]), x, v])
        assert str(caught.value) == str(row.failure(bad, 2, 4))
    if row.wraps:
        (y,) = run_program(run, [torch.tensor([1, -1, -4]), x, v])
        assert y.tolist() == [1, 1, 0, 1]
    else:
        with pytest.raises(row.error):
            run_program(run, [torch.tensor([1, -1, -4]), x, v])


def test_two_positions_that_store_to_one_place_are_refused() -> None:
    race = program(
        """
  nest race_0 for i < s0:
    a: f32 = load x[i]
    store y[i//2] = a
""",
        in0="x: f32[s0] stride [1]",
        out0="y: f32[s0] stride [1]",
    )
    run_program(race, [torch.randn(1)])
    with pytest.raises(IndexError, match=r"race_0, statement store_y: two positions"):
        run_program(race, [torch.randn(2)])


def test_a_buffer_has_its_own_strides_and_arguments_must_have_theirs() -> None:
    transposed = program(
        """
  nest t_0 for i < s0, j < s1:
    a: f32 = load x[i + j*s0]
    store y[i + j*s0] = a
""",
        in0="x: f32[s0, s1] stride [1, s0]",
        out0="y: f32[s0, s1] stride [1, s0]",
    )
    x = torch.randn(5, 3).t()
    (y,) = run_program(transposed, [x])
    assert torch.equal(y, x) and y.stride() == (1, 3)
    part = torch.randn(9, 3)[4:].t()  # begins inside its storage
    assert torch.equal(run_program(transposed, [part])[0], part)
    with pytest.raises(ValueError, match=r"argument x has sizes \(3, 5\) and strides \(1, 3\)"):
        run_program(transposed, [x.contiguous()])
    with pytest.raises(TypeError, match=r"argument x is torch.float32, got torch.float64"):
        run_program(transposed, [x.double()])
    with pytest.raises(TypeError, match=r"takes 1 arguments \(x\), got 2"):
        run_program(transposed, [x, x])


CALLS = parse_program("""\
program p(x, w, n):
  size s0 = x.size(0)
  size n
  in x: f32[s0, 4] stride [4, 1]
  in w: f32[4] stride [1]
  temp t: f32[s0, 4] stride [1, s0]
  temp v: f32[s0, 2] stride [2, 1]
  temp at: i64[s0, 2] stride [2, 1]
  temp u: f32[4] stride [1]
  call add_0: t = aten.add.Tensor(x, view(w, [s0, 4], [0, 1], 0), alpha=n*2) because 'test'
  call topk_0: v, at = aten.topk.default(t, 2) because 'test'
  nest u_0 for i < 4:
    a: f32 = load w[i]
    b: f32 = neg a
    store u[i] = b
  update w = u
  return t, at, view(v, [s0], [2], 1), s0 + n, n, 7, None, x""")


def test_calls_views_sizes_and_updates() -> None:
    for rows, n in ((3, 2), (5, -1)):
        x, w = torch.randn(rows, 4), torch.randn(4)
        before = w.clone()
        t, at, second, *rest = run_program(CALLS, [x, w, n])
        expected = x + before * (2 * n)
        assert torch.equal(t, expected) and t.stride() == (1, rows)
        assert torch.equal(at, expected.topk(2).indices)
        assert torch.equal(second, expected.topk(2).values[:, 1])
        assert torch.equal(w, -before)
        assert rest[:-1] == [rows + n, n, 7, None] and rest[-1] is x


def test_reading_memory_that_nobody_wrote_shows() -> None:
    unwritten = program(
        """
  nest c_0 for i < s0:
    a: f32 = load t[i]
    store y[i] = a
""",
        in0="x: f32[s0] stride [1]",
        temp0="t: f32[s0] stride [1]",
        out0="y: f32[s0] stride [1]",
    )
    assert run_program(unwritten, [torch.randn(3)])[0].isnan().all()


def test_trace_gives_every_value_over_all_its_axes() -> None:
    seen: dict[str, Any] = {}
    x = torch.randn(2, 3)
    run_program(SOFTMAX, [x], trace=lambda nest, name, value: seen.update({(nest, name): value}))
    assert list(seen) == [("softmax_0", name) for name in "amb c d t e f g h".replace(" ", "")]
    assert torch.equal(seen["softmax_0", "m"], x.amax(1))
    assert torch.equal(seen["softmax_0", "a"], x)
    assert seen["softmax_0", "h"].shape == (2, 3)


def test_arguments_that_require_grad_run_without_a_graph() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    (y,) = run_program(SOFTMAX, [x])
    assert not y.requires_grad and y.grad_fn is None


def test_operators_are_found_by_name() -> None:
    assert operator_of("aten.mm.default") is torch.ops.aten.mm.default
    with pytest.raises(AttributeError):
        operator_of("aten.no_such_operator.default")
