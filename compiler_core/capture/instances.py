"""Python's attribute protocol for objects, classes and super(): descriptors, instance, class, fallback.

In: a value and a name. Out: the attribute's value, with sources under which it is found again. The
order is CPython's (`object.__getattribute__`): data descriptor of the class, instance, class, then
`__getattr__`. Modules of torch.nn keep parameters, buffers and children in dicts of their own.
"""

from __future__ import annotations

import enum
import functools
import types
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.objects import DESCRIPTOR
from compiler_core.capture.breaks import ATTRIBUTE, Break, Raised, raise_real
from compiler_core.capture.resolve import CACHED_FUNCTION, constant_value, is_library
from compiler_core.capture.rules import find_rule
from compiler_core.capture.sources import Source
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import DictValue, TupleValue
from compiler_core.capture.values.functions import BoundRule, MethodValue
from compiler_core.capture.values.objects import Instance, ObjectValue, SuperValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = [
    "EXCEPTION_FIELDS",
    "MISSING",
    "absent",
    "call_special",
    "class_lookup",
    "class_source",
    "generic_attribute",
    "has_python_method",
    "instance_attribute",
    "is_instance",
    "missing_attribute",
    "note_in_dict",
    "super_attribute",
    "type_attribute",
    "written_on_class",
]  # fmt: skip

MISSING = object()
EXCEPTION_FIELDS = ("__cause__", "__context__", "__traceback__", "__suppress_context__")
#: what an exception holds when nothing was stored
_DEFAULTS = {
    "__cause__": None, "__context__": None, "__traceback__": None, "__suppress_context__": False, "name": None, "obj": None,
}  # fmt: skip
_ENUM_FIELDS = ("value", "name", "_value_", "_name_")
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_BUILTIN_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)  # fmt: skip


def class_lookup(cls: type, name: str, after: type | None = None) -> tuple[Any, type, int]:
    """(attribute as stored, class that stores it, its place in the MRO), or MISSING."""
    mro = cls.__mro__
    start = mro.index(after) + 1 if after is not None else 0
    for place in range(start, len(mro)):
        if name in mro[place].__dict__:
            return mro[place].__dict__[name], mro[place], place
    return MISSING, cls, -1


def written_on_class(trace: Trace, cls: type, name: str, after: type | None = None) -> Value | None:
    """What the trace wrote to the class that gives an attribute; None if that one holds its own."""
    mro = cls.__mro__
    start = mro.index(after) + 1 if after is not None else 0
    for holder in mro[start:]:
        written = trace.ledger.on_class(holder, name)
        if written is not None or name in holder.__dict__:
            return written
    return None


def has_python_method(cls: type, name: str) -> bool:
    """Whether a class gives a method in Python that is to be followed; tensors have rules instead."""
    if issubclass(cls, torch.Tensor):
        return False
    return isinstance(class_lookup(cls, name)[0], types.FunctionType)


def class_source(trace: Trace, value: Value) -> Source | None:
    """Where the class of an instance is found again."""
    if value.source is not None:
        return value.source.type_of()
    known = trace.known.get(id(value.python_type()))
    return known.source if known is not None else None


def missing_attribute(value: Value, name: str) -> Exception:
    text = f"{value.python_type().__name__!r} object has no attribute {name!r}"
    return absent(text, value, name)


def absent(text: str, value: Value, name: str) -> Exception:
    """AttributeError, with what it is about."""
    raised = raise_real(AttributeError(text))
    raised.value.attributes.update(name=Constant(name), obj=value)
    return raised


# ------------------------------------------------------------------------------ instances


def instance_attribute(trace: Trace, value: Value, name: str) -> Value:
    """An attribute of an object, real or made in the trace. Raises Raised(AttributeError), Break."""
    cls = value.python_type()
    has_fallback = class_lookup(cls, "__getattr__")[0] is not MISSING
    try:
        if has_python_method(cls, "__getattribute__"):
            return call_special(trace, value, "__getattribute__", [Constant(name)])
        return generic_attribute(trace, value, name)
    except Raised as raised:
        if not has_fallback or not issubclass(raised.value.cls, AttributeError):
            raise
    return _fallback(trace, value, name)


