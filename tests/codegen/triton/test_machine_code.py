"""What TTIR cannot show: that every row reaches machine code, and that it rounds as the reference does."""

from __future__ import annotations

import re
from typing import Any

import pytest

from compiler_core.codegen.triton.expressions import template
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.ops import OPS
from compiler_core.runtime.triton_stages import compile_forms


def every_row(name: str) -> str:
    """One nest with all operations on a type and its casts to all types."""
    buffers, statements = [], []
    rows = [
        (op, "bool" if row.rule == "bool" else name, "m a b" if row.rule == "where" else "a b"[: 2 * row.arity - 1])
        for op, row in OPS.items()
        if op != "cast" and template(op, DTYPES[name])
    ]  # fmt: skip
    for n, (op, result, operands) in enumerate([*rows, *(("cast", t, "a") for t in DTYPES)]):
        buffers.append(f"  out o{n}: {result}[5000] stride [1]\n")
        statements.append(f"    r{n}: {result} = {op} {operands}\n    store o{n}[i] = r{n}\n")
    return f"""
program p(x, y, z):
  in x: {name}[5000] stride [1]
  in y: {name}[5000] stride [1]
  in z: bool[5000] stride [1]
{"".join(buffers)}  nest all_0 for i < 5000:
    a: {name} = load x[i]
    b: {name} = load y[i]
    m: bool = load z[i]
{"".join(statements)}  return o0
"""


@pytest.mark.parametrize("name", ["f64", "f32", "bf16", "f8e5m2", "i64", "u8", "bool"])
def test_every_row_reaches_machine_code(kit: Any, name: str) -> None:
    forms = compile_forms(kit.kernel(every_row(name), "pointwise"), kit.target)
    assert forms.binary[:4] == b"\x7fELF"
    flushing = set(re.findall(r"\b([a-z0-9.]+)\.ftz\.", forms.texts["ptx"]))
    # libdevice uses these inside, on arguments that it has scaled, as first guesses
    assert flushing <= {"ex2.approx", "rcp.approx", "rsqrt.approx"}, "subnormal numbers are flushed"


def ptx(kit: Any, name: str, statements: str) -> str:
    text = f"""
program p(x, y):
  in x: {name}[4096] stride [1]
  in y: {name}[4096] stride [1]
  out o: {name}[4096] stride [1]
  nest k_0 for i < 4096:
    a: {name} = load x[i]
    b: {name} = load y[i]
{statements}    store o[i] = r
  return o
"""
    return compile_forms(kit.kernel(text, "pointwise"), kit.target).texts["ptx"]


def test_products_and_sums_are_not_contracted(kit: Any) -> None:
    text = ptx(kit, "f32", "    m: f32 = mul a b\n    r: f32 = add m a\n")
    assert "fma" not in text and "mul.rn.f32" in text and "add.rn.f32" in text


def test_division_and_root_are_correctly_rounded(kit: Any) -> None:
    text = ptx(kit, "f32", "    m: f32 = div a b\n    r: f32 = sqrt m\n")
    assert "div.rn.f32" in text and "sqrt.rn.f32" in text


def test_half_types_are_rounded_between_operations(kit: Any) -> None:
    """f32, then a rounding: LLVM may write that as one instruction on bf16, but never as fma."""
    text = ptx(kit, "bf16", "    m: bf16 = mul a b\n    r: bf16 = add m a\n")
    assert "fma" not in text
    product_and_sum = "mul.rn.bf16" in text and "add.rn.bf16" in text
    assert product_and_sum or len(re.findall(r"cvt\.rn\.bf16", text)) >= 2


def test_aligned_pointers_are_read_16_bytes_at_a_time(kit: Any) -> None:
    text = """
program p(x):
  in x: f32[1048576] stride [1]
  out o: f32[1048576] stride [1]
  nest copy_0 for i < 1048576:
    a: f32 = load x[i]
    store o[i] = a
  return o
"""
    kernel = kit.kernel(text, "pointwise")
    wide = compile_forms(kernel, kit.target, is_aligned=True).texts["ptx"]
    narrow = compile_forms(kernel, kit.target, is_aligned=False).texts["ptx"]
    assert "ld.global.v4" in wide and "ld.global.v" not in narrow
