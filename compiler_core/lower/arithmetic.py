"""Formulas of arithmetic: sums, products, quotients, powers, elementary functions.

In: scalars of the result's type (or Python numbers). Out: the result's scalar. A formula takes the
operator's arguments in schema order; keyword-only ones by name.
Sources: the documented semantics of torch.div, torch.remainder, torch.fmod and torch.pow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler_core.lower.operands import Refusal
from compiler_core.lower.scalars import BOOL, Number, Scalar, apply, where

__all__ = ["ARITHMETIC", "NUMBERS_OF_OWN_TYPE", "SUMS", "is_one", "operation", "power_on_cpu"]

aten = torch.ops.aten


def operation(name: str) -> Callable[..., Scalar]:
    """The formula that is one operation of the loop IR."""
    return lambda *operands: apply(name, *operands)


def _add(a: Scalar | Number, b: Scalar | Number, alpha: Number = 1) -> Any:
    return a + (b if is_one(alpha) else _scaled(b, alpha))


def _sub(a: Scalar | Number, b: Scalar | Number, alpha: Number = 1) -> Any:
    return a - (b if is_one(alpha) else _scaled(b, alpha))


def _scaled(b: Scalar | Number, alpha: Number) -> Any:
    if isinstance(b, Scalar) and b.dtype == BOOL:
        return b if alpha else where(b, False, b)
    return b * alpha


def is_one(alpha: Any) -> bool:
    return isinstance(alpha, (int, float)) and alpha == 1


def _checked_divisor(a: Scalar | Number, b: Scalar | Number) -> None:
    """Eager raises on an integer division by zero; a generated kernel cannot."""
    dtype = (a if isinstance(a, Scalar) else b).dtype  # type: ignore[union-attr]
    if not dtype.is_float and (isinstance(b, Scalar) or b == 0):
        raise Refusal("eager raises on an integer division by zero")


def _div_mode(a: Scalar, b: Scalar | Number, rounding_mode: str | None = None) -> Scalar:
    if rounding_mode is None:
        return a / b
    _checked_divisor(a, b)
    if rounding_mode == "floor":
        return apply("floordiv", a, b)
    # a half type rounds the quotient before it is cut, and so does eager between two tensors
    return apply("trunc", a / b) if a.dtype.is_float else apply("truncdiv", a, b)


def _floor_divide(a: Scalar, b: Scalar | Number) -> Scalar:
    _checked_divisor(a, b)
    return apply("floordiv", a, b)


def _remainder(a: Scalar | Number, b: Scalar | Number) -> Scalar:
    _checked_divisor(a, b)
    return apply("remainder", a, b)


def _sign(x: Scalar) -> Scalar:
    return x if x.dtype == BOOL else apply("sign", x)


def _fmod(a: Scalar, b: Scalar | Number) -> Scalar:
    _checked_divisor(a, b)
    return apply("fmod", a, b)


# exponents that eager computes without `pow`
_POWERS: dict[float, Callable[[Scalar], Scalar]] = {
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
}
_FLOAT_POWERS: dict[float, Callable[[Scalar], Scalar]] = {
    0.5: lambda x: apply("sqrt", x),
    -0.5: lambda x: apply("rsqrt", x),
    -1: lambda x: apply("reciprocal", x),
    -2: lambda x: apply("reciprocal", x * x),
}


def _pow(base: Scalar | Number, exponent: Scalar | Number) -> Scalar:
    if isinstance(exponent, Scalar) or not isinstance(base, Scalar):
        return apply("pow", base, exponent)
    rules = _POWERS | (_FLOAT_POWERS if base.dtype.is_float else {})
    if exponent == 0:
        return base.nest.constant(1, base.dtype)
    if exponent in rules:
        return rules[exponent](base)
    return apply("pow", base, exponent)


def power_on_cpu(base: Scalar, exponent: Number) -> Scalar:
    """Eager's CPU kernel for f16 has no faster ways: a negative zero's root is 0, that of -inf is inf."""
    is_plain = base.dtype.name == "f16" and exponent not in (0, 1, 2, -1)
    return apply("pow", base, exponent) if is_plain else _pow(base, exponent)


# The computation type is the result's. A number that a half type cannot hold widens it.
ARITHMETIC: dict[Any, Callable[..., Any]] = {
    aten.add.Tensor: _add,
    aten.add.Scalar: lambda a, b, alpha=1: _add(a, b, alpha),
    aten.sub.Tensor: _sub,
    aten.sub.Scalar: lambda a, b, alpha=1: _sub(a, b, alpha),
    aten.rsub.Tensor: lambda a, b, alpha=1: _sub(b, a, alpha),
    aten.rsub.Scalar: lambda a, b, alpha=1: _sub(b, a, alpha),
    aten.mul.Tensor: lambda a, b: a * b,
    aten.mul.Scalar: lambda a, b: a * b,
    aten.div.Tensor: lambda a, b: a / b,
    aten.div.Scalar: lambda a, b: a / b,
    aten.div.Tensor_mode: _div_mode,
    aten.div.Scalar_mode: _div_mode,
    aten.true_divide.Tensor: lambda a, b: a / b,
    aten.floor_divide.default: _floor_divide,
    aten.floor_divide.Scalar: _floor_divide,
    aten.remainder.Tensor: _remainder,
    aten.remainder.Scalar: _remainder,
    aten.remainder.Scalar_Tensor: _remainder,
    aten.fmod.Tensor: _fmod,
    aten.fmod.Scalar: _fmod,
    aten.pow.Tensor_Tensor: _pow,
    aten.pow.Tensor_Scalar: _pow,
    aten.pow.Scalar: _pow,
    aten.square.default: lambda x: x * x,
    aten.abs.default: operation("abs"),
    aten.neg.default: operation("neg"),
    aten.positive.default: lambda x: x,
    aten.sign.default: _sign,
    aten.sgn.default: _sign,
    aten.exp.default: operation("exp"),
    aten.exp2.default: operation("exp2"),
    aten.expm1.default: operation("expm1"),
    aten.log.default: operation("log"),
    aten.log2.default: operation("log2"),
    aten.log10.default: operation("log10"),
    aten.log1p.default: operation("log1p"),
    aten.sqrt.default: operation("sqrt"),
    aten.rsqrt.default: operation("rsqrt"),
    aten.reciprocal.default: operation("reciprocal"),
    aten.sin.default: operation("sin"),
    aten.cos.default: operation("cos"),
    aten.tan.default: operation("tan"),
    aten.asin.default: operation("asin"),
    aten.acos.default: operation("acos"),
    aten.atan.default: operation("atan"),
    aten.sinh.default: operation("sinh"),
    aten.cosh.default: operation("cosh"),
    aten.tanh.default: operation("tanh"),
    aten.sigmoid.default: operation("sigmoid"),
    aten.erf.default: operation("erf"),
    aten.floor.default: operation("floor"),
    aten.ceil.default: operation("ceil"),
    aten.trunc.default: operation("trunc"),
    aten.round.default: operation("round"),
    aten.frac.default: lambda x: x - apply("trunc", x),
    aten.atan2.default: operation("atan2"),
    aten.copysign.Tensor: operation("copysign"),
    aten.copysign.Scalar: operation("copysign"),
}

# Eager rounds a Python number among these operands to the tensor's type, on every device.
NUMBERS_OF_OWN_TYPE = frozenset(
    {
        aten.remainder.Scalar,
        aten.remainder.Scalar_Tensor,
        aten.remainder.Tensor,
        aten.fmod.Scalar,
        aten.fmod.Tensor,
        aten.pow.Tensor_Scalar,
        aten.pow.Scalar,
        aten.pow.Tensor_Tensor,
    }
)

SUMS = tuple(
    getattr(getattr(aten, op), o) for op in ("add", "sub", "rsub") for o in ("Tensor", "Scalar")
)
