"""Numbers that are known at the call: `1 / x.shape[0]`, `x.shape[1] ** 0.5`, a float argument.

In: the expression of a SymFloat. Out: f64 arithmetic inside the nest that needs it, on `Position`s
(sizes) and loads of float arguments, rounded once to the type asked for, as eager rounds a Python float.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import from_sympy
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal
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
    """A float that the arguments determine; `expr` is the SymFloat's expression.

    `floats`: the float arguments among its symbols, by the symbol's name.
    """

    expr: Any
    floats: Mapping[str, Operand] = field(default_factory=dict, compare=False)

    @property
    def argument(self) -> Operand | None:
        """The float argument that this number is, if it is one."""
        return self.floats.get(str(self.expr))

    def emit(self, nest: NestBuilder, dtype: DType) -> Scalar:
        """The number in a nest. Raises Refusal for an expression of another form."""
        return cast(_emitted(nest, self.expr, self.floats), dtype)


def _emitted(nest: NestBuilder, expr: Any, floats: Mapping[str, Operand]) -> Scalar:
    kind = type(expr).__name__
    if str(expr) in floats:
        return nest.load(floats[str(expr)], ())
    if expr.is_Float or expr.is_Rational:
        return nest.constant(float(expr), F64)
    if kind in _INTEGERS:
        return nest.position(from_sympy(expr), F64)
    if kind == "ToFloat":
        return nest.position(from_sympy(expr.args[0]), F64)
    if kind not in _OPERATIONS:
        raise Refusal(f"{kind} of sizes")
    operation = _OPERATIONS[kind]
    parts = [_emitted(nest, arg, floats) for arg in expr.args]
    if len(parts) == 1:
        return apply(operation, parts[0])
    return reduce(lambda a, b: apply(operation, a, b), parts)
