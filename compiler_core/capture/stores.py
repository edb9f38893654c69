"""Writing and deleting attributes.

Objects made in the trace are changed in their model; for outside objects the write goes to the
ledger. Properties and `__setattr__` of the program are followed; torch.nn.Module's own is known.
"""

from __future__ import annotations

import abc
import types
from typing import TYPE_CHECKING

import torch

from compiler_core.capture.break_kinds.autograd import AUTOGRAD, REQUIRES_GRAD, STORAGE_SWAP
from compiler_core.capture.break_kinds.objects import CLASS_WRITTEN, MODULE_CHANGED, TENSOR_WRITTEN
from compiler_core.capture.breaks import SIDE_EFFECT, Break, raise_real
from compiler_core.capture.instances import (
    EXCEPTION_FIELDS,
    MISSING,
    absent,
    call_special,
    class_lookup,
    class_source,
    dict_of_object,
    has_python_method,
    note_in_dict,
    own_attribute,
)
from compiler_core.capture.resolve import is_library
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import DictValue, TupleValue
from compiler_core.capture.values.functions import Cell, FunctionValue
from compiler_core.capture.values.objects import Instance, ObjectValue, SuperValue
from compiler_core.capture.values.tensor import TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["delete_attribute", "store_attribute", "store_plain"]


_TENSOR_FIELDS = {"grad": AUTOGRAD, "requires_grad": REQUIRES_GRAD, "data": STORAGE_SWAP}


def store_attribute(trace: Trace, target: Value, name: str, value: Value) -> None:
    """`target.name = value`. Raises Break, Raised."""
    target = trace.look(target)
    if isinstance(target, TensorValue):
        raise Break(_TENSOR_FIELDS.get(name, TENSOR_WRITTEN), f"tensor.{name} is set")
    if isinstance(target, Cell) and name == "cell_contents":
        return trace.ledger.store_cell(target, value)
    if isinstance(target, FunctionValue):
        trace.touch()
        target.attributes[name] = value
        return None
    if not isinstance(target, (Instance, ObjectValue, TupleValue)):
        raise Break(SIDE_EFFECT, f"{target.describe()}.{name} is set")
    if isinstance(target, ObjectValue) and isinstance(target.real, (types.ModuleType, type)):
        return _store_on_module(trace, target, name, value)
    setter, owner, _ = class_lookup(target.python_type(), "__setattr__")
    if isinstance(setter, types.FunctionType) and owner is not torch.nn.Module:
        call_special(trace, target, "__setattr__", [Constant(name), value])
        return None
    if owner is torch.nn.Module:
        return _store_on_nn_module(trace, target, name, value)
    return store_plain(trace, target, name, value)


def store_plain(trace: Trace, target: Value, name: str, value: Value) -> None:
    """`object.__setattr__(target, name, value)`."""
    from compiler_core.capture.calls import call

    target = trace.look(target)
    cls = target.python_type()
    found, _, _ = class_lookup(cls, name)
    if isinstance(found, property):
        if found.fset is None:
            raise raise_real(AttributeError(f"property {name!r} of {cls.__name__!r} object has no setter"))  # fmt: skip
        base = class_source(trace, target)
        source = base.attr(name).attr("fset") if base is not None else None
        setter = Lazy(found.fset, source=source, trusted=source is None)
        call(trace, trace.look(setter), [target, value], {})
        return
    is_slot = isinstance(found, types.MemberDescriptorType) or name in EXCEPTION_FIELDS
    if found is not MISSING and hasattr(type(found), "__set__") and not is_slot:
        raise Break(SIDE_EFFECT, f"{cls.__name__}.{name} is a {type(found).__name__}")
    if isinstance(target, (Instance, TupleValue)):
        if not is_slot and not cls.__dictoffset__:
            raise absent(f"{cls.__name__!r} object has no attribute {name!r}", target, name)
        trace.touch()
        target.attributes[name] = value
        if name == "__cause__":  # as CPython's setter does
            target.attributes["__suppress_context__"] = Constant(True)
        return
    assert isinstance(target, ObjectValue)
    if not is_slot and not hasattr(target.real, "__dict__"):
        raise Break(SIDE_EFFECT, f"{cls.__name__} has no __dict__")
    _note_in_known_dict(trace, target, name, value)
    trace.ledger.store_attribute(target, name, value, has_python_method(cls, "__setattr__"))


