"""Numbers inside a nest, written as ordinary arithmetic.

In: `Scalar`s and Python numbers. Out: new `Scalar`s, each one more statement of the nest under
construction. The idea: a lowering rule reads like the formula it stands for, `x * sigmoid(x)`.
A Python number takes the type of the scalar that it meets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from compiler_core.ir.dtypes import DTYPES, DType

if TYPE_CHECKING:
    from compiler_core.lower.nest import NestBuilder

__all__ = ["BOOL", "F32", "F64", "I64", "Number", "Scalar", "apply", "cast", "where"]

Number: TypeAlias = float | int | bool

BOOL, F32, F64, I64 = DTYPES["bool"], DTYPES["f32"], DTYPES["f64"], DTYPES["i64"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """The name of a statement that is visible here, with its type."""

    name: str
    dtype: DType
    nest: NestBuilder = field(repr=False, compare=False)

    def __neg__(self) -> Scalar:
        return apply("neg", self)

    def __add__(self, other: Scalar | Number) -> Scalar:
        return apply("add", self, other)

    def __radd__(self, other: Number) -> Scalar:
        return apply("add", other, self)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return apply("sub", self, other)

    def __rsub__(self, other: Number) -> Scalar:
        return apply("sub", other, self)

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return apply("mul", self, other)

    def __rmul__(self, other: Number) -> Scalar:
        return apply("mul", other, self)

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return apply("div", self, other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return apply("div", other, self)

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return apply("lt", self, other)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return apply("le", self, other)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return apply("gt", self, other)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return apply("ge", self, other)

    def __and__(self, other: Scalar) -> Scalar:
        return apply("and", self, other)

    def __or__(self, other: Scalar) -> Scalar:
        return apply("or", self, other)

    def __invert__(self) -> Scalar:
        return apply("not", self)


def apply(op: str, *operands: Scalar | Number) -> Scalar:
    """One operation of `ir/ops.py` on operands of one type; at least one is a `Scalar`."""
    anchor = next(x for x in operands if isinstance(x, Scalar))
    nest = anchor.nest
    return nest.operation(
        op, *(x if isinstance(x, Scalar) else nest.constant(x, anchor.dtype) for x in operands)
    )


def where(condition: Scalar, yes: Scalar | Number, no: Scalar | Number) -> Scalar:
    """`yes` where `condition` (a bool) holds, else `no`; one of the two is a `Scalar`."""
    anchor = yes if isinstance(yes, Scalar) else no
    assert isinstance(anchor, Scalar)
    nest = condition.nest
    a, b = (x if isinstance(x, Scalar) else nest.constant(x, anchor.dtype) for x in (yes, no))
    return nest.operation("where", condition, a, b)


def cast(x: Scalar, dtype: DType) -> Scalar:
    """`x` in another type. To bool it is `x != 0`, as in eager: 0.5 and NaN are true."""
    if x.dtype == dtype:
        return x
    if dtype == BOOL:
        return apply("ne", x, 0)
    return x.nest.operation("cast", x, dtype=dtype)