def generic_attribute(trace: Trace, value: Value, name: str) -> Value:
    """`object.__getattribute__(value, name)`. Raises Raised(AttributeError), Break."""
    cls = value.python_type()
    if name == "__class__":
        return class_of(trace, value)
    if (
        isinstance(value, ObjectValue)
        and isinstance(value.real, enum.Enum)
        and name in _ENUM_FIELDS
    ):
        return Lazy(getattr(value.real, name), trusted=True)
    found, owner, _ = class_lookup(cls, name)
    written = written_on_class(trace, cls, name)
    if written is None and _is_data_descriptor(found) and not isinstance(found, _SLOTS):
        return bind(trace, value, found, owner, name)
    own = own_attribute(trace, value, name)
    if own is not None:
        return own
    if written is not None:
        return written
    if found is not MISSING:
        return bind(trace, value, found, owner, name)
    raise missing_attribute(value, name)


def class_of(trace: Trace, value: Value) -> Value:
    """`type(value)`."""
    cls = value.python_type()
    known = trace.known.get(id(cls))
    if known is not None:
        return known
    source = value.source.type_of() if value.source is not None else None
    return trace.look(Lazy(cls, source=source, trusted=True))


def _is_data_descriptor(found: Any) -> bool:
    return found is not MISSING and hasattr(type(found), "__set__")


def own_attribute(trace: Trace, value: Value, name: str) -> Value | None:
    """What the instance itself holds: written in the trace, in its dict, in a slot, in a module's stores."""
    written = trace.ledger.attribute(value, name)
    if written is not None:
        return written
    if isinstance(value, Instance) and name == "__dict__":
        from compiler_core.capture.user_containers import dict_of_instance

        return dict_of_instance(value)
    if isinstance(value, (Instance, TupleValue)):
        return value.attributes.get(name)
    if not isinstance(value, ObjectValue) or trace.ledger.is_deleted(value, name):
        return None
    source = _own_source(value, name)
    trusted = value.source is None
    own = dict_of_object(value.real)
    if name == "__dict__":
        return _dict_of(trace, value)
    if name in own:
        return Lazy(own[name], source=source, trusted=trusted)
    if isinstance(class_lookup(type(value.real), name)[0], _SLOTS):
        try:
            real = object.__getattribute__(value.real, name)
        except AttributeError:
            return None
        return Lazy(real, source=source, trusted=trusted)
    return None


def _own_source(value: Value, name: str) -> Source | None:
    """Where an attribute of the instance is found again, whatever `__getattribute__` makes of it."""
    if value.source is None:
        return None
    hides = has_python_method(value.python_type(), "__getattribute__")
    return value.source.own_attr(name) if hides else value.source.attr(name)


def dict_of_object(real: Any) -> dict[str, Any]:
    """`real.__dict__`, without running code of its class; empty for an object that has none."""
    try:
        own = object.__getattribute__(real, "__dict__")
    except AttributeError:
        return {}
    return own if isinstance(own, dict) else {}


def _dict_of(trace: Trace, value: ObjectValue) -> Value:
    """`obj.__dict__`, to be read only, with what the trace wrote to the object."""
    source = _own_source(value, "__dict__")
    result = trace.look(Lazy(dict_of_object(value.real), source=source, trusted=source is None))
    assert isinstance(result, DictValue)
    if not result.read_only:
        result.read_only = True
        for name, written in trace.ledger.attributes_of(value).items():
            note_in_dict(result, name, written)
    return result


def note_in_dict(known: DictValue, name: str, value: Value | None) -> None:
    """Show a write to an object, or (None) a deletion, in the model of its `__dict__`."""
    known.look()  # the keys from now on are no longer those of the real dict
    if value is None:
        known.items.pop(name, None)
    elif name in known.items:
        known.items[name] = known.items[name][0], value
    else:
        known.items[name] = Constant(name), value


_MODULE_STORES = ("_parameters", "_buffers", "_modules")


