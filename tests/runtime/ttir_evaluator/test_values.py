"""Numbers, folds, control flow: each against torch, and the trace of values by line."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler_core.errors import InternalError
from compiler_core.runtime.ttir_evaluator import evaluate, parse

BINARY = """\
def kernel(x, y, z):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(z + i, {})
"""


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("text", ["a + b", "a * b", "a - b"])
def test_float_arithmetic_is_exact(evaluated: Any, name: str, text: str) -> None:
    dtype = {"f16": torch.half, "bf16": torch.bfloat16, "f32": torch.float, "f64": torch.double}[
        name
    ]
    a, b, z = torch.randn(64).to(dtype), torch.randn(64).to(dtype), torch.zeros(64, dtype=dtype)
    evaluated(BINARY.format(text), [f"*{name}"] * 3, [a, b, z])
    assert torch.equal(z, eval(text))


UNSIGNED = {
    "a // b": lambda a, b: a // b,
    "a % b": lambda a, b: a % b,
    "a >> (b % 8)": lambda a, b: a >> (b % 8),
    "(a > b).to(tl.uint8)": lambda a, b: (a > b).long(),
    "tl.maximum(a, b)": torch.maximum,
    "a + b": lambda a, b: (a + b) % 256,
    "a.to(tl.float32).to(tl.uint8)": lambda a, b: a,
}


@pytest.mark.parametrize("text", UNSIGNED)
def test_unsigned_integers(evaluated: Any, text: str) -> None:
    a = torch.arange(64) * 4
    b = torch.arange(64).flip(0) * 3 + 1
    z = torch.zeros(64, dtype=torch.uint8)
    evaluated(BINARY.format(text), ["*u8"] * 3, [a.byte(), b.byte(), z])
    assert torch.equal(z.long(), UNSIGNED[text](a, b))


@pytest.mark.parametrize("text,want", [("a // b", "trunc"), ("a % b", "fmod")])
def test_signed_division_rounds_towards_zero(evaluated: Any, text: str, want: str) -> None:
    a, b = torch.arange(-32, 32), torch.tensor([3, -5] * 32)
    z = torch.zeros(64, dtype=torch.int64)
    evaluated(BINARY.format(text), ["*i64"] * 3, [a, b, z])
    eager = torch.div(a, b, rounding_mode="trunc") if want == "trunc" else torch.fmod(a, b)
    assert torch.equal(z, eager)


def test_random_bits_are_tritons_own(evaluated: Any) -> None:
    """Philox: wide unsigned products, shifts and exclusive ors. Known answer for seed 0, offset 0."""
    text = "def kernel(x):\n    i = tl.arange(0, 64)\n    tl.store(x + i, tl.randint(0, i).to(tl.int64))\n"
    x = torch.zeros(64, dtype=torch.int64)
    evaluated(text, ["*i64"], [x])
    assert x[0].item() & 0xFFFFFFFF == 0x6627E8D5  # Random123 known answer: philox4x32-10, zeros
    assert len(set(x.tolist())) == 64


def test_custom_reduction_keeps_the_order(evaluated: Any) -> None:
    """(a, b) → 10a + b is neither commutative nor one torch call; a mean with counts is associative."""
    text = """\
def kernel(x, mean, count):
    i = tl.arange(0, 32)
    v = tl.load(x + i)
    ones = tl.full([32], 1.0, tl.float32)
    m, n = tl.reduce((v, ones), 0, merge)
    tl.store(mean, m)
    tl.store(count, n)
"""
    helper = """\
def merge(m, n, p, q):
    total = n + q
    return m + (p - m) * (q / total), total


@triton.jit
"""
    x, mean, count = torch.randn(32), torch.zeros(1), torch.zeros(1)
    evaluated(helper + text, ["*f32"] * 3, [x, mean, count])
    assert count.item() == 32
    assert abs(mean.item() - x.double().mean().item()) < 1e-6


@pytest.mark.parametrize("reverse", [False, True])
def test_scan(evaluated: Any, reverse: bool) -> None:
    text = f"""\
def kernel(x, y):
    i = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(y + i, tl.cumsum(tl.load(x + i), 1, reverse={reverse}))
