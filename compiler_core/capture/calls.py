"""Calling values: which rule a callable falls under.

In: a callable and arguments. Out: the result. The order: a rule of the table, a torch operation,
Python code that is followed, a class, an object with `__call__`; anything else is a break.
"""

from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.calls import COMPILED
from compiler_core.capture.break_kinds.objects import WEAK
from compiler_core.capture.breaks import DISABLED, UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.foreign_calls import kind_of_foreign, kind_of_module
from compiler_core.capture.guard_predicates import active_request
from compiler_core.capture.inlining import function_of, inline
from compiler_core.capture.resolve import CACHED_FUNCTION
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.functions import (
    BoundRule,
    FunctionValue,
    Getter,
    GradMode,
    MethodValue,
    Partial,
)
from compiler_core.capture.values.objects import Instance, ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["call"]


def call(trace: Trace, callee: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`callee(*args, **kwargs)`. Raises Break, Raised."""
    callee = trace.look(callee)
    match callee:
        case ObjectValue():
            return _call_object(trace, callee, args, kwargs)
        case FunctionValue():
            return inline(trace, callee, args, kwargs)
        case MethodValue():
            return call(trace, callee.function, [callee.bound, *args], kwargs)
        case BoundRule():
            from compiler_core.capture.methods import call_method

            return call_method(trace, callee.receiver, callee.name, args, kwargs)
        case Partial():
            merged = {**callee.keywords, **kwargs}
            return call(trace, callee.function, [*callee.args, *args], merged)
        case Getter():
            from compiler_core.capture.getters import call_getter

            return call_getter(trace, callee, args, kwargs)
        case GradMode():
            raise Break(UNKNOWN_CALL, "a grad mode used as a decorator inside")
        case Instance():
            if issubclass(callee.cls, torch.nn.Module):
                from compiler_core.capture.module_calls import call_new_module

                return call_new_module(trace, callee, args, kwargs)
            return _call_special(trace, callee, args, kwargs)
    raise raise_real(TypeError(f"{callee.python_type().__name__!r} object is not callable"))


def _call_object(
    trace: Trace, callee: ObjectValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    from compiler_core.capture.rules import find_rule
    from compiler_core.capture.torch_calls import graph_call

    real = callee.real
    rule = find_rule(real)
    if rule is not None:
        return rule(trace, args, kwargs)
    result = graph_call(trace, real, args, kwargs)
    if result is not None:
        return result
    _refuse_disabled(real)
    if isinstance(real, CACHED_FUNCTION):
        from compiler_core.capture.cached_calls import call_cached

        return call_cached(trace, callee, args, kwargs)
    if isinstance(real, types.FunctionType):
        if is_compiled(real):
            return call(trace, _original(trace, callee), args, kwargs)
        if (tagged := _under_tag(real)) is not None:
            return call(trace, trace.look(Lazy(tagged, source=None, trusted=True)), args, kwargs)
        _refuse_module(real)
        return inline(trace, function_of(trace, callee), args, kwargs)
    if isinstance(real, type):
        from compiler_core.capture.construction import construct

        return construct(trace, callee, args, kwargs)
    if isinstance(real, torch.nn.Module):
        from compiler_core.capture.module_calls import call_module

        return call_module(trace, callee, args, kwargs)
    if isinstance(real, weakref.ref):
        return _referent(trace, real)
    if isinstance(real, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:
        return _call_descriptor(trace, real, args, kwargs)
    return _call_special(trace, callee, args, kwargs)


def is_compiled(real: Any) -> bool:
    """Is this what `compile()` made of a function? (`functools.wraps` copies the mark to other code.)"""
    mark = getattr(real, "__dict__", {}).get("__cutaway_compiled__")
    return mark is not None and real.__code__ is mark[1]


def _original(trace: Trace, compiled: ObjectValue) -> Value:
    """The function that a compiled one was made of, if it asks for what is in force. Raises Break."""
    real, source = compiled.real, compiled.source
    request, _ = real.__cutaway_compiled__
    if request is not active_request():
        raise Break(COMPILED, f"{real.__qualname__}, compiled with other options")
    if source is not None:
        mark = source.attr("__cutaway_compiled__").item(0)
        trace.guard("identity", mark, request, "it was compiled with the same options")
    inner = source.attr("__wrapped__") if source is not None else None
    return trace.look(Lazy(real.__wrapped__, source=inner, trusted=source is None))


def _referent(trace: Trace, real: weakref.ref[Any]) -> Value:
    """`ref()`: an object that the trace has met under a source of its own."""
    known = trace.known.get(id(real()))
    if known is None:
        raise Break(WEAK)
    return known


def _call_descriptor(trace: Trace, real: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`dict.get(d, key)`, `list.append(l, x)`: the method of the builtin type."""
    from compiler_core.capture.methods import call_method
    from compiler_core.capture.object_methods import object_method

    receiver = trace.look(args[0])
    if real.__objclass__ in (object, BaseException):
        return object_method(trace, receiver, real.__name__, args[1:], kwargs)
    return call_method(trace, receiver, real.__name__, args[1:], kwargs)


def _call_special(
    trace: Trace, callee: Instance | ObjectValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """An object whose class defines `__call__` in Python."""
    from compiler_core.capture.instances import MISSING, bind, class_lookup

    cls = callee.python_type()
    found, owner, _ = class_lookup(cls, "__call__")
    if found is MISSING:
        raise raise_real(TypeError(f"{cls.__name__!r} object is not callable"))
    if not isinstance(found, types.FunctionType):
        real = getattr(callee, "real", None)
        raise Break(kind_of_foreign(real), getattr(real, "__qualname__", cls.__name__))
    return call(trace, bind(trace, callee, found, owner, "__call__"), args, kwargs)


def _under_tag(real: types.FunctionType) -> types.FunctionType | None:
    """What torch.compile has put a function of its own around: once it has compiled anything in the
    process, `nn.Module.__init__` also notes that a module was made, which is none of the program.
    """
    if real.__module__ != "torch._dynamo.mutation_guard":
        return None
    cells = [cell.cell_contents for cell in real.__closure__ or ()]
    return next((inner for inner in cells if isinstance(inner, types.FunctionType)), None)


def _refuse_module(real: types.FunctionType) -> None:
    """Libraries that are not followed."""
    module = str(real.__globals__.get("__name__", ""))
    kind = kind_of_module(module)
    if kind is not None:
        raise Break(kind, f"{module}.{real.__qualname__}")


def _refuse_disabled(real: Any) -> None:
    attributes = getattr(real, "__dict__", {})
    if attributes.get("_torchdynamo_disable"):
        raise Break(DISABLED, getattr(real, "__qualname__", type(real).__name__))
    if "_torchdynamo_orig_callable" in attributes:
        raise Break(COMPILED, getattr(real, "__qualname__", type(real).__name__))
    if attributes.get("__cutaway_disabled__"):
        raise Break(DISABLED, getattr(real, "__qualname__", type(real).__name__))
    if "_orig_mod" in attributes.get("_modules", ()):
        raise Break(COMPILED, "a compiled module")
