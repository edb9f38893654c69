"""Questions about the program and its surroundings: `inspect.signature`, `os.environ`."""

from __future__ import annotations

import inspect
import os
import types
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, Raised, raise_real
from compiler_core.capture.rules import RULES, rule
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.functions import MethodValue
from compiler_core.capture.values.objects import ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


@rule(inspect.signature)
def _signature(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) != 1 or kwargs:
        raise Break(UNKNOWN_CALL, "inspect.signature with options")
    return ObjectValue(inspect.signature(_real_function(trace, trace.look(args[0]))))


def _real_function(trace: Trace, value: Value) -> Any:
    """A function or method from outside, guarded by all that its signature is made from. Raises Break."""
    if isinstance(value, MethodValue):
        function, bound = trace.look(value.function), trace.look(value.bound)
        if isinstance(bound, ObjectValue):
            return types.MethodType(_real_function(trace, function), bound.real)
    if isinstance(value, ObjectValue) and isinstance(value.real, types.FunctionType):
        _guard_signature(trace, value)
        return value.real
    raise Break(UNKNOWN_CALL, f"inspect.signature of {value.describe()}")


def _guard_signature(trace: Trace, value: ObjectValue) -> None:
    real, source = value.real, value.source
    if "__signature__" in vars(real):
        raise Break(UNKNOWN_CALL, f"{real.__qualname__} has a __signature__ of its own")
    trace.guard("callable", source, real, "its signature is read")
    if "__wrapped__" in vars(real):
        inner = source.attr("__wrapped__") if source is not None else None
        _real_function(
            trace, trace.look(Lazy(real.__wrapped__, source=inner, trusted=inner is None))
        )


def _reads(cls: type, *names: str) -> None:
    """Read-only properties of objects that only the trace has: what they give does not change."""
    for name in names:
        getter = vars(cls)[name].fget

        def called(
            trace: Trace, args: list[Value], kwargs: dict[str, Value], read: Any = getter
        ) -> Value:
            receiver = trace.look(args[0])
            assert isinstance(receiver, ObjectValue)
            return trace.look(Lazy(read(receiver.real), trusted=True))

        RULES[getter] = called


_reads(inspect.Signature, "parameters", "return_annotation")
_reads(inspect.Parameter, "name", "kind", "default", "annotation")


# ------------------------------------------------------------------------------ the environment


@rule(type(os.environ).__getitem__)
def _environ_item(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`os.environ[name]`: a fact like any other, guarded by its value or its absence."""
    environ, name = trace.look(args[0]), trace.look(args[1])
    known = isinstance(environ, ObjectValue) and environ.real is os.environ
    if not known or not (isinstance(name, Constant) and isinstance(name.real, str)):
        raise Break(UNKNOWN_CALL, "a look into an environment by something other than a name")
    source = trace.guards.constant(os.environ, "environ")
    if name.real not in os.environ:
        trace.guard("lacks_key", source, os.environ, "the variable is not set", key=name.real)
        raise raise_real(KeyError(name.real))
    trace.guard("has_key", source, os.environ, "the variable is set", key=name.real)
    return trace.look(Lazy(os.environ[name.real], source=source.item(name.real)))


@rule(os.getenv)
def _getenv(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    default = kwargs.get("default", args[1] if len(args) > 1 else NONE)
    try:
        return _environ_item(trace, [ObjectValue(os.environ), args[0]], {})
    except Raised:
        return default
