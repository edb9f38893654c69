"""Attributes and items."""

from __future__ import annotations

from compiler_core.capture.attributes import get_attribute
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.items import delete_item, get_item, set_item
from compiler_core.capture.resolve import constant_value
from compiler_core.capture.stores import delete_attribute, store_attribute
from compiler_core.capture.supers import make_super
from compiler_core.capture.values.base import Value
from compiler_core.stages import Instruction


@handles("LOAD_ATTR")
def load_attr(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(get_attribute(frame.trace, frame.pop(), i.arg))


@handles("LOAD_SUPER_ATTR")
def load_super_attr(frame: SymbolicFrame, i: Instruction) -> None:
    _, cls, bound = frame.pop_n(3)
    frame.push(get_attribute(frame.trace, make_super(frame.trace, cls, bound), i.arg))


@handles("STORE_ATTR")
def store_attr(frame: SymbolicFrame, i: Instruction) -> None:
    value, owner = frame.pop_raw_n(2)
    store_attribute(frame.trace, frame.trace.look(owner), i.arg, value)


@handles("DELETE_ATTR")
def delete_attr(frame: SymbolicFrame, i: Instruction) -> None:
    delete_attribute(frame.trace, frame.pop(), i.arg)


@handles("BINARY_SUBSCR")
def binary_subscr(frame: SymbolicFrame, i: Instruction) -> None:
    container, key = frame.pop_n(2)
    frame.push(get_item(frame.trace, container, key))


@handles("STORE_SUBSCR")
def store_subscr(frame: SymbolicFrame, i: Instruction) -> None:
    value, container, key = frame.pop_raw_n(3)
    set_item(frame.trace, frame.trace.look(container), frame.trace.look(key), value)


@handles("DELETE_SUBSCR")
def delete_subscr(frame: SymbolicFrame, i: Instruction) -> None:
    container, key = frame.pop_n(2)
    delete_item(frame.trace, container, key)


def _slice(frame: SymbolicFrame, start: Value, stop: Value) -> Value:
    from compiler_core.capture.operators import make_slice

    return make_slice(frame.trace, [start, stop, constant_value(None)])


@handles("BINARY_SLICE")
def binary_slice(frame: SymbolicFrame, i: Instruction) -> None:
    container, start, stop = frame.pop_n(3)
    frame.push(get_item(frame.trace, container, _slice(frame, start, stop)))


@handles("STORE_SLICE")
def store_slice(frame: SymbolicFrame, i: Instruction) -> None:
    value, container, start, stop = frame.pop_n(4)
    set_item(frame.trace, container, _slice(frame, start, stop), value)
