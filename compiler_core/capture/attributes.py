"""Reading attributes: one getter per kind of value.

In: a value and a name. Out: the attribute's value. Raises Raised(AttributeError) where Python would.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import ATTRIBUTE, Break, Raised, raise_real
from compiler_core.capture.instances import (
    class_lookup,
    class_of,
    instance_attribute,
    missing_attribute,
    super_attribute,
    type_attribute,
)
from compiler_core.capture.resolve import constant_value, is_library
from compiler_core.capture.sources import module
from compiler_core.capture.tensor_attributes import tensor_attribute
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
)
from compiler_core.capture.values.functions import (
    BoundRule,
    Cell,
    FunctionValue,
    GradMode,
    MethodValue,
    Partial,
)
from compiler_core.capture.values.objects import Instance, ObjectValue, SuperValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["get_attribute", "has_attribute"]


def get_attribute(trace: Trace, value: Value, name: str) -> Value:
    """`value.name`. Raises Raised(AttributeError), Break."""
    value = trace.look(value)
    if isinstance(value, ObjectValue):
        if isinstance(value.real, type):
            return type_attribute(trace, value, name)
        if isinstance(value.real, types.ModuleType):
            return _module_member(trace, value, name)
        return instance_attribute(trace, value, name)
    getter = _GETTERS.get(type(value), _model_attribute)
    return getter(trace, value, name)


def has_attribute(trace: Trace, value: Value, name: str) -> bool:
    """hasattr(value, name); the absence of an attribute of an outside object is guarded."""
    value = trace.look(value)
    try:
        get_attribute(trace, value, name)
    except Raised as raised:
        if not issubclass(raised.value.cls, AttributeError):
            raise
        if value.source is None or trace.ledger.decides(value, name):
            return False
        if isinstance(value, (ObjectValue, TensorValue)):
            trace.guard("lacks_attr", value.source, value.real, "the attribute is absent", name=name, where="anywhere")  # fmt: skip
        return False
    return True


_STREAMS = ("stdin", "stdout", "stderr")


def _module_member(trace: Trace, value: ObjectValue, name: str) -> Value:
    """A name of a Python module. Modules in libraries are taken as unchanging; what is in them may be patched."""
    written = trace.ledger.attribute(value, name)
    if written is not None:
        return written
    source = value.source.attr(name) if value.source else None
    if source is None and value.real is sys and name in _STREAMS:  # also a library asks anew
        source = module("sys").attr(name)
    members = value.real.__dict__
    if trace.ledger.is_global_deleted(members, name):
        raise Break(ATTRIBUTE, f"{name} of module {value.real.__name__}, deleted before")
    if name not in members:
        if not hasattr(value.real, "__getattr__") and not hasattr(value.real, name):
            text = f"module {value.real.__name__!r} has no attribute {name!r}"
            raise raise_real(AttributeError(text))
        if value.real.__name__.partition(".")[0] != "torch":
            raise Break(ATTRIBUTE, f"{name} of module {value.real.__name__}, made on demand")
    real = getattr(value.real, name)
    is_fixed = isinstance(real, types.ModuleType)
    trusted = source is None or (is_fixed and is_library(types.SimpleNamespace(__module__=value.real.__name__)))  # fmt: skip
    return Lazy(real, source=source, trusted=trusted)


def _constant(trace: Trace, value: Any, name: str) -> Value:
    try:
        real = getattr(value.real, name)
    except AttributeError as error:
        raise raise_real(error) from None
    if callable(real) and not isinstance(real, type):
        return BoundRule(value, name)
    return constant_value(real)


def _number(trace: Trace, value: Any, name: str) -> Value:
    if name in ("real", "numerator"):
        return value  # type: ignore[no-any-return]
    if not hasattr(value.python_type(), name):
        raise missing_attribute(value, name)
    return BoundRule(value, name)


def _model_attribute(trace: Trace, value: Value, name: str) -> Value:
    """A method of a modelled builtin type."""
    if name == "__class__":
        return class_of(trace, value)
    if not hasattr(value.python_type(), name):
        raise missing_attribute(value, name)
    if name == "default_factory" and isinstance(value, DictValue):
        return value.factory or NONE
    if isinstance(value, TupleValue) and value.cls is slice and name in ("start", "stop", "step"):
        return value.items[("start", "stop", "step").index(name)]
    return BoundRule(value, name)


def _tuple(trace: Trace, value: Any, name: str) -> Value:
    if value.cls.__flags__ & (1 << 9):  # a heap type: a class of the program, or a named tuple
        return instance_attribute(trace, value, name)
    fields = getattr(value.cls, "__match_args__", ())
    if name in fields:
        return value.items[fields.index(name)]  # type: ignore[no-any-return]
    return _model_attribute(trace, value, name)


def _function(trace: Trace, value: Any, name: str) -> Value:
    if name in value.attributes:
        return value.attributes[name]  # type: ignore[no-any-return]
    simple = {"__name__": value.name, "__qualname__": value.name, "__code__": value.code, "__doc__": None}  # fmt: skip
    if name in simple:
        return Constant(simple[name])
    if name == "__defaults__":
        return TupleValue(tuple(value.defaults)) if value.defaults else NONE
    if name == "__module__":
        return Constant(value.globals.get("__name__"))
    if name == "__dict__":
        raise Break(ATTRIBUTE, "__dict__ of a function made in the trace")
    if hasattr(types.FunctionType, name):
        return BoundRule(value, name)
    raise missing_attribute(value, name)


def _method(trace: Trace, value: Any, name: str) -> Value:
    if name == "__self__":
        return value.bound  # type: ignore[no-any-return]
    if name == "__func__":
        return value.function  # type: ignore[no-any-return]
    return get_attribute(trace, value.function, name)


def _partial(trace: Trace, value: Any, name: str) -> Value:
    from compiler_core.capture.keys import dict_of

    parts: dict[str, Callable[[], Value]] = {
        "func": lambda: value.function,
        "args": lambda: TupleValue(tuple(value.args)),
        "keywords": lambda: dict_of((Constant(k), v) for k, v in value.keywords.items()),
    }
    if name not in parts:
        raise missing_attribute(value, name)
    return parts[name]()


def _cell(trace: Trace, value: Any, name: str) -> Value:
    if name != "cell_contents":
        raise missing_attribute(value, name)
    if value.content is None:
        raise raise_real(ValueError("Cell is empty"))
    return value.content  # type: ignore[no-any-return]


def _grad_mode(trace: Trace, value: Any, name: str) -> Value:
    if name in ("prev", "mode"):
        return Constant(value.previous if name == "prev" else value.mode)
    found, _, _ = class_lookup(value.cls, name)
    if isinstance(found, types.FunctionType):
        return BoundRule(value, name)
    raise missing_attribute(value, name)


def _rule(trace: Trace, value: Any, name: str) -> Value:
    if name == "__self__":
        return value.receiver  # type: ignore[no-any-return]
    if name in ("__name__", "__qualname__"):
        return Constant(value.name)
    raise Break(ATTRIBUTE, f"{name} of a builtin method")


_GETTERS: dict[type, Callable[[Any, Any, str], Value]] = {
    TensorValue: tensor_attribute,
    Constant: _constant,
    SymbolicNumber: _number,
    Instance: instance_attribute,
    SuperValue: super_attribute,
    TupleValue: _tuple,
    ListValue: _model_attribute,
    DictValue: _model_attribute,
    DictView: _model_attribute,
    SetValue: _model_attribute,
    FunctionValue: _function,
    MethodValue: _method,
    Partial: _partial,
    Cell: _cell,
    GradMode: _grad_mode,
    BoundRule: _rule,
}
