"""Keys of dicts and members of sets, and the pairs of a mapping."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from compiler_core.capture.breaks import UNHASHABLE, Break, raise_real
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.containers import (
    DictValue,
    ListValue,
    SetValue,
    UnhashableKey,
    key_of,
)

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["as_key", "dict_of", "pairs_of", "put"]


def as_key(value: Value) -> Hashable:
    """The key that a value is. Raises Break, or Raised(TypeError) for what Python cannot hash."""
    try:
        return key_of(value)
    except UnhashableKey as error:
        if isinstance(value, (ListValue, DictValue)) or (
            isinstance(value, SetValue) and value.cls is set
        ):
            name = value.python_type().__name__
            raise raise_real(TypeError(f"unhashable type: {name!r}")) from None
        raise Break(UNHASHABLE, str(error)) from None


def dict_of(pairs: Iterable[tuple[Value, Value]], cls: type = dict) -> DictValue:
    """A new dict; a later value of an equal key wins, the first key stays."""
    result = DictValue({}, cls)
    for key, value in pairs:
        put(result, key, value)
    return result


def put(target: DictValue, key: Value, value: Value) -> None:
    """`target[key] = value` on the model alone."""
    hashed = as_key(key)
    known = target.items.get(hashed)
    target.items[hashed] = (known[0] if known else key, value)


def pairs_of(trace: Trace, mapping: Value) -> list[tuple[Value, Value]]:
    """Keys and values of a mapping, for `**mapping` and `dict(mapping)`."""
    from compiler_core.capture.attributes import get_attribute
    from compiler_core.capture.calls import call
    from compiler_core.capture.instances import has_python_method
    from compiler_core.capture.items import get_item
    from compiler_core.capture.iteration import items_of
    from compiler_core.capture.user_containers import inside

    mapping = trace.look(mapping)
    if not has_python_method(mapping.python_type(), "__iter__"):
        content = inside(
            trace, mapping
        )  # CPython asks an OrderedDict of another class by its methods
        is_asked = content is not mapping and issubclass(mapping.python_type(), OrderedDict)
        mapping = mapping if is_asked else content
    if isinstance(mapping, DictValue):
        mapping.look()
        return [(trace.look(key), value) for key, value in mapping.items.values()]
    keys = items_of(trace, call(trace, get_attribute(trace, mapping, "keys"), [], {}))
    looked = [trace.look(key) for key in keys]
    return [(key, get_item(trace, mapping, key)) for key in looked]
