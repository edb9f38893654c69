"""`container[key]`: reading, writing, deleting."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from compiler_core.capture.break_kinds.values import TENSOR_INDEX
from compiler_core.capture.breaks import SIDE_EFFECT, UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import fold_or_break, plain_int
from compiler_core.capture.instances import call_special, has_python_method
from compiler_core.capture.keys import as_key, put
from compiler_core.capture.user_containers import inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant, is_none
from compiler_core.capture.values.containers import DictValue, ListValue, TupleValue
from compiler_core.capture.values.objects import ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["delete_item", "get_item", "index_of", "set_item"]


def get_item(trace: Trace, container: Value, key: Value) -> Value:
    """`container[key]`. Raises Raised(KeyError, IndexError, TypeError), Break."""
    container, key = trace.look(container), trace.look(key)
    match container:
        case TensorValue():
            return trace.builder.call("call_function", operator.getitem, [container, key], {})
        case DictValue():
            return _dict_item(trace, container, key)
        case ListValue() | TupleValue():
            if not has_python_method(container.python_type(), "__getitem__"):
                return _sequence_item(trace, container, key)
        case Constant():
            return fold_or_break(trace, operator.getitem, [container, key])
        case ObjectValue() if isinstance(container.real, type):
            return _class_item(trace, container, key)
    if has_python_method(container.python_type(), "__getitem__"):
        return call_special(trace, container, "__getitem__", [key])
    content = inside(trace, container)
    if content is container:
        raise Break(UNKNOWN_CALL, f"{container.python_type().__name__}[…]")
    if _is_missing(trace, container, content, key):
        return call_special(trace, container, "__missing__", [key])
    return get_item(trace, content, key)


def _is_missing(trace: Trace, container: Value, content: Value, key: Value) -> bool:
    """Whether `__missing__` of a class derived from dict gives the item."""
    from compiler_core.capture.comparisons import contains

    own = isinstance(content, DictValue) and has_python_method(container.python_type(), "__missing__")  # fmt: skip
    return own and not contains(trace, content, key)


def _class_item(trace: Trace, container: ObjectValue, key: Value) -> Value:
    """`list[int]`, `Color["RED"]`."""
    import enum

    from compiler_core.capture.resolve import constant_value

    if issubclass(container.real, enum.Enum):
        return fold_or_break(trace, operator.getitem, [container, key])
    if isinstance(key, ObjectValue) and isinstance(key.real, type):
        return constant_value(container.real[key.real])
    raise Break(UNKNOWN_CALL, f"{container.describe()}[…]")


def _dict_item(trace: Trace, container: DictValue, key: Value) -> Value:
    hashed = as_key(key)
    if hashed in container.items:
        return container.items[hashed][1]
    container.look()
    if container.factory is not None and not is_none(trace.look(container.factory)):
        return _default_item(trace, container, key)
    raise raise_real(KeyError(hashed))


def _default_item(trace: Trace, container: DictValue, key: Value) -> Value:
    from compiler_core.capture.calls import call

    assert container.factory is not None
    value = call(trace, trace.look(container.factory), [], {})
    set_item(trace, container, key, value)
    return value


def index_of(trace: Trace, key: Value) -> Any:
    """A real index or slice from a key. Raises Raised(TypeError), Break."""
    match key:
        case Constant() if isinstance(key.real, (int, slice)):
            return key.real
        case SymbolicNumber():
            return plain_int(trace, key)
        case TupleValue() if key.cls is slice:
            parts = [None if is_none(trace.look(p)) else plain_int(trace, p) for p in key.items]
            return slice(*parts)
        case TensorValue():
            raise Break(TENSOR_INDEX)
        case ObjectValue() if has_python_method(key.python_type(), "__index__"):
            return index_of(trace, trace.look(call_special(trace, key, "__index__", [])))
    name = key.python_type().__name__
    raise raise_real(TypeError(f"list indices must be integers or slices, not {name}"))


def _sequence_item(trace: Trace, container: ListValue | TupleValue, key: Value) -> Value:
    index = index_of(trace, key)
    try:
        found: Any = container.items[index]
    except IndexError:
        name = container.python_type().__name__
        raise raise_real(IndexError(f"{name} index out of range")) from None
    if not isinstance(index, slice):
        return found  # type: ignore[no-any-return]
    if isinstance(container, ListValue):
        return ListValue(list(found))
    import torch

    return TupleValue(tuple(found), torch.Size if container.cls is torch.Size else tuple)


def set_item(trace: Trace, container: Value, key: Value, value: Value) -> None:
    """`container[key] = value`."""
    container, key = trace.look(container), trace.look(key)
    match container:
        case TensorValue():
            trace.builder.call("call_function", operator.setitem, [container, key, value], {})
        case DictValue():
            place = ("item", as_key(key))
            trace.ledger.write(container, lambda r: f"{r(container)}[{r(key)}] = {r(value)}", (key, value), place)  # fmt: skip
            put(container, key, value)
        case ListValue():
            _set_sequence_item(trace, container, key, value)
        case TupleValue() if not has_python_method(container.cls, "__setitem__"):
            name = container.cls.__name__
            raise raise_real(TypeError(f"{name!r} object does not support item assignment"))
        case _:
            if has_python_method(container.python_type(), "__setitem__"):
                call_special(trace, container, "__setitem__", [key, value])
                return
            set_item(trace, _content(trace, container, "[…] = …"), key, value)


def _content(trace: Trace, container: Value, what: str) -> Value:
    """The items inside of an object, for a change of them. Raises Break for other values."""
    content = inside(trace, container)
    if content is container:
        raise Break(SIDE_EFFECT, f"{container.python_type().__name__} {what}")
    return content


def _set_sequence_item(trace: Trace, container: ListValue, key: Value, value: Value) -> None:
    from compiler_core.capture.iteration import items_of

    index = index_of(trace, key)
    if isinstance(index, slice):
        items = items_of(trace, trace.look(value))
        new = ListValue(list(items))
        trace.ledger.write(container, lambda r: f"{r(container)}[{r(key)}] = {r(new)}", (key, new))
        try:
            container.items[index] = items
        except ValueError as error:
            raise raise_real(error) from None
        return
    if not -len(container.items) <= index < len(container.items):
        raise raise_real(IndexError("list assignment index out of range"))
    trace.ledger.write(container, lambda r: f"{r(container)}[{index}] = {r(value)}", (value,))
    container.items[index] = value


def delete_item(trace: Trace, container: Value, key: Value) -> None:
    """`del container[key]`."""
    match container:
        case DictValue():
            hashed = as_key(key)
            if hashed not in container.items:
                container.look()
                raise raise_real(KeyError(hashed))
            trace.ledger.write(container, lambda r: f"del {r(container)}[{r(key)}]", (key,))
            del container.items[hashed]
        case ListValue():
            index = index_of(trace, key)
            trace.ledger.write(container, lambda r: f"del {r(container)}[{r(key)}]", (key,))
            try:
                del container.items[index]
            except IndexError:
                raise raise_real(IndexError("list assignment index out of range")) from None
        case _:
            if has_python_method(container.python_type(), "__delitem__"):
                call_special(trace, container, "__delitem__", [key])
                return
            delete_item(trace, _content(trace, container, "[…] is deleted"), key)
