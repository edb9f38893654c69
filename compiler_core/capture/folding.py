"""Running host functions at trace time, on immutable data only.

In: a pure function and values. Out: the value of its result. A value that is not wholly constant
(`payload` raises NotConstant) never reaches the host: running Python on live objects while tracing
would do their side effects once too often.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.values import TENSOR_INDEX
from compiler_core.capture.breaks import NOT_REBUILT, UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.resolve import constant_value
from compiler_core.capture.symbolic_floats import SymbolicFloat
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant, is_constant
from compiler_core.capture.values.containers import DictValue, ListValue, SetValue, TupleValue
from compiler_core.capture.values.objects import ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["NotConstant", "boxed", "fold", "fold_numbers", "fold_or_break", "payload", "plain_int"]


class NotConstant(Exception):
    """A value that holds something known only at run time."""


def payload(trace: Trace, value: Value) -> Any:
    """The real object of a wholly constant value; containers are copied. Raises NotConstant.

    A symbolic number is specialised: a host function would see its symbol, not its value.
    """
    value = trace.look(value)
    match value:
        case SymbolicNumber():
            return value.python_type()(value.real)
        case Constant():
            return value.real
        case TupleValue():
            items = [payload(trace, item) for item in value.items]
            if value.cls is slice:
                return slice(*items)
            if value.cls in (tuple, torch.Size):
                return value.cls(items)
            return tuple.__new__(value.cls, items)
        case ListValue():
            return [payload(trace, item) for item in value.items]
        case DictValue() if value.cls is dict:
            value.look()
            return {key: payload(trace, item) for key, (_, item) in value.items.items()}
        case SetValue() if value.in_order() is not None:
            return (
                value.made
                if len(value.items) > 1
                else value.cls(payload(trace, item) for item in value.items.values())
            )
        case ObjectValue() if isinstance(value.real, (enum.Enum, type, torch.finfo, torch.iinfo)):
            return value.real
    raise NotConstant(value.describe())


def fold(
    trace: Trace,
    function: Callable[..., Any],
    args: Sequence[Value],
    kwargs: dict[str, Value] | None = None,
) -> Value:
    """The value of a pure function of constants. Raises NotConstant, Raised."""
    named = {name: payload(trace, arg) for name, arg in (kwargs or {}).items()}
    return _computed(function, [payload(trace, arg) for arg in args], named)


def fold_numbers(trace: Trace, function: Callable[..., Any], args: Sequence[Value]) -> Value:
    """The same for arithmetic and comparisons, in which symbolic numbers stay symbolic."""
    looked = [trace.look(arg) for arg in args]
    real = [a.real if isinstance(a, SymbolicNumber) else payload(trace, a) for a in looked]
    if not all(isinstance(r, (int, float, bool, *_SYMBOLIC)) for r in real):
        real = [payload(trace, arg) for arg in looked]
    return _computed(function, real, {})


_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool, SymbolicFloat)


def _computed(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Value:
    try:
        return boxed(function(*args, **kwargs))
    except Exception as error:
        if isinstance(error, Break):
            raise
        raise raise_real(error) from None


def fold_or_break(
    trace: Trace,
    function: Callable[..., Any],
    args: Sequence[Value],
    kwargs: dict[str, Value] | None = None,
) -> Value:
    """The same; a break when the arguments are not constant."""
    try:
        return fold(trace, function, args, kwargs)
    except NotConstant as missing:
        name = getattr(function, "__name__", str(function))
        raise Break(UNKNOWN_CALL, f"{name} of {missing}") from None


def boxed(result: Any) -> Value:
    """A value for what a host function returned. Raises Break for what has no model."""
    if isinstance(result, _SYMBOLIC):
        from compiler_core.capture.graph_builder import number_value

        return number_value(result)
    if is_constant(result) or isinstance(result, (enum.Enum, type, torch.finfo, torch.iinfo)):
        return constant_value(result)
    if isinstance(result, tuple):
        return TupleValue(tuple(map(boxed, result)), type(result))
    if type(result) is list:
        return ListValue(list(map(boxed, result)))
    if type(result) is dict:
        return DictValue({key: (constant_value(key), boxed(x)) for key, x in result.items()})
    if type(result) in (set, frozenset):
        items = {item: constant_value(item) for item in result}
        return SetValue(items, type(result), made=result)
    raise Break(NOT_REBUILT, f"a {type(result).__name__} that was computed while tracing")


def plain_int(trace: Trace, value: Value) -> int:
    """An int from a constant or symbolic number; a symbolic one is specialised. Raises Break."""
    value = trace.look(value)
    if isinstance(value, (Constant, SymbolicNumber)):
        try:
            return value.real.__index__() if isinstance(value, Constant) else int(value.real)
        except (AttributeError, TypeError):
            pass
    if isinstance(value, TensorValue):
        raise Break(TENSOR_INDEX, "where an integer is needed")
    raise Break(UNKNOWN_CALL, f"{value.describe()} where an integer is needed")
