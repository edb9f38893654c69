"""Methods of set and frozenset: one row per method, as in `container_methods.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import raise_real
from compiler_core.capture.iteration import items_of
from compiler_core.capture.keys import as_key
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    DictValue,
    SetValue,
)

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

from compiler_core.capture.container_methods import Row, _binary

__all__ = ["SET", "members"]


def _add(trace: Trace, target: SetValue, value: Value) -> Value:
    value = trace.look(value)
    key = as_key(value)
    if key not in target.items:
        trace.ledger.write(target, lambda r: f"{r(target)}.add({r(value)})", (value,))
        target.items[key] = value
        if (made := target.changes()) is not None:
            made.add(key)
    return NONE


def _discard(trace: Trace, target: SetValue, value: Value) -> Value:
    key = as_key(trace.look(value))
    if key in target.items:
        trace.ledger.write(target, lambda r: f"{r(target)}.discard({r(value)})", (value,))
        del target.items[key]
        if (made := target.changes()) is not None:
            made.discard(key)
    return NONE


def _set_remove(trace: Trace, target: SetValue, value: Value) -> Value:
    if as_key(trace.look(value)) not in target.items:
        raise raise_real(KeyError(as_key(trace.look(value))))
    return _discard(trace, target, value)


def _set_update(trace: Trace, target: SetValue, *others: Value) -> Value:
    for other in others:
        items = [trace.look(item) for item in items_of(trace, other)]
        made, given = target.changes(), members(trace.look(other), items)
        for item in items:
            target.made = None
            _add(trace, target, item)
        if made is not None and given is not None:
            made.update(given)
            target.made = made
    return NONE


def members(other: Value, items: Iterable[Value]) -> Iterable[Any] | None:
    """What `set(other)` is given: sets and dicts are merged as a whole, the rest one by one.

    items: those of `other`, which may be an iterator that gives them once.
    """
    if isinstance(other, SetValue):
        return other.made
    keys = [as_key(item) for item in items]
    return dict.fromkeys(keys) if isinstance(other, DictValue) else keys


def _set_clear(trace: Trace, target: SetValue) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.clear()")
    target.items.clear()
    target.made = set()
    return NONE


def _combined(symbol: str) -> Row:
    def row(trace: Trace, target: SetValue, *others: Value) -> Value:
        made = None if target.made is None or others else target.made.copy()
        result: Value = SetValue(dict(target.items), target.cls, made=made)
        for other in others:
            items = {as_key(trace.look(i)): trace.look(i) for i in items_of(trace, other)}
            result = _binary(trace, symbol, result, SetValue(dict(items), target.cls))
        return result

    return row


def _issubset(trace: Trace, target: SetValue, other: Value) -> Value:
    keys = {as_key(trace.look(item)) for item in items_of(trace, other)}
    return Constant(target.items.keys() <= keys)


def _issuperset(trace: Trace, target: SetValue, other: Value) -> Value:
    keys = {as_key(trace.look(item)) for item in items_of(trace, other)}
    return Constant(target.items.keys() >= keys)


SET: dict[str, Row] = {
    "add": _add,
    "discard": _discard,
    "remove": _set_remove,
    "update": _set_update,
    "clear": _set_clear,
    "copy": _combined("|"),
    "union": _combined("|"),
    "intersection": _combined("&"),
    "difference": _combined("-"),
    "symmetric_difference": _combined("^"),
    "issubset": _issubset,
    "issuperset": _issuperset,
}
