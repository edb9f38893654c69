"""Operators on values: `a + b`, `a += b`, `-a`, slices.

In: values, looked at. Out: a value. Tensors go to the graph, constants are computed, objects of the
program use their special methods, anything else breaks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import NotConstant, fold_numbers, plain_int
from compiler_core.capture.instances import call_special
from compiler_core.capture.user_containers import inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import (
    DictValue,
    ListValue,
    SetValue,
    TupleValue,
)
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


__all__ = [
    "OPERATORS",
    "_COMPARE",
    "_SWAPPED",
    "_defines",
    "_not_understood",
    "binary",
    "make_slice",
    "unary",
]

_NAMES = {
    "+": "add", "&": "and", "//": "floordiv", "<<": "lshift", "@": "matmul", "*": "mul", "%": "mod", "|": "or",
    "**": "pow", ">>": "rshift", "-": "sub", "/": "truediv", "^": "xor",
}  # fmt: skip

_COMPARE = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}

_SWAPPED = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(operator, name, None) or getattr(operator, f"{name}_")
    return function


OPERATORS: dict[str, Callable[..., Any]] = {
    **{symbol: _function(name) for symbol, name in _NAMES.items()},
    **{f"{symbol}=": _function(f"i{name}") for symbol, name in _NAMES.items()},
    **{symbol: _function(name) for symbol, name in _COMPARE.items()},
}

_UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "UNARY_NEGATIVE": (operator.neg, "__neg__"),
    "UNARY_POSITIVE": (operator.pos, "__pos__"),
    "UNARY_INVERT": (operator.invert, "__invert__"),
}

_OBJECTS = (Instance, ObjectValue, TupleValue)


def binary(trace: Trace, symbol: str, left: Value, right: Value) -> Value:
    """`left symbol right`, also in place (`+=`)."""
    plain = symbol if symbol in _NAMES else symbol.removesuffix("=")
    name = _NAMES[plain]
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        if _defines(left, f"__{name}__") or _defines(right, f"__r{name}__"):
            return _special(trace, name, symbol, left, right)
        in_place = isinstance(left, TensorValue)  # `0 += x` makes a new tensor
        return trace.builder.call("call_function", OPERATORS[symbol if in_place else plain], [left, right], {})  # fmt: skip
    if _defines_operator(left, name) or _defines(right, f"__r{name}__"):
        return _special(trace, name, symbol, left, right)
    inner = inside(trace, left), inside(trace, right)
    if inner != (left, right):
        combined = binary(trace, symbol, *inner)
        return left if combined is inner[0] else combined
    rule = _SEQUENCES.get((type(left), name))
    if rule is not None:
        result = rule(trace, symbol, left, right)
        if result is not None:
            return result
    try:
        return fold_numbers(trace, OPERATORS[plain], [left, right])
    except NotConstant:
        raise _not_understood(symbol, left, right) from None


def _not_understood(symbol: str, left: Value, right: Value) -> Break:
    return Break(UNKNOWN_CALL, f"{left.python_type().__name__} {symbol} {right.python_type().__name__}")  # fmt: skip


def _defines(value: Value, name: str) -> bool:
    """Whether a class of the program gives this operator a meaning of its own."""
    from compiler_core.capture.instances import has_python_method

    return isinstance(value, _OBJECTS) and has_python_method(value.python_type(), name)


def _defines_operator(value: Value, name: str) -> bool:
    return _defines(value, f"__{name}__") or _defines(value, f"__i{name}__")


def _special(trace: Trace, name: str, symbol: str, left: Value, right: Value) -> Value:
    tries = [(left, f"__{name}__", right), (right, f"__r{name}__", left)]
    if symbol not in _NAMES and symbol.endswith("="):
        tries.insert(0, (left, f"__i{name}__", right))
    reflected_first = left.python_type() is not right.python_type() and issubclass(right.python_type(), left.python_type())  # fmt: skip
    if reflected_first and _defines(right, f"__r{name}__"):
        tries.reverse()
    for receiver, method, other in tries:
        if _defines(receiver, method):
            result = trace.look(call_special(trace, receiver, method, [other]))
            if not (isinstance(result, Constant) and result.real is NotImplemented):
                return result
    text = f"unsupported operand type(s) for {symbol}: {left.python_type().__name__!r} and {right.python_type().__name__!r}"
    raise raise_real(TypeError(text))


def _concatenate(trace: Trace, symbol: str, left: Any, right: Value) -> Value | None:
    if isinstance(left, ListValue) and symbol == "+=":
        from compiler_core.capture.methods import call_method

        call_method(trace, left, "extend", [right], {})
        return left
    if isinstance(left, ListValue) and isinstance(right, ListValue):
        return ListValue([*left.items, *right.items])
    if isinstance(left, TupleValue) and isinstance(right, TupleValue):
        cls = torch.Size if left.cls is torch.Size and right.cls is torch.Size else tuple
        return TupleValue((*left.items, *right.items), cls)
    name = left.python_type().__name__
    text = f'can only concatenate {name} (not "{right.python_type().__name__}") to {name}'
    raise raise_real(TypeError(text))


def _repeat(trace: Trace, symbol: str, left: Any, right: Value) -> Value | None:
    if not isinstance(right, (Constant, SymbolicNumber)):
        return None
    count = plain_int(trace, right)
    if isinstance(left, TupleValue):
        return TupleValue(left.items * count)
    if symbol == "*=":
        return None
    return ListValue(left.items * count)


def _merge(trace: Trace, symbol: str, left: Any, right: Value) -> Value | None:
    from compiler_core.capture.keys import dict_of, pairs_of
    from compiler_core.capture.methods import call_method

    if symbol == "|=":
        call_method(trace, left, "update", [right], {})
        return left  # type: ignore[no-any-return]
    if not isinstance(right, DictValue):
        return None
    return dict_of([*pairs_of(trace, left), *pairs_of(trace, right)])


def _set_operation(trace: Trace, symbol: str, left: Any, right: Value) -> Value | None:
    if not isinstance(right, SetValue) or (left.outside and symbol not in _NAMES):
        return None
    a, b = left.items, right.items
    kept = {
        "|": {**a, **{k: v for k, v in b.items() if k not in a}},
        "&": {k: v for k, v in a.items() if k in b},
        "-": {k: v for k, v in a.items() if k not in b},
        "^": {**{k: v for k, v in a.items() if k not in b}, **{k: v for k, v in b.items() if k not in a}},
    }[symbol.removesuffix("=")]  # fmt: skip
    if symbol not in _NAMES:
        trace.touch()
        left.items, left.made = kept, _made(symbol, left, right)
        return left  # type: ignore[no-any-return]
    return SetValue(kept, left.cls, made=_made(symbol, left, right))


def _made(symbol: str, left: SetValue, right: SetValue) -> set[Any] | frozenset[Any] | None:
    """The real set that the operator gives for the two real ones, whose order is what matters."""
    if left.made is None or right.made is None:
        return None
    result: set[Any] | frozenset[Any] = _ON_SETS[symbol](left.made, right.made)
    return result


_ON_SETS: dict[str, Callable[[Any, Any], Any]] = {
    "|": operator.or_, "&": operator.and_, "-": operator.sub, "^": operator.xor,
    "|=": operator.ior, "&=": operator.iand, "-=": operator.isub, "^=": operator.ixor,
}  # fmt: skip


_Rule = Callable[["Trace", str, Any, Value], "Value | None"]

_SEQUENCES: dict[tuple[type, str], _Rule] = {
    (ListValue, "add"): _concatenate,
    (TupleValue, "add"): _concatenate,
    (ListValue, "mul"): _repeat,
    (TupleValue, "mul"): _repeat,
    (DictValue, "or"): _merge,
    **{(SetValue, name): _set_operation for name in ("or", "and", "sub", "xor")},
}


def unary(trace: Trace, op: str, value: Value) -> Value:
    """`-value`, `+value`, `~value`."""
    function, special = _UNARY[op]
    if isinstance(value, TensorValue):
        return trace.builder.call("call_function", function, [value], {})
    if _defines(value, special):
        return trace.look(call_special(trace, value, special, []))
    try:
        return fold_numbers(trace, function, [value])
    except NotConstant:
        raise Break(UNKNOWN_CALL, f"{special} of {value.describe()}") from None


def make_slice(trace: Trace, parts: list[Value]) -> Value:
    """`slice(start, stop[, step])`; parts that are not constant stay values."""
    parts = parts if len(parts) == 3 else [*parts, Constant(None)]
    if all(isinstance(part, Constant) for part in parts):
        return Constant(slice(*(part.real for part in parts)))  # type: ignore[attr-defined]
    return TupleValue(tuple(parts), slice)
