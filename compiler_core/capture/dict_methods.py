"""Methods of dict, OrderedDict and defaultdict: one row per method, as in `container_methods.py`."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.iteration import items_of
from compiler_core.capture.keys import as_key, pairs_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    TupleValue,
)

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

from compiler_core.capture.container_methods import Row

__all__ = ["DICT", "pairs_for_update"]

_LAST = Constant(True)  # an OrderedDict gives and moves at its end, unless told otherwise


def _view(kind: str) -> Row:
    return lambda trace, target: DictView(target, kind)


def _get(trace: Trace, target: DictValue, key: Value, default: Value = NONE) -> Value:
    from compiler_core.capture.comparisons import contains

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


def _popitem(trace: Trace, target: DictValue, last: Value = _LAST) -> Value:
    from compiler_core.capture.comparisons import truth

    is_ordered = target.cls is collections.OrderedDict
    if not is_ordered and last is not _LAST:
        raise Break(UNKNOWN_CALL, f"{target.cls.__name__}.popitem(last)")
    target.look()
    if not target.items:
        raise raise_real(KeyError(f"{'' if is_ordered else 'popitem(): '}dictionary is empty"))
    from_end = truth(trace, last)
    argument = "" if from_end else "last=False"
    trace.ledger.write(target, lambda r: f"{r(target)}.popitem({argument})")
    key = next(reversed(target.items) if from_end else iter(target.items))
    return TupleValue(target.items.pop(key))


def _setdefault(trace: Trace, target: DictValue, key: Value, default: Value = NONE) -> Value:
    from compiler_core.capture.items import set_item

    hashed = as_key(trace.look(key))
    if hashed not in target.items:
        set_item(trace, target, key, default)
    return target.items[hashed][1]


def _update(trace: Trace, target: DictValue, *others: Value, **named: Value) -> Value:
    from compiler_core.capture.items import set_item

    for key, value in pairs_for_update(trace, others, named):
        set_item(trace, target, key, value)
    return NONE


def pairs_for_update(
    trace: Trace, others: Sequence[Value], named: dict[str, Value]
) -> list[tuple[Value, Value]]:
    """What `update(*others, **named)` stores."""
    pairs = [pair for other in others for pair in _pairs(trace, other)]
    return [*pairs, *((Constant(name), value) for name, value in named.items())]


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


def _move_to_end(trace: Trace, target: DictValue, key: Value, last: Value = _LAST) -> Value:
    from compiler_core.capture.comparisons import truth

    hashed, to_end = as_key(trace.look(key)), truth(trace, last)
    target.look()
    if hashed not in target.items:
        raise raise_real(KeyError(hashed))
    trace.ledger.write(target, lambda r: f"{r(target)}.move_to_end({r(key)}, {to_end})", (key,))
    moved = {hashed: target.items.pop(hashed)}
    rest = dict(target.items)
    target.items.clear()
    target.items.update({**rest, **moved} if to_end else {**moved, **rest})
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
