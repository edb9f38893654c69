"""Each row of the operation table, on each type it takes, against torch and against float64."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
import torch
from accuracy import assert_as_good_as_eager
from cpp_programs import built

from compiler_core.codegen.cpp.expressions import ROWS, expression
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.ops import OPS

FLOATS = ["f64", "f32", "f16", "bf16"]
INTEGERS = ["i64", "i32", "i16", "i8", "u8"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e-40, -1e-40, 1e38, float("inf"), -float("inf"), float("nan")]  # fmt: skip
# torch itself has no reference for these
WITHOUT = {("neg", "bool"), ("sub", "bool")}


def test_every_operation_has_a_row() -> None:
    assert set(ROWS) | {"cast"} == set(OPS)


def values(dtype: DType, seed: int) -> torch.Tensor:
    """Every value of small types; of others special ones and a spread over all exponents."""
    generator = torch.Generator().manual_seed(seed)
    if dtype.name == "bool":
        return torch.tensor([False, True] * 9)
    if dtype.kind != "float":
        info = torch.iinfo(dtype.torch)
        if dtype.bytes == 1:
            return torch.arange(info.min, info.max + 1).to(dtype.torch)
        edges = torch.tensor([info.min, info.min + 1, -2, -1, 0, 1, 2, 3, info.max - 1, info.max])
        spread = torch.randint(-1000, 1000, (3000,), generator=generator)
        return torch.cat([edges, spread]).to(dtype.torch)
    if dtype.bytes == 2:
        return torch.arange(65536).to(torch.int32).to(torch.int16).view(dtype.torch)
    bits = torch.randint(-(2**31), 2**31, (60_000,), generator=generator).to(torch.int32)
    near = torch.randn(20_000, generator=generator) * 8
    return torch.cat([torch.tensor(SPECIAL), bits.view(torch.float32), near]).to(dtype.torch)


def operands(op: str, dtype: DType) -> list[torch.Tensor]:
    """Operands of equal length: every pair of special values, then random ones."""
    seed = zlib.crc32(f"{op} {dtype}".encode())
    rule = OPS[op]
    one = values(dtype, seed)
    if rule.arity == 1:
        return [one]
    some = one[torch.randperm(len(one), generator=torch.Generator().manual_seed(seed))[:60]]
    if dtype.is_float:
        some = torch.cat([torch.tensor(SPECIAL, dtype=torch.float64).to(dtype.torch), some])
    a, b = torch.cartesian_prod(some, some).T.contiguous()
    if op in ("shl", "shr"):
        b = (b.long() % 80 - 8).to(dtype.torch)
    if dtype.kind != "float" and op in ("floordiv", "truncdiv", "remainder", "fmod"):
        a, b = a[b != 0], b[b != 0]
    if rule.rule == "where":
        return [(torch.arange(len(a)) % 3 == 0), a, b]
    return [a, b]


def takes(op: str, name: str) -> bool:
    row = ROWS[op]
    if name == "bool":
        return row.boolean is not None and (op, name) not in WITHOUT
    return (row.f64 if name in FLOATS else row.integer) is not None


def program(op: str, names: list[str]) -> str:
    """One nest per type: `out = op(arguments)`."""
    heads, nests, inputs, sizes = [], [], [], []
    for name in names:
        result = "bool" if OPS[op].rule == "bool" else name
        types = [name] * OPS[op].arity if OPS[op].rule != "where" else ["bool", name, name]
        size = f"n_{name}"
        arguments = [f"{letter}_{name}" for letter, _ in zip("abc", types)]
        inputs += arguments
        sizes.append(f"  size {size} = {arguments[0]}.size(0)")
        heads += [f"  in  {a}: {t}[{size}] stride [1]" for a, t in zip(arguments, types)]
        heads.append(f"  out y_{name}: {result}[{size}] stride [1]")
        loads = [f"    x{a}: {t} = load {a}[i_{name}]" for a, t in zip(arguments, types)]
        uses = " ".join(f"x{a}" for a in arguments)
        value = f"    v_{name}: {result} = {op} {uses}"
        nests += [
            f"  nest k_{name} for i_{name} < {size}:",
            *loads,
            value,
            f"    store y_{name}[i_{name}] = v_{name}",
        ]
    outputs = ", ".join(f"y_{name}" for name in names)
    return "\n".join(
        [f"program p({', '.join(inputs)}):", *sizes, *heads, *nests, f"  return {outputs}"]
    )


def reference(op: str, arguments: list[torch.Tensor], wide: bool) -> torch.Tensor:
    if wide:
        arguments = [a.double() if a.is_floating_point() else a for a in arguments]
    return OPS[op].reference(*arguments)


@pytest.mark.parametrize("op", [op for op in OPS if op != "cast"])
def test_operation(op: str, tmp_path: Path) -> None:
    names = [name for name in (*FLOATS, *INTEGERS, "bool") if takes(op, name)]
    inputs = {name: operands(op, DTYPES[name]) for name in names}
    call = built(program(op, names), tmp_path).run
    results = dict(zip(names, call(*(x for name in names for x in inputs[name]))))
    for name in names:
        eager = reference(op, inputs[name], wide=False)
        if not eager.is_floating_point():
            assert torch.equal(results[name], eager), name
        else:
            exact = reference(op, inputs[name], wide=True)
            assert_as_good_as_eager(results[name], eager, exact)


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool", "f8e4m3", "f8e5m2"])
def test_cast_to_every_type(name: str, tmp_path: Path) -> None:
    source = DTYPES[name]
    if source.bytes == 1 and source.is_float:
        x = torch.arange(256).to(torch.uint8).view(source.torch)
    else:
        x = values(source, 7)
    lines = [f"program p(x):\n  size s0 = x.size(0)\n  in x: {name}[s0] stride [1]"]
    lines += [f"  out y_{t}: {t}[s0] stride [1]" for t in DTYPES]
    for t in DTYPES:
        lines.append(f"  nest k_{t} for i_{t} < s0:\n    a_{t}: {name} = load x[i_{t}]")
        lines.append(f"    b_{t}: {t} = cast a_{t}\n    store y_{t}[i_{t}] = b_{t}")
    lines.append(f"  return {', '.join(f'y_{t}' for t in DTYPES)}")
    outputs = built("\n".join(lines), tmp_path).run(x)
    for t, y in zip(DTYPES, outputs):
        inside = torch.ones(len(x), dtype=torch.bool)
        if source.is_float and DTYPES[t].kind in ("int", "uint"):  # out of range is undefined in C
            info = torch.iinfo(torch.int64 if t == "u8" else DTYPES[t].torch)
            inside = (x.double() > float(info.min)) & (x.double() < float(info.max))
        assert torch.equal(_comparable(y[inside]), _comparable(x.to(DTYPES[t].torch)[inside])), t


def _comparable(x: torch.Tensor) -> torch.Tensor:
    """Values as doubles or integers, NaN as a number that is no other value."""
    return x.double().nan_to_num(1e-300, 1e308, -1e308) if x.is_floating_point() else x.long()


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(KeyError):
        expression("gamma", ["x"], DTYPES["f32"], DTYPES["f32"])
    with pytest.raises(KeyError, match="no C text for sin on i32"):
        expression("sin", ["x"], DTYPES["i32"], DTYPES["i32"])
