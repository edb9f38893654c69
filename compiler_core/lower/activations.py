"""Formulas of activations and their derivatives.

In: scalars in at least f32. Out: the result, rounded once by `pointwise.py`. Each formula is the
one that eager's kernel documents, so that limits (large |x|, -0.0, NaN) agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from compiler_core.lower.scalars import Number, Scalar, apply, where

__all__ = ["ACTIVATIONS"]

aten = torch.ops.aten

_SQRT_HALF = math.sqrt(0.5)
_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715
_SIXTH = 0.1666666716337204  # eager divides by six in f32, for f64 too


def _exp(x: Scalar) -> Scalar:
    return apply("exp", x)


def _sigmoid(x: Scalar) -> Scalar:
    return apply("sigmoid", x)


def _tanh(x: Scalar) -> Scalar:
    return apply("tanh", x)


def _gelu(x: Scalar, approximate: str = "none") -> Scalar:
    """Hendrycks and Gimpel 2016, exact or with the tanh approximation."""
    if approximate == "none":
        return x * 0.5 * (1.0 + apply("erf", x * _SQRT_HALF))
    inner = (x + x * x * x * _TANH_CUBIC) * _TANH_SCALE
    return x * 0.5 * (1.0 + _tanh(inner))


def _gelu_backward(grad: Scalar, x: Scalar, approximate: str = "none") -> Scalar:
    if approximate == "none":
        below = (1.0 + apply("erf", x * _SQRT_HALF)) * 0.5
        density = _exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        return grad * (below + x * density)
    tangent = _tanh((x + x * x * x * _TANH_CUBIC) * _TANH_SCALE)
    slope = (1.0 - tangent * tangent) * ((1.0 + x * x * (3 * _TANH_CUBIC)) * _TANH_SCALE)
    return grad * ((1.0 + tangent) * 0.5 + x * 0.5 * slope)


def _silu(x: Scalar) -> Scalar:
    return x / (1.0 + _exp(-x))


def _silu_backward(grad: Scalar, x: Scalar) -> Scalar:
    s = _sigmoid(x)
    return grad * s * (1.0 + x * (1.0 - s))


def _mish(x: Scalar) -> Scalar:
    return x * _tanh(apply("log1p", _exp(x)))


def _mish_backward(grad: Scalar, x: Scalar) -> Scalar:
    s, t = _sigmoid(x), _tanh(apply("log1p", _exp(x)))
    return grad * (t + x * s * (1.0 - t * t))


def _elu(x: Scalar, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Scalar:
    negative = apply("expm1", x * input_scale) * (alpha * scale)
    return where(x < 0, negative, x * scale)


def _elu_backward(
    grad: Scalar, alpha: float, scale: float, input_scale: float, is_result: bool, x: Scalar
) -> Scalar:
    """`x` is the operator's result when `is_result`, else its argument."""
    if is_result:
        negative = grad * input_scale * (x + alpha * scale)
    else:
        negative = grad * (input_scale * alpha * scale) * _exp(x * input_scale)
    return where(x <= 0, negative, grad * scale)


def _softplus(x: Scalar, beta: Number = 1, threshold: Number = 20) -> Scalar:
    return where(x * beta > threshold, x, apply("log1p", _exp(x * beta)) / beta)


def _softplus_backward(grad: Scalar, x: Scalar, beta: Number, threshold: Number) -> Scalar:
    z = _exp(x * beta)
    return where(x * beta > threshold, grad, grad * z / (z + 1.0))


def _clamp(x: Scalar, low: Number, high: Number) -> Scalar:
    return apply("minimum", apply("maximum", x, low), high)


def _hardtanh_backward(grad: Scalar, x: Scalar, low: Number, high: Number) -> Scalar:
    return where((x <= low) | (x >= high), 0, grad)


def _hardsigmoid(x: Scalar) -> Scalar:
    return _clamp(x + 3.0, 0, 6) / 6.0


def _hardsigmoid_backward(grad: Scalar, x: Scalar) -> Scalar:
    return where((x > -3) & (x < 3), grad * _SIXTH, 0)


def _hardswish(x: Scalar) -> Scalar:
    return x * _clamp(x + 3.0, 0, 6) / 6.0


def _hardswish_backward(grad: Scalar, x: Scalar) -> Scalar:
    middle = grad * (x / 3.0 + 0.5)
    return where(x <= -3, 0, where(x < 3, middle, grad))


def _leaky_relu(x: Scalar, slope: Number = 0.01) -> Scalar:
    return where(x > 0, x, x * slope)


def _leaky_relu_backward(grad: Scalar, x: Scalar, slope: Number, _: bool) -> Scalar:
    return where(x > 0, grad, grad * slope)


def _prelu(x: Scalar, weight: Scalar) -> Scalar:
    return where(x > 0, x, x * weight)


def _logit(x: Scalar, eps: Number | None = None) -> Scalar:
    x = x if eps is None else _clamp(x, eps, 1 - eps)
    return apply("log", x / (1.0 - x))


# Half types compute in f32 and round at the end.
ACTIVATIONS: dict[Any, Callable[..., Any]] = {
    aten.gelu.default: _gelu,
    aten.gelu_backward.default: _gelu_backward,
    aten.silu.default: _silu,
    aten.silu_backward.default: _silu_backward,
    aten.mish.default: _mish,
    aten.mish_backward.default: _mish_backward,
    aten.elu.default: _elu,
    aten.elu_backward.default: _elu_backward,
    aten.softplus.default: _softplus,
    aten.softplus_backward.default: _softplus_backward,
    aten.hardtanh.default: lambda x, low=-1, high=1: _clamp(x, low, high),
    aten.hardtanh_backward.default: _hardtanh_backward,
    aten.hardsigmoid.default: _hardsigmoid,
    aten.hardsigmoid_backward.default: _hardsigmoid_backward,
    aten.hardswish.default: _hardswish,
    aten.hardswish_backward.default: _hardswish_backward,
    aten.leaky_relu.default: _leaky_relu,
    aten.leaky_relu_backward.default: _leaky_relu_backward,
    aten._prelu_kernel.default: _prelu,
    aten.threshold.default: lambda x, limit, value: where(x <= limit, value, x),
    aten.threshold_backward.default: lambda grad, x, limit: where(x <= limit, 0, grad),
    aten.tanh_backward.default: lambda grad, y: grad * (1.0 - y * y),
    aten.sigmoid_backward.default: lambda grad, y: grad * (1.0 - y) * y,
    aten.logit.default: _logit,
}