def _fallback(trace: Trace, value: Value, name: str) -> Value:
    """`__getattr__`, of torch.nn.Module or of the program."""
    cls = value.python_type()
    getter, owner, _ = class_lookup(cls, "__getattr__")
    if owner is torch.nn.Module and isinstance(value, ObjectValue):
        return _module_attribute(trace, value, name)
    if isinstance(getter, types.FunctionType):
        return call_special(trace, value, "__getattr__", [Constant(name)])
    raise Break(ATTRIBUTE, f"{cls.__name__}.{name}")


def _module_attribute(trace: Trace, value: ObjectValue, name: str) -> Value:
    for store in _MODULE_STORES:
        real = value.real.__dict__.get(store, {})
        known = trace.known.get(id(real))
        if known is not None and trace.ledger.is_written(known):
            if isinstance(known, DictValue) and name in known.items:
                return known.items[name][1]
        elif name in real:
            source = value.source.attr(name) if value.source else None
            return Lazy(real[name], source=source, trusted=source is None)
    raise missing_attribute(value, name)


# ------------------------------------------------------------------------------ binding


def bind(trace: Trace, value: Value, found: Any, owner: type, name: str) -> Value:
    """What an attribute that the class stores gives for this instance."""
    source = class_source(trace, value)
    return _bind(trace, value, found, owner, name, source.attr(name) if source else None)


def _bind(
    trace: Trace, value: Value, found: Any, owner: type, name: str, stored: Source | None
) -> Value:
    trusted = stored is None or is_library(owner)
    own_source = _own_source(value, name)
    if isinstance(found, (types.FunctionType, CACHED_FUNCTION)):
        _guard_not_hidden(trace, value, name)
        function = Lazy(found, source=stored, trusted=trusted)
        return MethodValue(function, value, source=own_source)
    if isinstance(found, staticmethod):
        return Lazy(found.__func__, source=stored, trusted=trusted)
    if isinstance(found, classmethod):
        function = Lazy(found.__func__, source=stored and stored.attr("__func__"), trusted=trusted)
        return MethodValue(function, class_of(trace, value), source=own_source)
    if isinstance(found, property):
        return _get_property(trace, value, found, stored, trusted)
    if isinstance(found, _BUILTIN_METHODS):
        return BoundRule(value, name, source=own_source)
    if isinstance(found, _SLOTS):
        return _slot(value, name)
    if type(found).__name__ == "_tuplegetter" and isinstance(value, TupleValue):
        place: int = found.__reduce__()[1][0]
        return value.items[place]
    if type(found) is functools.cached_property and found.attrname == name:
        return _cache_property(trace, value, found, stored, trusted)
    if hasattr(type(found), "__get__"):
        raise Break(DESCRIPTOR, f"{type(found).__name__} {name}")
    return Lazy(found, source=own_source or stored, trusted=trusted and own_source is None)


def _slot(value: Value, name: str) -> Value:
    if isinstance(value, (Instance, TupleValue)):
        if name == "args" and isinstance(value, Instance) and value.args is not None:
            return TupleValue(value.args)
        if isinstance(value, Instance) and name == "__context__" and name not in value.attributes:
            raise Break(ATTRIBUTE, f"{name} of an exception")  # whoever calls may be handling one
        if isinstance(value, Instance) and name in _DEFAULTS:
            return value.attributes.get(name) or Constant(_DEFAULTS[name])
        if name == "value" and isinstance(value, Instance) and issubclass(value.cls, StopIteration):
            return value.args[0] if value.args else Constant(None)
    raise missing_attribute(value, name)


def _get_property(
    trace: Trace, value: Value, found: property, stored: Source | None, trusted: bool
) -> Value:
    from compiler_core.capture.calls import call

    if found.fget is None:
        raise raise_real(AttributeError("unreadable attribute"))
    getter = Lazy(found.fget, source=stored and stored.attr("fget"), trusted=trusted)
    return call(trace, trace.look(getter), [value], {})


def _cache_property(
    trace: Trace, value: Value, found: Any, stored: Source | None, trusted: bool
) -> Value:
    """The first look at a cached property: what it gives is written into the object."""
    from compiler_core.capture.calls import call
    from compiler_core.capture.stores import store_plain

    if not isinstance(value, (Instance, ObjectValue)) or not value.python_type().__dictoffset__:
        raise Break(DESCRIPTOR, f"cached_property {found.attrname}")
    _guard_not_hidden(trace, value, found.attrname)
    getter = Lazy(found.func, source=stored and stored.attr("func"), trusted=trusted)
    result = call(trace, trace.look(getter), [value], {})
    store_plain(trace, value, found.attrname, result)
    return result


