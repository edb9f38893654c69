"""Formulas that choose, compare and test; and copies.

In: scalars of the type that `pointwise.py` chose for the table. Out: the result's scalar. A formula
takes the operator's arguments in schema order; keyword-only ones by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler_core.lower.arithmetic import operation
from compiler_core.lower.scalars import BOOL, Scalar, apply, cast, where

__all__ = ["COMPARISONS", "CONVERSIONS", "SELECTIONS", "TESTS"]

aten = torch.ops.aten


def _clamp(x: Scalar, low: Any = None, high: Any = None) -> Scalar:
    """Of equals the second operand counts: x stays x, also as -0.0 beside a bound of 0."""
    x = x if low is None else apply("maximum", low, x)
    return x if high is None else apply("minimum", high, x)


def _fmax(a: Scalar, b: Scalar) -> Scalar:
    return _skip_nan(a, b, apply("maximum", b, a))


def _fmin(a: Scalar, b: Scalar) -> Scalar:
    return _skip_nan(a, b, apply("minimum", b, a))


def _skip_nan(a: Scalar, b: Scalar, both: Scalar) -> Scalar:
    if not a.dtype.is_float:
        return both
    return where(apply("isnan", a), b, where(apply("isnan", b), a, both))


def _nan_to_num(x: Scalar, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Scalar:
    if not x.dtype.is_float:
        return x
    info = torch.finfo(x.dtype.torch)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    infinite = apply("isinf", x)
    x = where(infinite, where(apply("gt", x, 0), x.nest.constant(high, x.dtype), low), x)
    return where(apply("isnan", x), nan or 0.0, x)


def _heaviside(x: Scalar, at_zero: Scalar) -> Scalar:
    step = where(x > 0, x.nest.constant(1, x.dtype), 0)
    step = where(apply("isnan", x), 0, step) if x.dtype.is_float else step
    return where(apply("eq", x, 0), at_zero, step)


# The computation type is the result's; no argument can need more bits than it has.
SELECTIONS: dict[Any, Callable[..., Any]] = {
    aten.maximum.default: operation("maximum"),
    aten.minimum.default: operation("minimum"),
    aten.fmax.default: _fmax,
    aten.fmin.default: _fmin,
    aten.clamp.default: _clamp,
    aten.clamp.Tensor: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_min.Tensor: _clamp,
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.clamp_max.Tensor: lambda x, high: _clamp(x, None, high),
    aten.relu.default: lambda x: _clamp(x, 0),
    aten.where.self: lambda condition, a, b: where(condition, a, b),
    aten.masked_fill.Scalar: lambda x, mask, value: where(mask, value, x),
    aten.masked_fill.Tensor: lambda x, mask, value: where(mask, value, x),
    aten.nan_to_num.default: _nan_to_num,
    aten.heaviside.default: _heaviside,
    aten.bitwise_and.Tensor: operation("and"),
    aten.bitwise_and.Scalar: operation("and"),
    aten.bitwise_and.Scalar_Tensor: operation("and"),
    aten.bitwise_or.Tensor: operation("or"),
    aten.bitwise_or.Scalar: operation("or"),
    aten.bitwise_or.Scalar_Tensor: operation("or"),
    aten.bitwise_xor.Tensor: operation("xor"),
    aten.bitwise_xor.Scalar: operation("xor"),
    aten.bitwise_xor.Scalar_Tensor: operation("xor"),
    aten.bitwise_not.default: operation("not"),
    aten.bitwise_left_shift.Tensor: operation("shl"),
    aten.bitwise_left_shift.Tensor_Scalar: operation("shl"),
    aten.bitwise_right_shift.Tensor: operation("shr"),
    aten.bitwise_right_shift.Tensor_Scalar: operation("shr"),
    aten.__lshift__.Tensor: operation("shl"),
    aten.__lshift__.Scalar: operation("shl"),
    aten.__rshift__.Tensor: operation("shr"),
    aten.__rshift__.Scalar: operation("shr"),
}

# Copies into the result's type and layout.
CONVERSIONS: dict[Any, Callable[..., Any]] = {
    aten.clone.default: lambda x: x,
    aten._to_copy.default: lambda x: x,
    aten.lift_fresh_copy.default: lambda x: x,
    aten.copy.default: lambda _, source: source,
}

# The computation type is the operands' common type, the result is bool.
COMPARISONS: dict[Any, Callable[..., Any]] = {
    getattr(getattr(aten, name), overload): operation(name)
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Tensor", "Scalar")
}


def _logical(name: str) -> Callable[..., Scalar]:
    return lambda *operands: apply(name, *(cast(x, BOOL) for x in operands))


def _false(x: Scalar) -> Scalar:
    return x.nest.constant(False, BOOL)


def _isinf(x: Scalar) -> Scalar:
    return apply("isinf", x) if x.dtype.is_float else _false(x)


def _isnan(x: Scalar) -> Scalar:
    return apply("isnan", x) if x.dtype.is_float else _false(x)


def _signbit(x: Scalar) -> Scalar:
    if not x.dtype.is_float:
        return _false(x) if x.dtype == BOOL else x < 0
    return apply("copysign", x.nest.constant(1, x.dtype), x) < 0


# Each operand keeps its own type.
TESTS: dict[Any, Callable[..., Any]] = {
    aten.isnan.default: _isnan,
    aten.isinf.default: _isinf,
    aten.isposinf.default: lambda x: _isinf(x) & (x > 0),
    aten.isneginf.default: lambda x: _isinf(x) & (x < 0),
    aten.signbit.default: _signbit,
    aten.logical_not.default: _logical("not"),
    aten.logical_and.default: _logical("and"),
    aten.logical_or.default: _logical("or"),
    aten.logical_xor.default: _logical("xor"),
}
