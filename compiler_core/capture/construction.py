"""Calling a class: instances of the program's classes, exceptions, named tuples."""

from __future__ import annotations

import abc
import enum
import types
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.objects import FOREIGN_OBJECT, LAYER_MADE, METACLASS
from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import fold_or_break
from compiler_core.capture.foreign_calls import kind_of_foreign
from compiler_core.capture.instances import bind, class_lookup, type_attribute
from compiler_core.capture.iteration import items_of
from compiler_core.capture.user_containers import builtin_method, container_base, new_content
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.containers import TupleValue
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.errors import Kind

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["bare_instance", "construct"]

_METACLASSES = (type, abc.ABCMeta)
_HEAP_TYPE = 1 << 9
_IMMUTABLE_TYPE = 1 << 8


def construct(trace: Trace, cls: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`cls(*args, **kwargs)` for a class that no rule knows. Raises Break."""
    real = cls.real
    if issubclass(real, enum.Enum):
        return fold_or_break(trace, real, args, kwargs)
    if issubclass(real, torch.Tensor):
        raise Break(LAYER_MADE, f"a {real.__name__}")
    meta = type(real)
    if meta not in _METACLASSES and isinstance(class_lookup(meta, "__call__")[0], types.FunctionType):  # fmt: skip
        raise Break(METACLASS, f"{real.__name__} of {meta.__name__}")
    instance = trace.look(_new(trace, cls, args, kwargs))
    if not issubclass(instance.python_type(), real):
        return instance
    found, owner, _ = class_lookup(real, "__init__")
    if isinstance(found, types.FunctionType):
        from compiler_core.capture.calls import call

        call(trace, bind(trace, instance, found, owner, "__init__"), args, kwargs)
    elif isinstance(instance, Instance) and instance.content is not None:
        builtin_method(trace, instance, "__init__", args, kwargs)
    elif owner is object and (args or kwargs) and class_lookup(real, "__new__")[1] is object:
        raise raise_real(TypeError(f"{real.__name__}() takes no arguments"))
    return instance


def _new(trace: Trace, cls: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.calls import call

    found, owner, _ = class_lookup(cls.real, "__new__")
    if isinstance(found, staticmethod):
        return call(trace, trace.look(type_attribute(trace, cls, "__new__")), [cls, *args], kwargs)
    if owner is tuple:
        return bare_instance(trace, cls, args)
    if isinstance(found, types.FunctionType):
        return call(trace, trace.look(Lazy(found, trusted=True)), [cls, *args], kwargs)
    return bare_instance(trace, cls, args)


def bare_instance(trace: Trace, cls: Value, args: list[Value]) -> Value:
    """What `object.__new__`, `BaseException.__new__` or `tuple.__new__` makes."""
    assert isinstance(cls, ObjectValue)
    real: Any = cls.real
    trace.touch()
    if issubclass(real, BaseException):
        return Instance(real, args=tuple(args))
    if issubclass(real, tuple):
        return TupleValue(tuple(items_of(trace, args[0])) if args else (), real)
    content = new_content(real)
    if not _is_plain(real, container_base(real)):
        raise Break(_kind_of_class(real), f"a {real.__name__}")
    return Instance(real, content=content)


def _kind_of_class(cls: type) -> Kind:
    """The kind of a class written in C: what its library does, if that is known."""
    kind = kind_of_foreign(cls)
    return FOREIGN_OBJECT if kind is UNKNOWN_CALL else kind


def _is_plain(cls: type, container: type | None) -> bool:
    """Whether every base but object and `container` is a class statement's: no constructor in C."""
    builtin = container.__mro__ if container is not None else (object,)
    bases = [base for base in cls.__mro__ if base not in builtin]
    return all(base.__flags__ & _HEAP_TYPE and not _is_made_in_c(base) for base in bases)


def _is_made_in_c(cls: type) -> bool:
    makes = isinstance(cls.__dict__.get("__new__"), types.BuiltinFunctionType)
    return makes or bool(cls.__flags__ & _IMMUTABLE_TYPE) or cls.__module__ == "torch._C"