def _guard_not_hidden(trace: Trace, value: Value, name: str) -> None:
    """A method of the class is what is called as long as the instance does not shadow it."""
    if trace.ledger.decides(value, name):
        return
    if isinstance(value, ObjectValue) and hasattr(value.real, "__dict__"):
        trace.guard("lacks_attr", value.source, value.real, "the class's method is called", name=name)  # fmt: skip


# ------------------------------------------------------------------------------ classes, super


def type_attribute(trace: Trace, value: ObjectValue, name: str) -> Value:
    """An attribute of a class."""
    cls = value.real
    written = written_on_class(trace, cls, name)
    if written is not None:
        return written
    found, owner, _ = class_lookup(cls, name)
    source = value.source.attr(name) if value.source else None
    trusted = source is None or is_library(owner)
    if isinstance(found, classmethod):
        function = Lazy(found.__func__, source=source and source.attr("__func__"), trusted=trusted)
        return MethodValue(function, value, source=source)
    has_rule = cls is dict and name == "fromkeys"
    if isinstance(found, types.ClassMethodDescriptorType) and not has_rule and find_rule(found) is None:  # fmt: skip
        return BoundRule(value, name, source=source)
    if isinstance(found, staticmethod):
        return Lazy(found.__func__, source=source, trusted=trusted)
    if isinstance(found, (property, types.FunctionType)):
        return Lazy(found, source=source, trusted=trusted)
    if name == "__class__":
        return constant_value(type(cls))
    meta = class_lookup(type(cls), name)[0]
    if isinstance(meta, types.FunctionType):
        return MethodValue(Lazy(meta, trusted=True), value, source=source)
    try:
        return Lazy(getattr(cls, name), source=source, trusted=trusted)
    except AttributeError as error:
        raise raise_real(error) from None


def super_attribute(trace: Trace, value: SuperValue, name: str) -> Value:
    """An attribute found behind a class in the MRO."""
    written = written_on_class(trace, value.start, name, value.after)
    if written is not None:
        return written
    found, owner, place = class_lookup(value.start, name, value.after)
    if found is MISSING:
        text = f"'super' object has no attribute {name!r}"
        raise raise_real(AttributeError(text))
    of_class = isinstance(value.bound, ObjectValue) and value.start is value.bound.real
    base = value.bound.source if of_class else class_source(trace, value.bound)
    stored = base.attr("__mro__").item(place).attr("__dict__").item(name) if base else None
    if of_class:  # `super(A, cls)`; a class under its metaclass is an object like any other
        if isinstance(found, classmethod):
            inner = Lazy(found.__func__, source=stored and stored.attr("__func__"), trusted=is_library(owner) or stored is None)  # fmt: skip
            return MethodValue(inner, value.bound)
        if isinstance(found, staticmethod) and name == "__new__":
            return Lazy(found.__func__, trusted=True)
        return Lazy(found, source=stored, trusted=stored is None or is_library(owner))
    bound = _bind(trace, value.bound, found, owner, name, stored)
    if isinstance(bound, (MethodValue, BoundRule)):
        bound.source = None  # `self.name` would find the overriding method
    if isinstance(bound, BoundRule):
        return BoundRule(value, name)
    return bound


# ------------------------------------------------------------------------------ special methods


def call_special(trace: Trace, value: Value, name: str, args: list[Value]) -> Value:
    """`type(value).name(value, *args)`, as operators call it. Raises Raised(TypeError) without one."""
    from compiler_core.capture.calls import call

    found, owner, _ = class_lookup(value.python_type(), name)
    if found is MISSING or found is None:
        text = f"{value.python_type().__name__!r} object has no {name}"
        raise raise_real(TypeError(text))
    return call(trace, bind(trace, value, found, owner, name), args, {})


def is_instance(trace: Trace, value: Value, classes: Value) -> bool:
    """isinstance(value, classes)."""
    from compiler_core.capture.class_checks import instance_check

    return instance_check(trace, value, classes)
