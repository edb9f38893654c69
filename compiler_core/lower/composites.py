"""Formulas of several operations that are not activations: addcmul, lerp, xlogy and their like.

In: scalars in at least f32. Out: the result, rounded once by `pointwise.py`.
Sources: the documented formulas of torch.addcmul, torch.lerp, torch.xlogy, torch.logaddexp, torch.round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from compiler_core.lower.arithmetic import is_one
from compiler_core.lower.scalars import Number, Scalar, apply, where

__all__ = ["COMPOSITES"]

aten = torch.ops.aten


def _addcmul(x: Scalar, a: Scalar, b: Scalar, value: Number = 1) -> Scalar:
    return x + (a * b if is_one(value) else a * value * b)


def _addcdiv(x: Scalar, a: Scalar, b: Scalar, value: Number = 1) -> Scalar:
    return x + (a / b if is_one(value) else a * value / b)


def _lerp(a: Scalar, b: Scalar, weight: Scalar | Number) -> Scalar:
    """Eager's form keeps the nearer end exact."""
    far = b - (b - a) * (1 - weight)
    near = a + (b - a) * weight
    if not isinstance(weight, Scalar):
        return near if abs(weight) < 0.5 else far
    return where(apply("abs", weight) < 0.5, near, far)


def _xlogy(x: Scalar, y: Scalar | Number) -> Scalar:
    y = y if isinstance(y, Scalar) else x.nest.constant(y, x.dtype)
    product = where(apply("eq", x, 0), 0, x * apply("log", y))
    return where(apply("isnan", y), math.nan, product)


def _logaddexp(a: Scalar, b: Scalar) -> Scalar:
    larger = apply("maximum", a, b)
    total = larger + apply("log1p", apply("exp", -apply("abs", a - b)))
    return where(apply("isinf", a) & apply("eq", a, b), a, total)


def _round(x: Scalar, decimals: int = 0) -> Scalar:
    if decimals == 0:
        return apply("round", x)
    scale = 10.0 ** abs(decimals)
    return apply("round", x * scale) / scale if decimals > 0 else apply("round", x / scale) * scale


# Half types compute in f32 and round at the end.
COMPOSITES: dict[Any, Callable[..., Any]] = {
    aten.addcmul.default: _addcmul,
    aten.addcdiv.default: _addcdiv,
    aten.lerp.Scalar: _lerp,
    aten.lerp.Tensor: _lerp,
    aten.xlogy.Tensor: _xlogy,
    aten.xlogy.Scalar_Other: _xlogy,
    aten.logaddexp.default: _logaddexp,
    aten.round.decimals: _round,
}
