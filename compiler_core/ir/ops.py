"""The scalar operations of the loop IR: a closed vocabulary, one row per operation.

A row says how many operands an operation takes, what type it gives and what it means (the torch
function that is its reference). The texts that realise a row stand in tables of the code
generators with the same keys: `codegen/cpp/expressions.py`, `codegen/triton/expressions.py`.

Type rules: `same` (the operands agree, the result has their type), `bool` (the operands agree, the
result is bool), `float` (as `same`, floating operands only), `where` (bool, then two that agree).
`cast` gives the type that its statement names. Half types compute in f32 and round once, at each
statement: that is what eager does between two operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["OPS", "REDUCTIONS", "Op", "Reduction"]


@dataclass(frozen=True, slots=True)
class Op:
    """One scalar operation."""

    name: str
    arity: int
    rule: str
    reference: Callable[..., Any]
    doc: str


def _trunc_div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.div(a, b, rounding_mode="trunc")


def _identity(a: torch.Tensor) -> torch.Tensor:
    return a


_ROWS = (
    # one operand
    Op("neg", 1, "same", torch.neg, "-a"),
    Op("abs", 1, "same", torch.abs, "|a|"),
    Op("sign", 1, "same", torch.sign, "-1, 0, 1; NaN gives 0"),
    Op("exp", 1, "float", torch.exp, "e**a"),
    Op("exp2", 1, "float", torch.exp2, "2**a"),
    Op("expm1", 1, "float", torch.expm1, "e**a - 1, exact near 0"),
    Op("log", 1, "float", torch.log, "natural logarithm"),
    Op("log2", 1, "float", torch.log2, "logarithm to base 2"),
    Op("log10", 1, "float", torch.log10, "logarithm to base 10"),
    Op("log1p", 1, "float", torch.log1p, "log(1 + a), exact near 0"),
    Op("sqrt", 1, "float", torch.sqrt, "square root, correctly rounded"),
    Op("rsqrt", 1, "float", torch.rsqrt, "1 / sqrt(a)"),
    Op("reciprocal", 1, "float", torch.reciprocal, "1 / a"),
    Op("sin", 1, "float", torch.sin, "sine of radians"),
    Op("cos", 1, "float", torch.cos, "cosine of radians"),
    Op("tan", 1, "float", torch.tan, "tangent of radians"),
    Op("asin", 1, "float", torch.asin, "arc sine"),
    Op("acos", 1, "float", torch.acos, "arc cosine"),
    Op("atan", 1, "float", torch.atan, "arc tangent"),
    Op("sinh", 1, "float", torch.sinh, "hyperbolic sine"),
    Op("cosh", 1, "float", torch.cosh, "hyperbolic cosine"),
    Op("tanh", 1, "float", torch.tanh, "hyperbolic tangent"),
    Op("sigmoid", 1, "float", torch.sigmoid, "1 / (1 + e**-a)"),
    Op("erf", 1, "float", torch.erf, "error function"),
    Op("floor", 1, "same", torch.floor, "round towards -inf"),
    Op("ceil", 1, "same", torch.ceil, "round towards +inf"),
    Op("trunc", 1, "same", torch.trunc, "round towards 0"),
    Op("round", 1, "same", torch.round, "round half to even"),
    Op("isnan", 1, "bool", torch.isnan, "a != a"),
    Op("isinf", 1, "bool", torch.isinf, "a is inf or -inf"),
    Op("not", 1, "same", torch.bitwise_not, "each bit flipped; on bool, logical not"),
    Op(
        "cast",
        1,
        "cast",
        _identity,
        "the value in the statement's type: rounds half to even, truncates to integers",
    ),
    # two operands
    Op("add", 2, "same", torch.add, "a + b; on bool, or"),
    Op("sub", 2, "same", torch.sub, "a - b"),
    Op("mul", 2, "same", torch.mul, "a * b; on bool, and"),
    Op("div", 2, "float", torch.div, "a / b, correctly rounded"),
    Op(
        "floordiv",
        2,
        "same",
        torch.floor_divide,
        "a // b as in Python; a float zero divisor gives inf or NaN",
    ),
    Op("truncdiv", 2, "same", _trunc_div, "a / b towards 0"),
    Op("remainder", 2, "same", torch.remainder, "a % b as in Python: the sign of b"),
    Op("fmod", 2, "same", torch.fmod, "a % b as in C: the sign of a"),
    Op("pow", 2, "same", torch.pow, "a ** b"),
    Op("maximum", 2, "same", torch.maximum, "the larger; NaN wins"),
    Op("minimum", 2, "same", torch.minimum, "the smaller; NaN wins"),
    Op("atan2", 2, "float", torch.atan2, "angle of (b, a)"),
    Op("copysign", 2, "float", torch.copysign, "|a| with the sign of b"),
    Op("and", 2, "same", torch.bitwise_and, "each bit and"),
    Op("or", 2, "same", torch.bitwise_or, "each bit or"),
    Op("xor", 2, "same", torch.bitwise_xor, "each bit exclusive or"),
    Op("shl", 2, "same", torch.bitwise_left_shift, "a << b"),
    Op("shr", 2, "same", torch.bitwise_right_shift, "a >> b, arithmetic"),
    Op("eq", 2, "bool", torch.eq, "a == b"),
    Op("ne", 2, "bool", torch.ne, "a != b"),
    Op("lt", 2, "bool", torch.lt, "a < b"),
    Op("le", 2, "bool", torch.le, "a <= b"),
    Op("gt", 2, "bool", torch.gt, "a > b"),
    Op("ge", 2, "bool", torch.ge, "a >= b"),
    # three operands
    Op("where", 3, "where", torch.where, "b where a, else c"),
)

OPS: dict[str, Op] = {row.name: row for row in _ROWS}


@dataclass(frozen=True, slots=True)
class Reduction:
    """One way to fold values over axes. `empty` is the value over no elements; None is refused."""

    name: str
    reference: Callable[..., Any]
    empty: float | None
    doc: str


_REDUCTIONS = (
    Reduction("sum", torch.sum, 0, "added up in the statement's type or a wider one, in any order"),
    Reduction("prod", torch.prod, 1, "multiplied in the statement's type"),
    Reduction("max", torch.amax, None, "the largest; NaN wins"),
    Reduction("min", torch.amin, None, "the smallest; NaN wins"),
    Reduction(
        "argmax",
        torch.argmax,
        None,
        "row-major position (i64) of the largest; NaN wins, the first of equals",
    ),
    Reduction(
        "argmin",
        torch.argmin,
        None,
        "row-major position (i64) of the smallest; NaN wins, the first of equals",
    ),
    Reduction("any", torch.any, 0, "or of bool values"),
    Reduction("all", torch.all, 1, "and of bool values"),
)

REDUCTIONS: dict[str, Reduction] = {row.name: row for row in _REDUCTIONS}
