"""`operator.itemgetter`, `attrgetter` and `methodcaller`: made, and called.

In: what one is made with, or the object that it is called on. Out: a `Getter`, or what it gets.
What a constructor would refuse breaks, so that the original raises.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import UNKNOWN_CALL, Break
from compiler_core.capture.rules import RULES
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import TupleValue
from compiler_core.capture.values.functions import Getter

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["call_getter"]


def _is_text(trace: Trace, value: Value) -> bool:
    value = trace.look(value)
    return isinstance(value, Constant) and isinstance(value.real, str)


def _constructor(cls: type) -> None:
    def made(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        names = {operator.itemgetter: [], operator.attrgetter: args, operator.methodcaller: args[:1]}[cls]  # fmt: skip
        is_odd = bool(kwargs) and cls is not operator.methodcaller
        if not args or is_odd or not all(_is_text(trace, name) for name in names):
            raise Break(UNKNOWN_CALL, f"{cls.__name__} of something else")
        return Getter(cls, list(args), dict(kwargs))

    RULES[cls] = made


for _cls in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
    _constructor(_cls)


def call_getter(trace: Trace, getter: Getter, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`getter(target)`. Raises Break, Raised."""
    from compiler_core.capture.calls import call
    from compiler_core.capture.items import get_item

    if len(args) != 1 or kwargs:
        raise Break(UNKNOWN_CALL, f"{getter.cls.__name__} called with other than one argument")
    target = trace.look(args[0])
    if getter.cls is operator.methodcaller:
        method = _walk(trace, target, _text(trace, getter.args[0]), dotted=False)
        return call(trace, method, getter.args[1:], getter.keywords)
    if getter.cls is operator.itemgetter:
        got = [get_item(trace, target, trace.look(key)) for key in getter.args]
    else:
        got = [_walk(trace, target, _text(trace, name)) for name in getter.args]
    return got[0] if len(got) == 1 else TupleValue(tuple(got))


def _text(trace: Trace, name: Value) -> str:
    real: Any = trace.look(name)
    return str(real.real)


def _walk(trace: Trace, value: Value, name: str, dotted: bool = True) -> Value:
    """`value.a.b`, of "a.b"."""
    from compiler_core.capture.attributes import get_attribute

    for step in name.split(".") if dotted else [name]:
        value = trace.look(get_attribute(trace, trace.look(value), step))
    return value
