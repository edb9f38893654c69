"""Element-wise operators: one row per ATen overload.

In: a node whose result at a position depends on its operands at that position. Out: one nest with
loads, the row's formula and a store. Operands are cast to the *computation type* first: the result's
type for arithmetic, the promoted type of the operands for comparisons, each operand's own for tests.

Eager rounds half types at the end of each operator, and so does the loop IR at each value; formulas
of several operations run in f32 and are rounded once (`WIDE`), as eager's kernels do. With a
Python number that a half type cannot hold, arithmetic runs in f32 as well (`AUTO`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType, stored_as
from compiler_core.ir.index import Index
from compiler_core.lower.activations import ACTIVATIONS
from compiler_core.lower.arithmetic import ARITHMETIC
from compiler_core.lower.composites import COMPOSITES
from compiler_core.lower.environment import Environment
from compiler_core.lower.logic import COMPARISONS, CONVERSIONS, SELECTIONS, TESTS
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.scalars import BOOL, F64, I64, cast
from compiler_core.lower.sizes import SizeNumber

__all__ = ["AUTO", "OWN", "TABLE", "WIDE", "Row", "lower_pointwise"]

Formula: TypeAlias = Callable[..., Any]

OWN = "own"  # one operation in the computation type
AUTO = "auto"  # the same, unless a number needs more bits than a half type has
WIDE = "wide"  # half types compute in f32 and round once

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


def lower_pointwise(row: Row, env: Environment, node: fx.Node) -> Operand:
    """One nest over the result's positions."""
    given = {k: v for k, v in env.arguments(node).items() if k not in _LAYOUT}
    check_types(node, given)
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
    if is_half and (row.precision == WIDE or (row.precision == AUTO and _needs_more(given, dtype))):
        return DTYPES[dtype.accumulator]
    return dtype


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
        yield op, Row(formula, precision=AUTO)
    for op, formula in (SELECTIONS | CONVERSIONS).items():
        yield op, Row(formula)
    for op, formula in COMPARISONS.items():
        yield op, Row(formula, types="promoted")
    for op, formula in TESTS.items():
        yield op, Row(formula, types="own")
    for op, formula in (COMPOSITES | ACTIVATIONS).items():
        yield op, Row(formula, precision=WIDE)


ROWS: dict[Any, Row] = dict(_rows())
TABLE: dict[Any, Any] = {op: partial(lower_pointwise, row) for op, row in ROWS.items()}