"""
    x, y = torch.randint(0, 9, (4, 32)), torch.zeros(4, 32, dtype=torch.int64)
    evaluated(text, ["*i64"] * 2, [x, y])
    assert torch.equal(y, x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1))


def test_matrix_product(evaluated: Any) -> None:
    text = """\
def kernel(x, y, z):
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    p = tl.dot(tl.load(x + at), tl.trans(tl.load(y + at)), input_precision="ieee")
    tl.store(z + at, p)
"""
    x, y, z = torch.randn(16, 16), torch.randn(16, 16), torch.zeros(16, 16)
    evaluated(text, ["*f32"] * 3, [x, y, z])
    torch.testing.assert_close(z, x @ y.t())


DIVERGING = {
    "if": """\
def kernel(x, n):
    pid = tl.program_id(0)
    v = pid * 10
    if pid % 3 == n:
        v = v + 1
        tl.store(x + pid + 8, v)
    else:
        v = v - 1
    tl.store(x + pid, v)
""",
    "for": """\
def kernel(x, n):
    pid = tl.program_id(0)
    v = (pid * 0).to(tl.int64)
    for k in range(n, pid):
        v = v + k
        tl.store(x + 8 * k + pid, v)
    tl.store(x + pid, v)
""",
    "while": """\
def kernel(x, n):
    pid = tl.program_id(0)
    v = pid + 27
    steps = n.to(tl.int32)
    while v > 1:
        v = tl.where(v % 2 == 0, v // 2, 3 * v + 1)
        steps = steps + 1
    tl.store(x + pid, steps)
""",
}


def by_hand(kind: str, n: int, programs: int) -> list[int]:
    x = [0] * 64
    for pid in range(programs):
        if kind == "if":
            v = pid * 10 + (1 if pid % 3 == n else -1)
            if pid % 3 == n:
                x[pid + 8] = v
        elif kind == "for":
            v = 0
            for k in range(n, pid):
                v += k
                x[8 * k + pid] = v
        else:
            start, v = pid + 27, n
            while start > 1:
                start = start // 2 if start % 2 == 0 else 3 * start + 1
                v += 1
        x[pid] = v
    return x


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("kind", DIVERGING)
def test_programs_that_go_different_ways(evaluated: Any, kind: str, n: int) -> None:
    x = torch.zeros(64, dtype=torch.int32)
    evaluated(DIVERGING[kind], ["*i32", "i64"], [x, n], (6,))
    assert x.tolist() == by_hand(kind, n, 6)


def test_grid_of_three_axes(evaluated: Any) -> None:
    text = """\
def kernel(x):
    a, b, c = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (c * tl.num_programs(1) + b) * tl.num_programs(0) + a
    tl.store(x + at, a * 100 + b * 10 + c)
"""
    x = torch.zeros(24, dtype=torch.int32)
    evaluated(text, ["*i32"], [x], (2, 3, 4))
    assert x.tolist() == [
        a * 100 + b * 10 + c for c in range(4) for b in range(3) for a in range(2)
    ]


def test_trace_has_the_values_of_every_line(function_of: Any) -> None:
    text = "def kernel(x):\n    i = tl.arange(0, 4)\n    v = tl.load(x + i) * 2.0\n    tl.store(x + i, v)\n"
    function = function_of(text, ["*f32"])
    trace: list[Any] = []
    evaluate(function, [torch.tensor([1.0, 2.0, 3.0, 4.0])], (1,), trace=trace)
    values = [
        value.tolist()
        for _, name, value in trace
        if name.startswith("%v") and hasattr(value, "tolist")
    ]
    assert [[1.0, 2.0, 3.0, 4.0]] in values and values[-1] == [[2.0, 4.0, 6.0, 8.0]]
    lines = [line for line, _, _ in trace]
    assert lines == sorted(lines)


def test_unknown_operation_is_named_with_its_line() -> None:
    text = """
  tt.func public @k(%y: !tt.ptr<f32>) attributes {noinline = false} {
    %one = tt.frobnicate %y : !tt.ptr<f32>
    tt.return
  }
"""
    with pytest.raises(InternalError, match=r"CC620.*tt\.frobnicate \(TTIR line 3\)"):
        evaluate(parse(text), [torch.zeros(1)], (1,))


def test_text_without_a_kernel() -> None:
    with pytest.raises(ValueError, match="no `tt.func public`"):
        parse("module {\n}\n")
