"""Builtins over containers and iterators: making them, walking them, reducing them; one row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture import in_python
from compiler_core.capture.breaks import (
    UNKNOWN_CALL,
    Break,
    Raised,
    raise_real,
)
from compiler_core.capture.folding import NotConstant, fold_numbers, plain_int
from compiler_core.capture.iteration import items_of, iterator_of, length, next_item
from compiler_core.capture.keys import as_key, dict_of
from compiler_core.capture.set_methods import members
from compiler_core.capture.symbolic_floats import is_symbolic_float
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    DictValue,
    ListValue,
    SetValue,
    TupleValue,
    keyed,
)
from compiler_core.capture.values.iterators import (
    EnumerateIterator,
    MapIterator,
    SequenceIterator,
    ZipIterator,
)
from compiler_core.capture.values.objects import ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

from compiler_core.capture.rules import RULES, rule, simple

__all__ = []


@simple(list)
def _list(trace: Trace, values: Value | None = None) -> Value:
    return ListValue(list(items_of(trace, values)) if values is not None else [])


@simple(tuple)
def _tuple(trace: Trace, values: Value | None = None) -> Value:
    if isinstance(values, TupleValue) and values.cls is tuple:
        return values
    return TupleValue(tuple(items_of(trace, values)) if values is not None else ())


@rule(tuple.__new__)
def _tuple_new(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls = trace.look(args[0])
    assert isinstance(cls, ObjectValue)
    items = items_of(trace, args[1]) if len(args) > 1 else []
    return TupleValue(tuple(items), cls.real)


@rule(object.__new__)
def _object_new(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.construction import bare_instance

    return bare_instance(trace, trace.look(args[0]), [])


@rule(dict)
def _dict(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.dict_methods import DICT

    result = DictValue({})
    DICT["update"](trace, result, *args, **kwargs)
    return result


def _set_rule(cls: type) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        items = [trace.look(item) for item in items_of(trace, args[0])] if args else []
        for item in items:
            as_key(item)
        given = members(trace.look(args[0]), items) if args else ()
        return SetValue(keyed(items), cls, made=None if given is None else cls(given))

    RULES[cls] = called


_set_rule(set)

_set_rule(frozenset)


@rule(dict.fromkeys)
def _fromkeys(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[1] if len(args) > 1 else NONE
    return dict_of((trace.look(key), value) for key in items_of(trace, args[0]))


@simple(len)
def _len(trace: Trace, value: Value) -> Value:
    return length(trace, value)


@rule(sorted)
def _sorted(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.container_methods import sorted_items

    items = items_of(trace, args[0])
    return ListValue(sorted_items(trace, items, kwargs.get("key"), kwargs.get("reverse")))


@simple(iter)
def _iter(trace: Trace, *args: Value) -> Value:
    if len(args) != 1:
        from compiler_core.capture.library_calls import follow

        return follow(trace, in_python.until, list(args), {})
    return iterator_of(trace, args[0])


@simple(next)
def _next(trace: Trace, iterator: Value, *default: Value) -> Value:
    try:
        return next_item(trace, iterator)
    except Raised as raised:
        if default and issubclass(raised.value.cls, StopIteration):
            return default[0]
        raise


@rule(enumerate)
def _enumerate(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    start = args[1] if len(args) > 1 else kwargs.get("start", Constant(0))
    return EnumerateIterator(iterator_of(trace, args[0]), plain_int(trace, start))


@rule(zip)
def _zip(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.comparisons import truth

    strict = "strict" in kwargs and truth(trace, kwargs["strict"])
    return ZipIterator([iterator_of(trace, arg) for arg in args], strict)


@simple(map)
def _map(trace: Trace, function: Value, *parts: Value) -> Value:
    return MapIterator(function, [iterator_of(trace, part) for part in parts])


@simple(filter)
def _filter(trace: Trace, function: Value, part: Value) -> Value:
    return MapIterator(function, [iterator_of(trace, part)], is_filter=True)


@simple(reversed)
def _reversed(trace: Trace, value: Value) -> Value:
    from compiler_core.capture.instances import call_special, has_python_method

    if has_python_method(value.python_type(), "__reversed__"):
        return call_special(trace, value, "__reversed__", [])
    if isinstance(value, ListValue):
        return SequenceIterator(value, reverse=True)
    if has_python_method(value.python_type(), "__getitem__"):
        from compiler_core.capture.items import get_item

        count = plain_int(trace, length(trace, value))
        items = [get_item(trace, value, Constant(i)) for i in range(count)]
        return SequenceIterator(value, items=items, reverse=True)
    return SequenceIterator(value, items=items_of(trace, value), reverse=True)


@rule(sum)
def _sum(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.operators import binary

    total = trace.look(args[1] if len(args) > 1 else kwargs.get("start", Constant(0)))
    for item in items_of(trace, args[0]):
        total = trace.look(binary(trace, "+", total, trace.look(item)))
    return total


def _extreme(function: Callable[..., Any], symbol: str) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        from compiler_core.capture.comparisons import compare, truth

        values = items_of(trace, args[0]) if len(args) == 1 else args
        key = kwargs.get("key")
        if not values:
            if "default" in kwargs:
                return kwargs["default"]
            raise raise_real(ValueError(f"{function.__name__}() arg is an empty sequence"))
        looked = [trace.look(value) for value in values]
        if any(isinstance(value, SymbolicNumber) for value in looked) and key is None and not any(map(is_symbolic_float, looked)):  # fmt: skip
            return _symbolic_extreme(trace, function, looked)
        keys = _keys(trace, looked, key)
        best = 0
        for place in range(1, len(looked)):
            if truth(trace, compare(trace, symbol, keys[place], keys[best])):
                best = place
        return looked[best]

    RULES[function] = called


def _keys(trace: Trace, values: list[Value], key: Value | None) -> list[Value]:
    from compiler_core.capture.calls import call

    if key is None or (isinstance(trace.look(key), Constant)):
        return values
    return [trace.look(call(trace, key, [value], {})) for value in values]


def _symbolic_extreme(trace: Trace, function: Callable[..., Any], values: list[Value]) -> Value:
    symbolic = torch.sym_max if function is max else torch.sym_min
    try:
        result = values[0]
        for value in values[1:]:
            result = fold_numbers(trace, symbolic, [result, value])
    except NotConstant:
        raise Break(UNKNOWN_CALL, f"{function.__name__} of symbolic sizes") from None
    return result


_extreme(min, "<")

_extreme(max, ">")


@simple(any)
def _any(trace: Trace, values: Value) -> Value:
    return Constant(_search(trace, values, True))


@simple(all)
def _all(trace: Trace, values: Value) -> Value:
    return Constant(not _search(trace, values, False))


def _search(trace: Trace, values: Value, wanted: bool) -> bool:
    """Whether an item with this truth comes up; the iterator stands behind it then."""
    from compiler_core.capture.comparisons import truth

    iterator = iterator_of(trace, values)
    while True:
        try:
            item = next_item(trace, iterator)
        except Raised as raised:
            if issubclass(raised.value.cls, StopIteration):
                return False
            raise
        if truth(trace, item) == wanted:
            return True
