"""Methods of list and tuple: one row per method.

Each row is a function of (trace, receiver, *arguments). Rows that write announce the write to the
ledger with the statement that replays it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import NotConstant, payload, plain_int
from compiler_core.capture.iteration import items_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    ListValue,
    TupleValue,
)

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


__all__ = ["LIST", "TUPLE", "Row", "_binary", "sorted_items"]

Row = Callable[..., Value]


def _append(trace: Trace, target: ListValue, value: Value) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.append({r(value)})", (value,))
    target.push(value)
    return NONE


def _extend(trace: Trace, target: ListValue, values: Value) -> Value:
    items = items_of(trace, values)
    new = ListValue(list(items))
    trace.ledger.write(target, lambda r: f"{r(target)}.extend({r(new)})", (new,))
    target.push(*items)
    return NONE


def _insert(trace: Trace, target: ListValue, index: Value, value: Value) -> Value:
    at = plain_int(trace, index)
    trace.ledger.write(target, lambda r: f"{r(target)}.insert({at}, {r(value)})", (value,))
    target.items.insert(at, value)
    return NONE


def _list_pop(trace: Trace, target: ListValue, index: Value | None = None) -> Value:
    at = plain_int(trace, index) if index is not None else -1
    if not target.items:
        raise raise_real(IndexError("pop from empty list"))
    if not -len(target.items) <= at < len(target.items):
        raise raise_real(IndexError("pop index out of range"))
    trace.ledger.write(target, lambda r: f"{r(target)}.pop({at})")
    return target.items.pop(at)


def _list_clear(trace: Trace, target: ListValue) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.clear()")
    target.items.clear()
    return NONE


def _list_copy(trace: Trace, target: ListValue) -> Value:
    return ListValue(list(target.items))


def _place(trace: Trace, target: ListValue | TupleValue, value: Value) -> int:
    """The first index of an equal item, or -1."""
    from compiler_core.capture.comparisons import compare, truth

    value = trace.look(value)
    for index, item in enumerate(target.items):
        item = trace.look(item)
        if item is value or truth(trace, compare(trace, "==", item, value)):
            return index
    return -1


def _index(trace: Trace, target: ListValue | TupleValue, value: Value) -> Value:
    place = _place(trace, target, value)
    if place < 0:
        raise raise_real(ValueError(f"{trace.look(value).describe()} is not in list"))
    return Constant(place)


def _count(trace: Trace, target: ListValue | TupleValue, value: Value) -> Value:
    from compiler_core.capture.comparisons import compare, truth

    wanted = trace.look(value)
    return Constant(sum(truth(trace, compare(trace, "==", trace.look(item), wanted)) for item in target.items))  # fmt: skip


def _list_remove(trace: Trace, target: ListValue, value: Value) -> Value:
    place = _place(trace, target, value)
    if place < 0:
        raise raise_real(ValueError("list.remove(x): x not in list"))
    trace.ledger.write(target, lambda r: f"del {r(target)}[{place}]")
    del target.items[place]
    return NONE


def _reverse(trace: Trace, target: ListValue) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.reverse()")
    target.items.reverse()
    return NONE


def sorted_items(
    trace: Trace, items: list[Value], key: Value | None = None, reverse: Value | None = None
) -> list[Value]:
    """The items in order; keys must be constant. Raises Break."""
    from compiler_core.capture.calls import call
    from compiler_core.capture.comparisons import truth

    has_key = key is not None and not (isinstance(trace.look(key), Constant))
    keys = [call(trace, trace.look(key), [item], {}) for item in items] if has_key else items  # type: ignore[arg-type]
    try:
        real = [payload(trace, k) for k in keys]
    except NotConstant as missing:
        raise Break(UNKNOWN_CALL, f"sorting by {missing}") from None
    descending = reverse is not None and truth(trace, reverse)
    try:
        order = sorted(range(len(items)), key=real.__getitem__, reverse=descending)
    except TypeError as error:
        raise raise_real(error) from None
    return [items[place] for place in order]


def _sort(
    trace: Trace, target: ListValue, *, key: Value | None = None, reverse: Value | None = None
) -> Value:
    items = sorted_items(trace, list(target.items), key, reverse)
    new = ListValue(items)
    trace.ledger.write(target, lambda r: f"{r(target)}[:] = {r(new)}", (new,))
    target.items[:] = items
    return NONE


LIST: dict[str, Row] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _list_pop,
    "clear": _list_clear,
    "copy": _list_copy,
    "index": _index,
    "count": _count,
    "remove": _list_remove,
    "reverse": _reverse,
    "sort": _sort,
    "__add__": lambda trace, a, b: _binary(trace, "+", a, b),
    "__iadd__": lambda trace, a, b: _binary(trace, "+=", a, b),
    "__mul__": lambda trace, a, b: _binary(trace, "*", a, b),
    "__eq__": lambda trace, a, b: _compare(trace, "==", a, b),
}


def _binary(trace: Trace, symbol: str, left: Value, right: Value) -> Value:
    from compiler_core.capture.operators import binary

    return binary(trace, symbol, left, trace.look(right))


def _compare(trace: Trace, symbol: str, left: Value, right: Value) -> Value:
    from compiler_core.capture.comparisons import compare

    return compare(trace, symbol, left, trace.look(right))


def _numel(trace: Trace, target: TupleValue) -> Value:
    """torch.Size.numel"""
    from compiler_core.capture.operators import binary

    result: Value = Constant(1)
    for item in target.items:
        result = binary(trace, "*", result, trace.look(item))
    return result


TUPLE: dict[str, Row] = {
    "index": _index,
    "count": _count,
    "numel": _numel,
    "__add__": lambda trace, a, b: _binary(trace, "+", a, b),
    "__mul__": lambda trace, a, b: _binary(trace, "*", a, b),
    "__eq__": lambda trace, a, b: _compare(trace, "==", a, b),
}
