"""Floats from outside that change between calls: arithmetic on them stays an expression.

In: a float and its source. Out: a `SymbolicFloat` that computes as the float does and notes how. It is
an argument of the graph where an operator takes it, Python text where the program keeps it; the
expression is computed by Python itself in front of the graph, so it rounds, overflows and raises as
in eager. Where the program asks what it is (`if`, `int()`, a key), the answer is guarded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from compiler_core.capture.sources import Formula, Source, literal
from compiler_core.capture.symbolic import NoForm, text_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.tensor import SymbolicNumber

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["MATH", "SymbolicFloat", "computed", "is_symbolic_float"]

#: functions of `math` whose result is a float for every float, or which raise
MATH = frozenset(
    getattr(math, name)
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "degrees", "erf", "erfc", "exp",
                 "expm1", "fabs", "fmod", "gamma", "hypot", "lgamma", "log", "log10", "log1p", "log2", "pow", "radians",
                 "sin", "sinh", "sqrt", "tan", "tanh", "copysign")
)  # fmt: skip


class SymbolicFloat:
    """A float whose value is not compiled in. `hint` is what it is now, `source` where it is found."""

    __slots__ = ("hint", "source", "trace")

    def __init__(self, trace: Trace, hint: float, source: Source):
        self.trace, self.hint, self.source = trace, hint, source

    def __str__(self) -> str:
        return f"{self.source.guard()} (now {self.hint!r})"

    def _asked(self, template: str, answer: Any, *others: Any) -> Any:
        """An answer that the program gets: later calls must give the same."""
        source = _source(template, (self, *others))
        self.trace.guard("equals", source, answer, "the program asked, and the answer decides")
        return answer

    def __float__(self) -> float:
        self.trace.guard("equals", self.source, self.hint, "its value is compiled in")
        return self.hint

    def __sym_float__(self) -> SymbolicFloat:
        return self

    def __bool__(self) -> bool:
        return bool(self._asked("(not not {})", bool(self.hint)))

    def __int__(self) -> int:
        return int(self._asked("int({})", int(self.hint)))

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return int(self._asked("__import__('math').floor({})", math.floor(self.hint)))

    def __ceil__(self) -> int:
        return int(self._asked("__import__('math').ceil({})", math.ceil(self.hint)))

    def __neg__(self) -> Any:
        return computed("(-{})", lambda x: -x, [self])

    def __pos__(self) -> SymbolicFloat:
        return self

    def __abs__(self) -> Any:
        return computed("abs({})", abs, [self])

    __hash__ = None  # type: ignore[assignment]


def is_symbolic_float(value: Value) -> bool:
    return isinstance(value, SymbolicNumber) and isinstance(value.real, SymbolicFloat)


def _arithmetic(name: str, symbol: str, function: Callable[[Any, Any], Any]) -> None:
    may_raise = symbol in ("/", "//", "%", "**")

    def forward(self: SymbolicFloat, other: Any) -> Any:
        return computed(f"({{}} {symbol} {{}})", function, [self, other], may_raise)

    def reflected(self: SymbolicFloat, other: Any) -> Any:
        return computed(f"({{}} {symbol} {{}})", function, [other, self], may_raise)

    setattr(SymbolicFloat, f"__{name}__", forward)
    setattr(SymbolicFloat, f"__r{name}__", reflected)


def _comparison(name: str, symbol: str, function: Callable[[Any, Any], Any]) -> None:
    def compare(self: SymbolicFloat, other: Any) -> Any:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        answer = function(self.hint, _value(other))
        return self._asked(f"({{}} {symbol} {{}})", answer, other)

    setattr(SymbolicFloat, f"__{name}__", compare)


_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, SymbolicFloat)

for _name, _symbol, _function in (
    ("add", "+", lambda a, b: a + b), ("sub", "-", lambda a, b: a - b), ("mul", "*", lambda a, b: a * b),
    ("truediv", "/", lambda a, b: a / b), ("floordiv", "//", lambda a, b: a // b),
    ("mod", "%", lambda a, b: a % b), ("pow", "**", lambda a, b: a**b),
):  # fmt: skip
    _arithmetic(_name, _symbol, _function)
for _name, _symbol, _function in (
    ("lt", "<", lambda a, b: a < b), ("le", "<=", lambda a, b: a <= b), ("gt", ">", lambda a, b: a > b),
    ("ge", ">=", lambda a, b: a >= b), ("eq", "==", lambda a, b: a == b), ("ne", "!=", lambda a, b: a != b),
):  # fmt: skip
    _comparison(_name, _symbol, _function)


def computed(
    template: str, function: Callable[..., Any], operands: Sequence[Any], may_raise: bool = False
) -> Any:
    """The result of pure arithmetic on numbers, one of them symbolic: symbolic if it is a float.

    Raises what the arithmetic raises, and NotImplemented is returned for what is no number.
    """
    if not all(isinstance(x, _NUMBERS) for x in operands):
        return NotImplemented
    owner = next(x for x in operands if isinstance(x, SymbolicFloat))
    try:
        result = function(*map(_value, operands))
    except Exception as error:
        _raises(operands, error)
    if type(result) is not float:  # a root of a negative number is complex
        return function(*map(_plain, operands))
    source = _source(template, operands)
    if may_raise:
        owner.trace.guard(
            "type", source, result, "the arithmetic gives a float, and does not raise"
        )
    return SymbolicFloat(owner.trace, result, source)


def _raises(operands: Sequence[Any], error: Exception) -> NoReturn:
    """The operands are guarded: other ones need not raise."""
    for operand in operands:
        _plain(operand)
    raise error


def _plain(operand: Any) -> Any:
    """A number as it is now, guarded to be so."""
    if isinstance(operand, (SymbolicFloat, torch.SymFloat)):
        return float(operand)
    return int(operand) if isinstance(operand, torch.SymInt) else operand


def _value(operand: Any) -> Any:
    """A number as it is now."""
    if isinstance(operand, SymbolicFloat):
        return operand.hint
    return operand.node.hint if isinstance(operand, (torch.SymInt, torch.SymFloat)) else operand


def _source(template: str, operands: Sequence[Any]) -> Source:
    owner = next(x for x in operands if isinstance(x, SymbolicFloat))
    return Source("formula", Formula(template, tuple(_operand(owner.trace, x) for x in operands)))


def _operand(trace: Trace, operand: Any) -> Source | str:
    """An operand of a formula. A symbolic size is a formula of its own."""
    if isinstance(operand, SymbolicFloat):
        return operand.source
    if not isinstance(operand, (torch.SymInt, torch.SymFloat)):
        return literal(operand)
    parts: list[Source] = []

    def symbol(expr: Any) -> str:
        parts.append(trace.builder.size_source(expr))
        return "{}"

    try:
        template = text_of(operand.node.expr, symbol)
    except NoForm:
        return literal(_plain(operand))
    return Source("formula", Formula(template, tuple(parts)))
