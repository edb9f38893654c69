"""Element-wise operators: one row per ATen overload.

In: a node whose result at a position depends on its operands at that position. Out: one nest with
loads, the row's formula and a store. Operands are cast to the *computation type* first: the result's
type for arithmetic, the promoted type of the operands for comparisons, each operand's own for tests.

Eager rounds half types at the end of each operator, and so does the loop IR at each value; formulas
of several operations run in f32 and are rounded once (`WIDE`), as eager's kernels do. What becomes of
a Python number that a half type cannot hold depends on the operator and on the device: either the
kernel reads it as f32 (`AUTO`) or it is rounded first (`OWN`, `ROUNDED`). `CPU_ROWS` are the
operators for which eager's CPU kernels differ from its GPU kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType, stored_as
from compiler_core.ir.index import Index
from compiler_core.lower.activations import ACTIVATIONS
from compiler_core.lower.arithmetic import (
    ARITHMETIC,
    NUMBERS_OF_OWN_TYPE,
    SUMS,
    power_on_cpu,
)  # fmt: skip
from compiler_core.lower.composites import COMPOSITES
from compiler_core.lower.environment import Environment
from compiler_core.lower.logic import COMPARISONS, CONVERSIONS, SELECTIONS, TESTS
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.scalars import BOOL, F64, I64, cast
from compiler_core.lower.sizes import SizeNumber

__all__ = ["CPU_ROWS", "ROWS", "TABLE", "Row", "lower_pointwise"]

aten = torch.ops.aten

Formula: TypeAlias = Callable[..., Any]

OWN = "own"  # each operation in the computation type, numbers rounded to it
AUTO = "auto"  # the same, unless a number needs more bits than a half type has: then as WIDE
WIDE = "wide"  # half types compute in f32 and round once
ROUNDED = "rounded"  # the same, with numbers rounded to the half type before
F16_OWN = "f16 own"  # f16 as OWN, bf16 as WIDE

# arguments that only shape the result, which the fake tensor already tells
_LAYOUT = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking"}

# arguments that choose between others, whatever the computation type
_CONDITIONS = {"condition", "mask"}


@dataclass(frozen=True, slots=True)
class Row:
    """A formula over scalars; `types` and `precision` choose the computation type."""

    formula: Formula
    types: str = "result"  # "result", "promoted" or "own"
    precision: str = OWN


def lower_pointwise(env: Environment, node: fx.Node) -> Operand:
    """One nest over the result's positions."""
    row = ROWS[node.target]
    if env.target.device == "cpu":
        row = CPU_ROWS.get(node.target, row)
    given = {k: v for k, v in env.arguments(node).items() if k not in _LAYOUT}
    check_types(node, given)
    given = _with_rounded_numbers(row, given, node.meta["val"].dtype)
    with env.nest(node, indices_of(node.meta["val"].shape)) as nest:
        dtype = computation_type(row, env, node, given)
        scalars = {
            name: read(nest, value, BOOL if name in _CONDITIONS else dtype)
            for name, value in given.items()
        }
        positional, named = split_arguments(node, scalars)
        return env.store(nest, node, row.formula(*positional, **named))


def read(nest: NestBuilder, value: Any, dtype: DType | None) -> Any:
    """An argument as the formula wants it: a scalar of the computation type, or the value itself."""
    if isinstance(value, Index):
        return nest.position(value, dtype or I64) if value.constant is None else value.constant
    if isinstance(value, SizeNumber):
        return value.emit(nest, dtype or F64)
    if not isinstance(value, Operand):
        return value
    x = nest.load(value, nest.positions)
    return x if dtype is None else cast(x, dtype)


def check_types(node: fx.Node, given: dict[str, Any]) -> None:
    """Refuse types that nothing computes in."""
    operands = [value.dtype for value in given.values() if isinstance(value, Operand)]
    for dtype in (stored_as(node.meta["val"].dtype), *operands):
        if dtype.name not in DTYPES:
            raise Refusal(f"no kernel computes in {dtype}")


