"""Instances of classes derived from dict, list or set: the builtin container inside of them.

In: an object, made in the trace or from outside. Out: its *content*, a model of the builtin kind that
holds the items. Methods that the class overrides are looked up first, by whoever asks; what the
builtin base does is done to the content.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import ATTRIBUTE, UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.instances import has_python_method
from compiler_core.capture.sources import Source, is_literal
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import NONE, Constant, is_constant
from compiler_core.capture.values.containers import DictValue, DictView, ListValue, SetValue
from compiler_core.capture.values.objects import Instance, ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["builtin_method", "container_base", "dict_of_instance", "inside", "new_content"]

_BASES: tuple[type, ...] = (collections.OrderedDict, collections.defaultdict, dict, list, set)
# What a method of OrderedDict does through the items' own methods, so that overriding them counts.
_THROUGH_ITEMS = frozenset(("update", "setdefault", "pop", "popitem", "copy", "move_to_end"))
_ITEM_METHODS = ("__setitem__", "__getitem__", "__delitem__", "__contains__", "__iter__", "__len__")


def container_base(cls: type) -> type | None:
    """The builtin container that a class of the program derives from."""
    if cls in _BASES:
        return None
    return next((base for base in _BASES if issubclass(cls, base)), None)


def new_content(cls: type) -> Value | None:
    """What `cls.__new__` puts inside of a new instance; None for other classes."""
    base = container_base(cls)
    if base is None:
        return None
    if issubclass(base, dict):
        return DictValue({}, base)
    return ListValue([]) if base is list else SetValue({}, made=set())


def inside(trace: Trace, value: Value) -> Value:
    """The builtin container inside of an instance; any other value as it is. Raises Break."""
    if isinstance(value, Instance):
        return value.content or value
    if not isinstance(value, ObjectValue):
        return value
    if value.content is None and container_base(type(value.real)) is not None:
        value.content = _outside(trace, value)
    return value.content or value


def _outside(trace: Trace, value: ObjectValue) -> Value:
    """The items of an object from outside, to be read only."""
    if isinstance(value.real, dict):
        return _outside_dict(trace, value)
    if isinstance(value.real, list):
        return _outside_list(trace, value)
    raise Break(UNKNOWN_CALL, f"the members of a {type(value.real).__name__}")


def _outside_dict(trace: Trace, value: ObjectValue) -> DictValue:
    real, source = value.real, value.source
    items: dict[Any, tuple[Value, Value]] = {}
    keys = source.own_keys() if source else None
    for index, key in enumerate(dict.keys(real)):
        where = keys.dict_key(index) if keys else None
        key_value = Constant(key) if is_constant(key) else _part(key, where)
        name = key if is_literal(key) else where
        items[key] = key_value, _part(dict.__getitem__(real, key), _item(source, "dict_item", name))
    content = DictValue(items, container_base(type(real)) or dict, outside=True, read_only=True)
    content.source = keys
    names = list(dict.keys(real))
    content.on_structure = lambda: trace.guard("keys", keys, names, "its keys or order are used")
    if isinstance(real, collections.defaultdict):
        factory = source.attr("default_factory") if source else None
        content.factory = _part(real.default_factory, factory)
    return content


def _outside_list(trace: Trace, value: ObjectValue) -> ListValue:
    cls, source = type(value.real), value.source
    if any(has_python_method(cls, name) for name in ("__len__", "__iter__")):
        raise Break(UNKNOWN_CALL, f"the items of a {cls.__name__}")
    items = [
        _part(x, _item(source, "list_item", i)) for i, x in enumerate(list.__iter__(value.real))
    ]
    content = ListValue(list[Value](items), outside=True)
    reason = "its items are used one by one"
    content.on_structure = lambda: trace.guard("length", source, value.real, reason)
    return content


def _item(source: Source | None, kind: str, name: Any) -> Source | None:
    return Source(kind, name, source) if source is not None else None


def _part(real: Any, source: Source | None) -> Lazy:
    return Lazy(real, source=source, trusted=source is None)


# ------------------------------------------------------------------------------ methods of the base


def builtin_method(
    trace: Trace, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`dict.update(owner, …)` and its like: a method of the builtin base. Raises Break, Raised."""
    from compiler_core.capture.methods import call_method

    content, cls = inside(trace, owner), owner.python_type()
    if name == "__init__":
        return _init(trace, owner, content, args, kwargs)
    if issubclass(cls, collections.OrderedDict) and name in _THROUGH_ITEMS:
        if name in ("update", "copy") or any(has_python_method(cls, m) for m in _ITEM_METHODS):
            return _through_items(trace, owner, name, args, kwargs)
    elif name == "copy" and issubclass(cls, collections.defaultdict):
        raise Break(UNKNOWN_CALL, f"copy of a {cls.__name__}")
    result = call_method(trace, content, name, args, kwargs)
    if isinstance(result, DictView):
        result.owner = owner
    return owner if result is content else result


def _init(
    trace: Trace, owner: Value, content: Value, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`dict.__init__`, `list.__init__`: filled from the arguments."""
    from compiler_core.capture.methods import call_method

    if isinstance(content, DictValue):
        if content.cls is collections.defaultdict and args:
            content.factory, args = trace.look(args[0]), args[1:]
        if content.cls is collections.OrderedDict:
            return _through_items(trace, owner, "update", args, kwargs)
        return call_method(trace, content, "update", args, kwargs)
    call_method(trace, content, "clear", [], {})
    name = "extend" if isinstance(content, ListValue) else "update"
    return call_method(trace, content, name, args, kwargs) if args else NONE


def _through_items(
    trace: Trace, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    from compiler_core.capture.dict_methods import pairs_for_update
    from compiler_core.capture.items import set_item

    if name != "update":
        raise Break(UNKNOWN_CALL, f"{owner.python_type().__name__}.{name}")
    for key, value in pairs_for_update(trace, args, kwargs):
        set_item(trace, owner, key, value)
    return NONE


# ------------------------------------------------------------------------------ __dict__


class _AttributeItems(MutableMapping[Any, tuple[Value, Value]]):
    """The attributes of an instance in the form of a dict's items: one store, seen in two ways."""

    def __init__(self, instance: Instance):
        self.instance = instance

    def __getitem__(self, key: Any) -> tuple[Value, Value]:
        return Constant(key), self.instance.attributes[key]

    def __setitem__(self, key: Any, pair: tuple[Value, Value]) -> None:
        self.instance.attributes[key] = pair[1]

    def __delitem__(self, key: Any) -> None:
        del self.instance.attributes[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.instance.attributes)

    def __len__(self) -> int:
        return len(self.instance.attributes)


def dict_of_instance(value: Instance) -> Value:
    """`instance.__dict__`, live. Raises Raised(AttributeError) or Break where there is none."""
    if value.cls.__dictoffset__ == 0:
        raise raise_real(
            AttributeError(f"{value.cls.__name__!r} object has no attribute '__dict__'")
        )
    if value.args is not None or any("__slots__" in vars(base) for base in value.cls.__mro__[:-1]):
        raise Break(ATTRIBUTE, f"__dict__ of a {value.cls.__name__}")
    if value.dict_value is None:
        items: Any = _AttributeItems(value)
        value.dict_value = DictValue(items, owner=value)
    return value.dict_value
