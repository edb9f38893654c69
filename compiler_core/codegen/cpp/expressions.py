"""The C text of each scalar operation: one row per key of `ir/ops.py: OPS`.

In: an operation, the texts and type of its operands, the type of the result. Out: an expression.
A column per class of operand type: `f32` (also the small floats, which compute in it and round
after), `f64`, `integer` (with `{t}` the type's name) and `boolean`. `{0}`, `{1}`, `{2}` are operands:
identifiers, so no brackets are needed. None: the operation does not take that class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from compiler_core.codegen.cpp.half import is_small_float, rounded
from compiler_core.ir.dtypes import DType

__all__ = ["ROWS", "Row", "expression", "literal"]


@dataclass(frozen=True, slots=True)
class Row:
    f32: str | None
    f64: str | None
    integer: str | None = None
    boolean: str | None = None


def _any(text: str) -> Row:
    return Row(text, text, text, text)


def _float(f32: str, f64: str, integer: str | None = None) -> Row:
    return Row(f32, f64, integer)


def _libm(name: str) -> Row:
    """Our vectorised function for floats, libm's for doubles."""
    return Row(f"v_{name}({{0}})", f"{name}({{0}})")


def _both(name: str, integer: str | None = None) -> Row:
    """A builtin that is one instruction, in its float and double forms."""
    return Row(f"__builtin_{name}f({{0}})", f"__builtin_{name}({{0}})", integer)


ROWS: dict[str, Row] = {
    # one operand
    "neg": Row("-{0}", "-{0}", "-{0}"),
    "abs": _both("fabs", "{0} < 0 ? -{0} : {0}"),
    "sign": Row("({0} > 0) - ({0} < 0)", "({0} > 0) - ({0} < 0)", "({0} > 0) - ({0} < 0)"),
    "exp": _libm("exp"),
    "exp2": _libm("exp2"),
    "expm1": _libm("expm1"),
    "log": _libm("log"),
    "log2": _libm("log2"),
    "log10": _libm("log10"),
    "log1p": _libm("log1p"),
    "sqrt": _both("sqrt"),
    "rsqrt": _float("1.0f / __builtin_sqrtf({0})", "1.0 / __builtin_sqrt({0})"),
    "reciprocal": _float("1.0f / {0}", "1.0 / {0}"),
    "sin": _libm("sin"),
    "cos": _libm("cos"),
    "tan": _libm("tan"),
    "asin": _libm("asin"),
    "acos": _libm("acos"),
    "atan": _libm("atan"),
    "sinh": _libm("sinh"),
    "cosh": _libm("cosh"),
    "tanh": _libm("tanh"),
    "sigmoid": _float("v_sigmoid({0})", "1.0 / (1.0 + exp(-{0}))"),
    "erf": _libm("erf"),
    "floor": _both("floor", "{0}"),
    "ceil": _both("ceil", "{0}"),
    "trunc": _both("trunc", "{0}"),
    "round": _both("rint", "{0}"),
    "isnan": Row("{0} != {0}", "{0} != {0}", "0", "0"),
    "isinf": Row("__builtin_fabsf({0}) == INFINITY", "__builtin_fabs({0}) == INFINITY", "0", "0"),
    "not": Row(None, None, "~{0}", "!{0}"),
    # two operands
    "add": Row("{0} + {1}", "{0} + {1}", "{0} + {1}", "{0} | {1}"),
    "sub": Row("{0} - {1}", "{0} - {1}", "{0} - {1}"),
    "mul": Row("{0} * {1}", "{0} * {1}", "{0} * {1}", "{0} & {1}"),
    "div": _float("{0} / {1}", "{0} / {1}"),
    "floordiv": _float(
        "v_floordiv_f32({0}, {1})", "v_floordiv_f64({0}, {1})", "v_floordiv_{t}({0}, {1})"
    ),
    "truncdiv": _float(
        "__builtin_truncf({0} / {1})", "__builtin_trunc({0} / {1})", "v_truncdiv_{t}({0}, {1})"
    ),
    "remainder": _float(
        "v_remainder_f32({0}, {1})", "v_remainder_f64({0}, {1})", "v_remainder_{t}({0}, {1})"
    ),
    "fmod": _float("fmodf({0}, {1})", "fmod({0}, {1})", "v_fmod_{t}({0}, {1})"),
    "pow": _float("v_pow({0}, {1})", "pow({0}, {1})", "v_pow_{t}({0}, {1})"),
    "maximum": Row(
        "v_max_f32({0}, {1})", "v_max_f64({0}, {1})", "v_max_{t}({0}, {1})", "{0} | {1}"
    ),
    "minimum": Row(
        "v_min_f32({0}, {1})", "v_min_f64({0}, {1})", "v_min_{t}({0}, {1})", "{0} & {1}"
    ),
    "atan2": _float("atan2f({0}, {1})", "atan2({0}, {1})"),
    "copysign": _float("__builtin_copysignf({0}, {1})", "__builtin_copysign({0}, {1})"),
    "and": Row(None, None, "{0} & {1}", "{0} & {1}"),
    "or": Row(None, None, "{0} | {1}", "{0} | {1}"),
    "xor": Row(None, None, "{0} ^ {1}", "{0} ^ {1}"),
    "shl": Row(None, None, "v_shl_{t}({0}, {1})"),
    "shr": Row(None, None, "v_shr_{t}({0}, {1})"),
    "eq": _any("{0} == {1}"),
    "ne": _any("{0} != {1}"),
    "lt": _any("{0} < {1}"),
    "le": _any("{0} <= {1}"),
    "gt": _any("{0} > {1}"),
    "ge": _any("{0} >= {1}"),
    # three operands
    "where": _any("{0} ? {1} : {2}"),
}

