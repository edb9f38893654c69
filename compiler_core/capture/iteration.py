"""Iterating: iterators of values, one item at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.breaks import ITERATION, TOO_DEEP, Break, Raised, raise_real
from compiler_core.capture.folding import plain_int
from compiler_core.capture.instances import call_special, has_python_method
from compiler_core.capture.user_containers import inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant, is_none
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
)
from compiler_core.capture.values.iterators import (
    Chained,
    CountIterator,
    EnumerateIterator,
    GeneratorValue,
    MapIterator,
    SequenceIterator,
    ZipIterator,
)
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


__all__ = ["ITERATORS", "items_of", "iterator_of", "length", "next_item", "stop", "unpack"]

ITERATORS = (
    SequenceIterator, ZipIterator, EnumerateIterator, MapIterator, CountIterator, Chained, GeneratorValue,
)  # fmt: skip

_LIMIT = 100_000


def stop(value: Value | None = None) -> Raised:
    """StopIteration, as the traced program sees it."""
    return Raised(Instance(StopIteration, args=(value,) if value is not None else ()))


def iterator_of(trace: Trace, value: Value) -> Value:
    """`iter(value)`. Raises Raised(TypeError), Break."""
    value = trace.look(value)
    if isinstance(value, ITERATORS):
        return value
    if has_python_method(value.python_type(), "__iter__"):
        return trace.look(call_special(trace, value, "__iter__", []))
    value = inside(trace, value)
    if isinstance(value, (ListValue, TupleValue)):
        return SequenceIterator(value)
    items = _snapshot(trace, value)
    if items is not None:
        return SequenceIterator(value, items=items)
    if isinstance(value, ObjectValue) and hasattr(value.python_type(), "__next__"):
        return value
    if not hasattr(value.python_type(), "__iter__") and not hasattr(value.python_type(), "__getitem__"):  # fmt: skip
        raise raise_real(TypeError(f"{value.python_type().__name__!r} object is not iterable"))
    raise Break(ITERATION, value.describe())


def _snapshot(trace: Trace, value: Value) -> list[Value] | None:
    """The items of what is iterated as it is now; None for other values."""
    match value:
        case Constant() if isinstance(value.real, (str, bytes, range)):
            if len(value.real) > _LIMIT:
                raise Break(TOO_DEEP, f"a loop over {len(value.real)} items")
            return [Constant(item) for item in value.real]
        case DictValue():
            value.look()
            return [key for key, _ in value.items.values()]
        case DictView():
            return _view_items(value)
        case SetValue():
            return _in_order(value)
        case TensorValue():
            return _rows(trace, value)
        case ObjectValue() if isinstance(value.real, type):
            return _members(value)
    return None


def _in_order(value: SetValue) -> list[Value]:
    ordered = value.in_order()
    if ordered is None:
        raise Break(ITERATION, "the order of a set that was changed or combined while tracing")
    return ordered


def _view_items(view: DictView) -> list[Value]:
    view.of.look()
    pairs = view.of.items.values()
    if view.kind == "keys":
        return [key for key, _ in pairs]
    if view.kind == "values":
        return [item for _, item in pairs]
    return [TupleValue(pair) for pair in pairs]


def _rows(trace: Trace, value: TensorValue) -> list[Value]:
    """`for row in tensor`: what `Tensor.__iter__` does is unbind."""
    if value.fake.dim() == 0:
        raise raise_real(TypeError("iteration over a 0-d tensor"))
    rows = trace.builder.call("call_method", "unbind", [value, Constant(0)], {})
    assert isinstance(rows, TupleValue)
    return list(rows.items)


def _members(value: ObjectValue) -> list[Value]:
    import enum

    from compiler_core.capture.resolve import constant_value

    if not issubclass(value.real, enum.Enum):
        raise raise_real(TypeError(f"{type(value.real).__name__!r} object is not iterable"))
    return [constant_value(member) for member in value.real]


def next_item(trace: Trace, iterator: Value) -> Value:
    """`next(iterator)`. Raises Raised(StopIteration) at the end, Break."""
    iterator = trace.look(iterator)
    trace.touch()
    step = _NEXT.get(type(iterator))
    if step is not None:
        return step(trace, iterator)
    if has_python_method(iterator.python_type(), "__next__"):
        return call_special(trace, iterator, "__next__", [])
    trace.changes -= 1
    if not hasattr(iterator.python_type(), "__next__"):
        raise raise_real(TypeError(f"{iterator.python_type().__name__!r} object is not an iterator"))  # fmt: skip
    raise Break(ITERATION, f"{iterator.python_type().__name__} {iterator.describe()}")


def _next_of_sequence(trace: Trace, it: Any) -> Value:
    items = it.items if it.items is not None else it.of.items
    position = len(items) - 1 - it.position if it.reverse else it.position
    if it.outside:
        trace.ledger.advance(it)
    if it.done or not 0 <= position < len(items):
        it.done = True
        raise stop()
    it.position += 1
    it.taken += 1
    return items[position]  # type: ignore[no-any-return]


def _next_of_zip(trace: Trace, it: Any) -> Value:
    taken: list[Value] = []
    for index, part in enumerate(it.parts):
        try:
            taken.append(next_item(trace, part))
        except Raised as raised:
            if it.strict and index and issubclass(raised.value.cls, StopIteration):
                text = f"zip() argument {index + 1} is shorter than argument {index}"
                raise raise_real(ValueError(text)) from None
            raise
    if not taken:
        raise stop()
    return TupleValue(tuple(taken))


def _next_of_enumerate(trace: Trace, it: Any) -> Value:
    item = next_item(trace, it.part)
    it.count += 1
    return TupleValue((Constant(it.count - 1), item))


def _next_of_map(trace: Trace, it: Any) -> Value:
    from compiler_core.capture.calls import call
    from compiler_core.capture.comparisons import truth

    while True:
        items = [next_item(trace, part) for part in it.parts]
        if not it.is_filter:
            return call(trace, trace.look(it.function), items, {})
        function = trace.look(it.function)
        keeps = items[0] if is_none(function) else call(trace, function, items, {})
        if truth(trace, keeps):
            return items[0]


def _next_of_count(trace: Trace, it: Any) -> Value:
    from compiler_core.capture.operators import binary

    if it.left is not None:
        if it.left <= 0:
            raise stop()
        it.left -= 1
    current = it.start
    if it.step is not None:
        it.start = binary(trace, "+", trace.look(it.start), trace.look(it.step))
    return current  # type: ignore[no-any-return]


def _next_of_chain(trace: Trace, it: Any) -> Value:
    while it.parts:
        it.parts[0] = iterator_of(trace, it.parts[0])
        try:
            return next_item(trace, it.parts[0])
        except Raised as raised:
            if not issubclass(raised.value.cls, StopIteration):
                raise
            it.parts.pop(0)
    raise stop()


def _next_of_generator(trace: Trace, it: Any) -> Value:
    from compiler_core.capture.generators import resume

    return resume(trace, it, NONE)


_NEXT: dict[type, Callable[[Any, Any], Value]] = {
    SequenceIterator: _next_of_sequence,
    ZipIterator: _next_of_zip,
    EnumerateIterator: _next_of_enumerate,
    MapIterator: _next_of_map,
    CountIterator: _next_of_count,
    Chained: _next_of_chain,
    GeneratorValue: _next_of_generator,
}


def items_of(trace: Trace, value: Value) -> list[Value]:
    """`list(value)` as a Python list of values."""
    value = trace.look(value)
    if isinstance(value, (ListValue, TupleValue)) and not has_python_method(value.python_type(), "__iter__"):  # fmt: skip
        return list(value.items)
    iterator, items = iterator_of(trace, value), list[Value]()
    while True:
        try:
            items.append(next_item(trace, iterator))
        except Raised as raised:
            if issubclass(raised.value.cls, StopIteration):
                return items
            raise
        if len(items) > _LIMIT:
            raise Break(TOO_DEEP, f"an iterator with more than {_LIMIT} items")


def unpack(trace: Trace, value: Value, count: int) -> list[Value]:
    """The items of `a, b, c = value`. Raises Raised(ValueError)."""
    if isinstance(value, TensorValue) and value.fake.dim() and isinstance(value.fake.shape[0], torch.SymInt):  # fmt: skip
        int(value.fake.shape[0])
    items = items_of(trace, value)
    if len(items) > count:
        raise raise_real(ValueError(f"too many values to unpack (expected {count})"))
    if len(items) < count:
        text = f"not enough values to unpack (expected {count}, got {len(items)})"
        raise raise_real(ValueError(text))
    return items


def length(trace: Trace, value: Value) -> Value:
    """`len(value)`."""
    from compiler_core.capture.graph_builder import number_value

    value = trace.look(value)
    if has_python_method(value.python_type(), "__len__"):
        return Constant(plain_int(trace, call_special(trace, value, "__len__", [])))
    value = inside(trace, value)
    match value:
        case ListValue() | TupleValue() | SetValue():
            return Constant(len(value.items))
        case DictValue():
            value.look()
            return Constant(len(value.items))
        case DictView():
            value.of.look()
            return Constant(len(value.of.items))
        case Constant() if hasattr(value.real, "__len__"):
            return Constant(len(value.real))
        case TensorValue():
            if value.fake.dim() == 0:
                raise raise_real(TypeError("len() of a 0-d tensor"))
            return number_value(value.fake.shape[0])
        case ObjectValue() if isinstance(value.real, type):
            return Constant(len(value.real))  # type: ignore[arg-type]
    if not hasattr(value.python_type(), "__len__"):
        name = value.python_type().__name__
        raise raise_real(TypeError(f"object of type {name!r} has no len()"))
    raise Break(ITERATION, f"len of {value.describe()}")
