"""super(), with and without arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.objects import ObjectValue, SuperValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["implicit_super", "make_super"]


def make_super(trace: Trace, cls: Value, bound: Value) -> SuperValue:
    """`super(cls, bound)` for an instance or a class."""
    cls, bound = trace.look(cls), trace.look(bound)
    if not (isinstance(cls, ObjectValue) and isinstance(cls.real, type)):
        raise Break(UNKNOWN_CALL, f"super of {cls.describe()}")
    is_class = isinstance(bound, ObjectValue) and isinstance(bound.real, type)
    start = bound.real if is_class and issubclass(bound.real, cls.real) else bound.python_type()  # type: ignore[attr-defined]
    if not issubclass(start, cls.real):
        text = "super(type, obj): obj must be an instance or subtype of type"
        raise raise_real(TypeError(text))
    return SuperValue(cls.real, start, bound)


def implicit_super(trace: Trace) -> SuperValue:
    """`super()`: the class from the `__class__` cell, the object from the first argument."""
    frame = trace.frame
    if "__class__" not in frame.cells or frame.cells["__class__"].content is None:
        raise raise_real(RuntimeError("super(): __class__ cell not found"))
    first = frame.code.co_varnames[0]
    bound = frame.locals.get(first)
    if bound is None and first in frame.cells:
        bound = frame.cells[first].content
    if bound is None:
        raise raise_real(RuntimeError("super(): no arguments"))
    content = frame.cells["__class__"].content
    assert content is not None
    return make_super(trace, content, bound)