# Conversions that round to the same value whatever the machine: through the wider integer first,
# so that a float out of an i8's or u8's range wraps as it does in eager.
_NARROW = {"i16": "(int16_t)(int32_t)", "i8": "(int8_t)(int32_t)", "u8": "(uint8_t)(int64_t)"}


def expression(op: str, operands: Sequence[str], source: DType, result: DType) -> str:
    """op(operands) in C. `source` is the operands' type (that of the last one for `where`).

    Raises KeyError for an operation without a row or a type class that it does not take.
    """
    if op == "cast":
        return _cast(operands[0], source, result)
    text = _column(ROWS[op], source)
    if text is None:
        raise KeyError(f"no C text for {op} on {source}")
    return rounded(text.format(*operands, t=source.name), result)


def _column(row: Row, dtype: DType) -> str | None:
    if dtype.is_float:
        return row.f64 if dtype.name == "f64" else row.f32
    return row.boolean if dtype.kind == "bool" else row.integer


def _cast(operand: str, source: DType, result: DType) -> str:
    if source is result:
        return operand
    if result.kind == "bool":
        return f"{operand} != 0"
    if is_small_float(result):
        return rounded(operand if source.c_compute == "float" else f"(float){operand}", result)
    if source.is_float and result.name in _NARROW:
        return f"{_NARROW[result.name]}{operand}"
    if source.c_compute == result.c_compute:
        return operand
    return f"({result.c_compute}){operand}"


def literal(value: float | int | bool, dtype: DType) -> str:
    """A number as a C constant of the type that computes it: the value that the type rounds it to."""
    if not dtype.is_float:
        number = int(value)
        return "(-9223372036854775807 - 1)" if number == -(2**63) else str(number)
    single = dtype.name != "f64"
    rounded_ = float(torch.tensor(value, dtype=torch.float64).to(dtype.torch))
    if math.isnan(rounded_):
        return "NAN"
    if math.isinf(rounded_):
        return "INFINITY" if rounded_ > 0 else "-INFINITY"
    return f"{np.float32(rounded_)!s}f" if single else repr(rounded_)
