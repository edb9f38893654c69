"""`copy.copy` and `copy.deepcopy` of values.

What `copy` does by `__reduce_ex__` for plain classes is done on the model: a new instance whose
attributes are copies. A class that says how it is copied or pickled is a break, unless by
`__deepcopy__` in Python, which is followed.
"""

from __future__ import annotations

import collections
import copy
import enum
import types
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.calls import COPIES
from compiler_core.capture.breaks import Break
from compiler_core.capture.construction import bare_instance
from compiler_core.capture.instances import (
    call_special,
    class_of,
    generic_attribute,
    has_python_method,
)
from compiler_core.capture.items import set_item
from compiler_core.capture.rules import rule, simple
from compiler_core.capture.user_containers import inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import DictValue, ListValue, SetValue, TupleValue
from compiler_core.capture.values.functions import FunctionValue
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

#: objects that are their own copies
_ATOMIC = (type, types.FunctionType, types.BuiltinFunctionType, enum.Enum, torch.finfo, torch.iinfo)
_OWN_WAYS = (
    "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__",
    "__new__",
)  # fmt: skip


@simple(copy.copy)
def _copy(trace: Trace, value: Value) -> Value:
    match value:
        case ListValue():
            return ListValue(list(value.items))
        case DictValue():
            value.look()
            return DictValue(dict(value.items), value.cls, factory=value.factory)
        case SetValue():
            return SetValue(dict(value.items), value.cls)
        case Constant() | TupleValue():
            return value
    raise Break(COPIES, f"copy of {value.describe()}")


@rule(copy.deepcopy)
def _deepcopy(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) != 1 or kwargs:
        raise Break(COPIES, "copy.deepcopy with a memo")
    return _deep(trace, args[0], {})


def _deep(trace: Trace, value: Value, memo: dict[int, Value]) -> Value:
    """A copy; one object that is found twice stays one. `memo`: id of a value -> its copy."""
    value = trace.look(value)
    if id(value) in memo:
        return memo[id(value)]
    match value:
        case Constant() | SymbolicNumber() | FunctionValue():
            return value
        case ObjectValue() if isinstance(value.real, _ATOMIC):
            return value
        case ListValue():
            new = memo[id(value)] = ListValue([])
            new.push(*(_deep(trace, item, memo) for item in value.items))
            return new
        case DictValue():
            return _deep_dict(trace, value, memo)
        case TupleValue() if value.cls in (tuple, torch.Size, slice) and not value.attributes:
            items = tuple(_deep(trace, item, memo) for item in value.items)
            kept = all(a is trace.look(b) for a, b in zip(items, value.items))
            return value if kept else TupleValue(items, value.cls)
        case Instance() | ObjectValue():
            return _deep_object(trace, value, memo)
    raise Break(COPIES, f"deepcopy of {value.describe()}")


def _deep_dict(trace: Trace, value: DictValue, memo: dict[int, Value]) -> DictValue:
    value.look()
    cls = dict if value.cls is types.MappingProxyType else value.cls
    new = DictValue({}, cls, factory=value.factory)
    memo[id(value)] = new
    for key, (shown, item) in list(value.items.items()):
        if not isinstance(trace.look(shown), Constant):
            raise Break(COPIES, f"deepcopy of a dict with {shown.describe()} as a key")
        new.items[key] = shown, _deep(trace, item, memo)
    return new


def _deep_object(trace: Trace, value: Instance | ObjectValue, memo: dict[int, Value]) -> Value:
    cls = value.python_type()
    if has_python_method(cls, "__deepcopy__"):
        return trace.look(call_special(trace, value, "__deepcopy__", [DictValue({})]))
    if any(has_python_method(cls, name) for name in _OWN_WAYS) or _is_refused(value, cls):
        raise Break(COPIES, f"deepcopy of a {cls.__name__}")
    new = bare_instance(trace, class_of(trace, value), [])
    assert isinstance(new, Instance)
    memo[id(value)] = new
    own: Any = trace.look(generic_attribute(trace, value, "__dict__"))
    own.look()
    for name, (_, item) in list(own.items.items()):
        new.attributes[name] = _deep(trace, item, memo)
    _copy_content(trace, inside(trace, value), new, memo)
    return new


def _is_refused(value: Instance | ObjectValue, cls: type) -> bool:
    has_slots = any("__slots__" in vars(base) for base in cls.__mro__[:-1])
    is_exception = isinstance(value, Instance) and value.args is not None
    return has_slots or is_exception or issubclass(cls, (collections.OrderedDict, collections.defaultdict))  # fmt: skip


def _copy_content(trace: Trace, content: Value, new: Instance, memo: dict[int, Value]) -> None:
    """The items of a class derived from dict or list, put in by its own methods."""
    if isinstance(content, DictValue):
        for shown, item in list(_deep_dict(trace, content, memo).items.values()):
            set_item(trace, new, shown, item)
    elif isinstance(content, ListValue) and isinstance(new.content, ListValue):
        if has_python_method(new.cls, "extend") or has_python_method(new.cls, "append"):
            raise Break(COPIES, f"deepcopy of a {new.cls.__name__}")
        new.content.push(*(_deep(trace, item, memo) for item in content.items))
    elif new.content is not None:
        raise Break(COPIES, f"deepcopy of a {new.cls.__name__}")
