"""Every row of OPS on every type: Triton text → TTIR → evaluated = the row's reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler_core.codegen.triton.expressions import TEMPLATES, template
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.ops import OPS

COMPUTED = ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool"]
SIZE = 70


def rows() -> list[tuple[str, str]]:
    """(operation, type) for which the table has a text."""
    pairs = [(op, t) for op in OPS if op != "cast" for t in COMPUTED]
    return [p for p in pairs if template(p[0], DTYPES[p[1]])]


def values(dtype: DType, op: str, number: int) -> torch.Tensor:
    """Random values and the special ones; operands that C leaves undefined are kept out."""
    generator = torch.Generator().manual_seed(number)
    if dtype.kind == "bool":
        return torch.randint(0, 2, (SIZE,), generator=generator).bool()
    if dtype.is_float:
        special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.5,
            -2.5,
            3.5,
            0.5,
            1e-3,
            float("inf"),
            -float("inf"),
            float("nan"),
        ]
        other = torch.tensor(special).roll(5 * number)
        random = torch.randn(SIZE - len(special), generator=generator) * 3
        return torch.cat([other, random]).to(dtype.torch)
    low = 0 if dtype.kind == "uint" else -100
    made = torch.randint(low, 100, (SIZE,), generator=generator)
    if op in ("shl", "shr") and number:
        made = made.abs() % (dtype.bytes * 8 + 3)
    if op == "pow" and number:
        made = made.abs() % 9 - (4 if dtype.kind == "int" else 0)
    if op in ("floordiv", "truncdiv", "remainder", "fmod") and number:
        made = torch.where(made == 0, 7, made)
    return made.to(dtype.torch)


def test_every_row_has_a_text() -> None:
    assert TEMPLATES.keys() == OPS.keys()


@pytest.mark.parametrize("op,name", rows())
def test_operation(kit: Any, op: str, name: str) -> None:
    row, dtype = OPS[op], DTYPES[name]
    types = ["bool", name, name] if row.rule == "where" else [name] * row.arity
    result = "bool" if row.rule == "bool" else name
    inputs = [values(DTYPES[t], op, n) for n, t in enumerate(types)]
    letters = "abc"[: row.arity]
    text = program(letters, types, result, f"{op} " + " ".join(f"v{x}" for x in letters))
    kit.check(text, "pointwise", *inputs, eager=lambda *args: reference(op, args, dtype))


def reference(op: str, args: Any, dtype: DType) -> torch.Tensor:
    """The row's meaning; integer powers with negative exponents, which eager refuses, by cases."""
    if op == "pow" and dtype.kind == "int":
        a, b = args
        whole = torch.pow(a, b.clamp(min=0))
        unit = torch.where(a == -1, 1 - 2 * (b % 2), torch.where(a == 1, 1, 0)).to(a.dtype)
        return torch.where(b < 0, unit, whole)
    result = OPS[op].reference(*args)
    assert isinstance(result, torch.Tensor)
    return result


def program(letters: str, types: list[str], result: str, expression: str) -> str:
    buffers = "".join(
        f"  in {x}: {t}[{SIZE}] stride [1]\n" for x, t in zip(letters, types, strict=True)
    )
    loads = "".join(f"    v{x}: {t} = load {x}[i]\n" for x, t in zip(letters, types))
    return (
        f"program p({', '.join(letters)}):\n{buffers}  out o: {result}[{SIZE}] stride [1]\n"
        f"  nest op_0 for i < {SIZE}:\n{loads}    r: {result} = {expression}\n    store o[i] = r\n"
        "  return o\n"
    )


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_cast(kit: Any, source: str, target: str) -> None:
    """All pairs of types, fp8 too; floats that no integer type holds are not asked for."""
    start = values(DTYPES["f32"], "", 0) if DTYPES[source].is_float else None
    if start is None:
        inputs = values(DTYPES[source], "", 0)
    else:
        whole = not DTYPES[target].is_float
        kept = start.nan_to_num(1.0, 2.0, -2.0) if whole and target != "bool" else start
        inputs = (kept.abs() if target == "u8" else kept).to(DTYPES[source].torch)
    text = program("a", [source], target, "cast va")
    got = kit.built(text, "pointwise").run(inputs)[0]
    want = inputs.to(DTYPES[target].torch)
    assert torch.equal(got.double().nan_to_num(7e9), want.double().nan_to_num(7e9))


@pytest.mark.parametrize("target", ["f8e4m3", "f8e5m2", "f16", "bf16"])
def test_narrow_floats_round_and_overflow_as_torch_does(kit: Any, target: str) -> None:
    steps = torch.linspace(-70000.0, 70000.0, 35)
    close = torch.tensor(
        [
            447.0,
            448.0,
            463.9,
            464.0,
            464.1,
            480.0,
            57344.0,
            61439.0,
            61440.0,
            65504.0,
            65519.0,
            65520.0,
        ]
    )
    inputs = torch.cat([steps, close, -close, torch.randn(11)])
    got = kit.built(program("a", ["f32"], target, "cast va"), "pointwise").run(inputs)[0]
    want = inputs.to(DTYPES[target].torch)
    assert torch.equal(got.double().nan_to_num(7e9), want.double().nan_to_num(7e9))


@pytest.mark.parametrize("name", ["f32", "f64", "f16", "i64", "i32", "u8", "bool"])
@pytest.mark.parametrize("op", ["add", "where", "eq", "maximum"])
def test_constant_operands(kit: Any, name: str, op: str) -> None:
    """A number as either operand, also one that f32 cannot hold."""
    dtype = DTYPES[name]
    number = {"f64": 0.1, "i64": 2**40 + 1, "bool": True}.get(name, 3)
    constant = torch.tensor(number, dtype=dtype.torch)
    types = ["bool", name] if op == "where" else [name]
    result = "bool" if op == "eq" else name
    head = f"const {number}\n    r: {result} = "
    inputs = [values(DTYPES[t], "", n) for n, t in enumerate(types)]
    expression = f"{op} va c vb" if op == "where" else f"{op} c va"
    text = program("ab"[: len(types)], types, result, "@").replace(
        f"r: {result} = @", f"c: {name} = {head}{expression}"
    )
    eager = (lambda a, b: torch.where(a, constant, b)) if op == "where" else (
        lambda a: OPS[op].reference(constant.double() if a.dtype is torch.float64 else constant, a)
    )  # fmt: skip
    kit.check(text, "pointwise", *inputs, eager=eager)
