"""Exceptions of the traced program: making them, matching them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, Raised, raise_real
from compiler_core.capture.class_checks import classes_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.objects import Instance, ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["as_exception", "handled_now", "matches", "settle_context"]


def handled_now(trace: Trace) -> Instance | None:
    """The exception that is being handled, here or in a caller that the trace knows."""
    return next((f.handled[-1].value for f in reversed(trace.frames) if f.handled), None)


def settle_context(trace: Trace, raised: Raised) -> None:
    """`__context__` of what is raised while another exception is handled, once for each `raise`."""
    if raised.settled:
        return
    raised.settled = True
    value, context = raised.value, handled_now(trace)
    if context is None or context is value:
        return
    link: Value | None = context
    while isinstance(link, Instance):  # no cycles: the chain is cut where it comes back
        below = link.attributes.get("__context__")
        if below is value:
            del link.attributes["__context__"]
        link = below
    value.attributes["__context__"] = context


def as_exception(trace: Trace, value: Value) -> Instance:
    """What `raise value` raises: an instance, made from a class if need be."""
    from compiler_core.capture.calls import call

    value = trace.look(value)
    if isinstance(value, ObjectValue) and isinstance(value.real, type):
        if not issubclass(value.real, BaseException):
            raise raise_real(TypeError("exceptions must derive from BaseException"))
        value = trace.look(call(trace, value, [], {}))
    if isinstance(value, Instance) and value.args is not None:
        return value
    if isinstance(value, ObjectValue) and isinstance(value.real, BaseException):
        raise Break(UNKNOWN_CALL, "an exception from outside is raised")
    raise raise_real(TypeError("exceptions must derive from BaseException"))


def matches(trace: Trace, exception: Value, wanted: Value) -> bool:
    """Whether `except wanted` takes the exception."""
    return issubclass(exception.python_type(), classes_of(trace, wanted))
