"""Methods of list, tuple, dict and set: one row per method.

Each row is a function of (trace, receiver, *arguments). Rows that write announce the write to the
ledger with the statement that replays it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import NotConstant, payload, plain_int
from compiler_core.capture.iteration import items_of
from compiler_core.capture.keys import as_key, pairs_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
)

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["DICT", "LIST", "SET", "TUPLE", "sorted_items"]

Row = Callable[..., Value]

# ------------------------------------------------------------------------------ list


def _append(trace: Trace, target: ListValue, value: Value) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.append({r(value)})", (value,))
    target.items.append(value)
    return NONE


def _extend(trace: Trace, target: ListValue, values: Value) -> Value:
    items = items_of(trace, values)
    new = ListValue(list(items))
    trace.ledger.write(target, lambda r: f"{r(target)}.extend({r(new)})", (new,))
    target.items.extend(items)
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
    from compiler_core.capture.operators import compare, truth

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
    from compiler_core.capture.operators import compare, truth

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
    from compiler_core.capture.operators import truth

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
    from compiler_core.capture.operators import compare

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

# ------------------------------------------------------------------------------ dict


def _view(kind: str) -> Row:
    return lambda trace, target: DictView(target, kind)


def _get(trace: Trace, target: DictValue, key: Value, default: Value = NONE) -> Value:
    from compiler_core.capture.operators import contains

    key = trace.look(key)
    return target.items[as_key(key)][1] if contains(trace, target, key) else default


def _dict_pop(trace: Trace, target: DictValue, key: Value, *default: Value) -> Value:
    hashed = as_key(trace.look(key))
    if hashed not in target.items:
        target.look()
        if default:
            return default[0]
        raise raise_real(KeyError(hashed))
    trace.ledger.write(target, lambda r: f"del {r(target)}[{r(key)}]", (key,))
    return target.items.pop(hashed)[1]


def _popitem(trace: Trace, target: DictValue, last: Value | None = None) -> Value:
    if last is not None:
        raise Break(UNKNOWN_CALL, "OrderedDict.popitem(last)")
    target.look()
    if not target.items:
        raise raise_real(KeyError("popitem(): dictionary is empty"))
    trace.ledger.write(target, lambda r: f"{r(target)}.popitem()")
    return TupleValue(target.items.popitem()[1])


def _setdefault(trace: Trace, target: DictValue, key: Value, default: Value = NONE) -> Value:
    from compiler_core.capture.items import set_item

    hashed = as_key(trace.look(key))
    if hashed not in target.items:
        set_item(trace, target, key, default)
    return target.items[hashed][1]


def _update(trace: Trace, target: DictValue, *others: Value, **named: Value) -> Value:
    from compiler_core.capture.items import set_item

    pairs = [pair for other in others for pair in _pairs(trace, other)]
    pairs += [(Constant(name), value) for name, value in named.items()]
    for key, value in pairs:
        set_item(trace, target, key, value)
    return NONE


def _pairs(trace: Trace, other: Value) -> list[tuple[Value, Value]]:
    """Pairs of a mapping, or of an iterable of pairs."""
    other = trace.look(other)
    if isinstance(other, DictValue) or hasattr(other.python_type(), "keys"):
        return pairs_of(trace, other)
    found = []
    for item in items_of(trace, other):
        key, value = items_of(trace, item)
        found.append((trace.look(key), value))
    return found


def _dict_clear(trace: Trace, target: DictValue) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.clear()")
    target.items.clear()
    return NONE


def _dict_copy(trace: Trace, target: DictValue) -> Value:
    target.look()
    return DictValue(dict(target.items), target.cls, factory=target.factory)


def _move_to_end(trace: Trace, target: DictValue, key: Value, last: Value = NONE) -> Value:
    hashed = as_key(trace.look(key))
    if last is not NONE:
        raise Break(UNKNOWN_CALL, "move_to_end(last)")
    if hashed not in target.items:
        raise raise_real(KeyError(hashed))
    trace.ledger.write(target, lambda r: f"{r(target)}.move_to_end({r(key)})", (key,))
    target.items[hashed] = target.items.pop(hashed)
    return NONE


DICT: dict[str, Row] = {
    "keys": _view("keys"),
    "values": _view("values"),
    "items": _view("items"),
    "get": _get,
    "pop": _dict_pop,
    "popitem": _popitem,
    "setdefault": _setdefault,
    "update": _update,
    "clear": _dict_clear,
    "copy": _dict_copy,
    "move_to_end": _move_to_end,
}

# ------------------------------------------------------------------------------ set


def _add(trace: Trace, target: SetValue, value: Value) -> Value:
    value = trace.look(value)
    key = as_key(value)
    if key not in target.items:
        trace.ledger.write(target, lambda r: f"{r(target)}.add({r(value)})", (value,))
        target.items[key] = value
    return NONE


def _discard(trace: Trace, target: SetValue, value: Value) -> Value:
    key = as_key(trace.look(value))
    if key in target.items:
        trace.ledger.write(target, lambda r: f"{r(target)}.discard({r(value)})", (value,))
        del target.items[key]
    return NONE


def _set_remove(trace: Trace, target: SetValue, value: Value) -> Value:
    if as_key(trace.look(value)) not in target.items:
        raise raise_real(KeyError(as_key(trace.look(value))))
    return _discard(trace, target, value)


def _set_update(trace: Trace, target: SetValue, *others: Value) -> Value:
    for other in others:
        for item in items_of(trace, other):
            _add(trace, target, item)
    return NONE


def _set_clear(trace: Trace, target: SetValue) -> Value:
    trace.ledger.write(target, lambda r: f"{r(target)}.clear()")
    target.items.clear()
    return NONE


def _combined(symbol: str) -> Row:
    def row(trace: Trace, target: SetValue, *others: Value) -> Value:
        result: Value = SetValue(dict(target.items), target.cls)
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