def _note_in_known_dict(trace: Trace, target: ObjectValue, name: str, value: Value | None) -> None:
    """A dict that the program has seen as `obj.__dict__` shows the write."""
    known = trace.known.get(id(dict_of_object(target.real)))
    if isinstance(known, DictValue) and not _is_slot(target.python_type(), name):
        trace.touch()
        note_in_dict(known, name, value)


def _is_slot(cls: type, name: str) -> bool:
    return isinstance(class_lookup(cls, name)[0], types.MemberDescriptorType)


def _store_on_module(trace: Trace, target: ObjectValue, name: str, value: Value) -> None:
    if isinstance(target.real, type):
        return _store_on_class(trace, target, name, value)
    if target.real.__class__ is not types.ModuleType:
        raise Break(SIDE_EFFECT, f"{target.describe()}.{name} is set")
    return trace.ledger.store_attribute(target, name, value)


#: their fields are no attributes that a class holds, or are looked up by other rules than Python's
_NO_PLAIN_CLASSES = (tuple, torch.Tensor, torch.autograd.Function)


def _store_on_class(trace: Trace, target: ObjectValue, name: str, value: Value) -> None:
    """A plain attribute of a class of the program: what binds, or makes a protocol, breaks."""
    cls, looked = target.real, trace.look(value)
    found, _, _ = class_lookup(cls, name)
    binds = hasattr(looked.python_type(), "__get__") or hasattr(type(found), "__get__")
    is_plain = type(cls) in (type, abc.ABCMeta) and not issubclass(cls, _NO_PLAIN_CLASSES)
    is_named = target.source is not None and not name.startswith(("__", "_abc_"))
    is_seen = any(isinstance(real, types.MappingProxyType) for real in trace.keep)
    if binds or is_seen or is_library(cls) or not is_plain or not is_named:
        raise Break(CLASS_WRITTEN, f" {target.describe()}.{name} is set")
    trace.ledger.store_attribute(target, name, looked)


def _store_on_nn_module(trace: Trace, target: Value, name: str, value: Value) -> None:
    """Plain attributes and buffers of an outside module. Parameters and children break."""
    looked = trace.look(value)
    if not isinstance(target, ObjectValue):
        return _store_on_new_module(trace, target, name, looked)
    stores = target.real.__dict__
    is_special = issubclass(looked.python_type(), (torch.nn.Parameter, torch.nn.Module))
    if is_special or name in stores["_parameters"] or name in stores["_modules"]:
        raise Break(MODULE_CHANGED, f"{name!r} is set")
    found, _, _ = class_lookup(target.python_type(), name)
    if isinstance(found, property):
        return store_plain(trace, target, name, value)
    if name in stores["_buffers"] and not issubclass(looked.python_type(), (torch.Tensor, type(None))):  # fmt: skip
        raise Break(SIDE_EFFECT, f"buffer {name!r} is set to something that is no tensor")
    if name not in stores["_buffers"]:
        _note_in_known_dict(trace, target, name, value)
    return trace.ledger.store_attribute(target, name, value)


def _store_on_new_module(trace: Trace, target: Value, name: str, value: Value) -> None:
    """On a module that the trace made: what is no part of it is stored like on any object."""
    if issubclass(value.python_type(), (torch.Tensor, torch.nn.Module)):
        call_special(trace, target, "__setattr__", [Constant(name), value])
        return
    assert isinstance(target, Instance)
    for store in ("_parameters", "_buffers", "_modules"):
        known = target.attributes.get(store)
        if isinstance(known, DictValue) and name in known.items:
            raise Break(SIDE_EFFECT, f"{name} of a module is replaced")
    store_plain(trace, target, name, value)


def delete_attribute(trace: Trace, target: Value, name: str) -> None:
    """`del target.name`."""
    target = trace.look(target)
    if isinstance(target, SuperValue) or not isinstance(target, (Instance, ObjectValue)):
        raise Break(SIDE_EFFECT, f"{target.describe()}.{name} is deleted")
    if isinstance(target, ObjectValue) and isinstance(target.real, type):
        raise Break(CLASS_WRITTEN, f" {target.describe()}.{name} is deleted")
    deleter, owner, _ = class_lookup(target.python_type(), "__delattr__")
    if isinstance(deleter, types.FunctionType):
        raise Break(SIDE_EFFECT, f"{owner.__name__} has its own __delattr__")
    if own_attribute(trace, target, name) is None:
        raise raise_real(AttributeError(name))
    trace.touch()
    if isinstance(target, Instance):
        del target.attributes[name]
    else:
        _note_in_known_dict(trace, target, name, None)
        trace.ledger.delete_attribute(target, name)