def computation_type(
    row: Row, env: Environment, node: fx.Node, given: dict[str, Any]
) -> DType | None:
    """The type that operands are cast to; None leaves each its own."""
    if row.types == "own":
        return None
    dtype = stored_as(node.meta["val"].dtype if row.types == "result" else _promoted(env, node))
    is_half = dtype.is_float and dtype.bytes < 4
    return DTYPES[dtype.accumulator] if is_half and _is_wide(row, given, dtype) else dtype


def _is_wide(row: Row, given: dict[str, Any], dtype: DType) -> bool:
    """Whether a row computes a half type in f32."""
    if row.precision == AUTO:
        return _needs_more(given, dtype)
    return row.precision in (WIDE, ROUNDED) or (row.precision == F16_OWN and dtype.name != "f16")


def _with_rounded_numbers(row: Row, given: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """The arguments with their numbers as values of the result's type, where the row says so."""
    if row.precision != ROUNDED or not dtype.is_floating_point:
        return given
    return {
        name: torch.tensor(value, dtype=dtype).item() if isinstance(value, float) else value
        for name, value in given.items()
    }


def split_arguments(node: fx.Node, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword-only arguments, as the operator's schema has them."""
    only = {a.name for a in node.target._schema.arguments if a.kwarg_only}  # type: ignore[union-attr]
    return (
        [value for name, value in given.items() if name not in only],
        {name: value for name, value in given.items() if name in only},
    )


def _promoted(env: Environment, node: fx.Node) -> torch.dtype:
    """Eager's common type of the first two operands."""
    pair: list[Any] = [env.fake(x) if isinstance(x, fx.Node) else x for x in node.args[:2]]
    a, b = (1 if isinstance(x, torch.SymInt) else x for x in pair)
    return torch.result_type(a, b)


def _needs_more(given: dict[str, Any], dtype: DType) -> bool:
    """Whether a number among the arguments is no value of a half type."""
    return any(
        isinstance(v, (Index, SizeNumber)) or (isinstance(v, (int, float)) and not _holds(dtype, v))
        for v in given.values()
    )


def _holds(dtype: DType, number: float) -> bool:
    """Whether a float type has this number, by the bits of its significand."""
    info = torch.finfo(dtype.torch)
    if number == 0 or not math.isfinite(number):
        return True
    significand, _ = math.frexp(number)
    bits = 1 - math.frexp(info.eps)[1] + 1
    in_range = info.smallest_normal <= abs(number) <= info.max
    return in_range and (significand * 2**bits).is_integer()


def _rows() -> Iterator[tuple[Any, Row]]:
    for op, formula in ARITHMETIC.items():
        yield op, Row(formula, precision=OWN if op in NUMBERS_OF_OWN_TYPE else AUTO)
    for op, formula in (SELECTIONS | CONVERSIONS).items():
        yield op, Row(formula)
    for op, formula in COMPARISONS.items():
        yield op, Row(formula, types="promoted")
    for op, formula in TESTS.items():
        yield op, Row(formula, types="own")
    for op, formula in (COMPOSITES | ACTIVATIONS).items():
        yield op, Row(formula, precision=WIDE)


ROWS: dict[Any, Row] = dict(_rows())

# On CPUs eager rounds the number of a sum, rounds these composites after each operation, and
# raises f16 to a number with `pow` alone.
CPU_ROWS: dict[Any, Row] = {
    **{op: replace(ROWS[op], precision=ROUNDED) for op in SUMS},
    **{
        op: replace(ROWS[op], precision=OWN)
        for op in (aten.xlogy.Tensor, aten.xlogy.Scalar_Other, aten.logit.default)
    },
    aten.sigmoid_backward.default: replace(ROWS[aten.sigmoid_backward.default], precision=F16_OWN),
    aten.pow.Tensor_Scalar: Row(power_on_cpu),
}

TABLE: dict[Any, Any] = dict.fromkeys(ROWS, lower_pointwise)
