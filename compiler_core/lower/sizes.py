"""Numbers made from sizes that are no integers: `1 / x.shape[0]`, `x.shape[1] ** 0.5`.

In: the expression of a SymFloat. Out: f64 arithmetic on `Position`s inside the nest that needs it,
rounded once to the type asked for, as eager rounds a Python float.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import from_sympy
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Refusal
from compiler_core.lower.scalars import F64, Scalar, apply, cast

__all__ = ["SizeNumber"]

# class of the expression → operation; associative ones take any number of arguments
_OPERATIONS = {
    "Add": "add", "Mul": "mul", "FloatTrueDiv": "div", "IntTrueDiv": "div", "Pow": "pow", "FloatPow": "pow",
    "PowByNatural": "pow", "OpaqueUnaryFn_sqrt": "sqrt", "OpaqueUnaryFn_exp": "exp", "OpaqueUnaryFn_log": "log",
    "Max": "maximum", "Min": "minimum",
}  # fmt: skip


# integers, whatever is inside: index expressions
_INTEGERS = {"Symbol", "FloorDiv", "CleanDiv", "PythonMod", "Mod"}


@dataclass(frozen=True, slots=True)
class SizeNumber:
    """A float that the sizes of the arguments determine; `expr` is the SymFloat's expression."""

    expr: Any

    def emit(self, nest: NestBuilder, dtype: DType) -> Scalar:
        """The number in a nest. Raises Refusal for an expression of another form."""
        return cast(_emitted(nest, self.expr), dtype)


def _emitted(nest: NestBuilder, expr: Any) -> Scalar:
    kind = type(expr).__name__
    if expr.is_Float or expr.is_Rational:
        return nest.constant(float(expr), F64)
    if kind in _INTEGERS:
        return nest.position(from_sympy(expr), F64)
    if kind == "ToFloat":
        return nest.position(from_sympy(expr.args[0]), F64)
    if kind not in _OPERATIONS:
        raise Refusal(f"{kind} of sizes")
    operation = _OPERATIONS[kind]
    parts = [_emitted(nest, arg) for arg in expr.args]
    if len(parts) == 1:
        return apply(operation, parts[0])
    return reduce(lambda a, b: apply(operation, a, b), parts)
