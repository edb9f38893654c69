"""Building containers, strings and slices, and taking sequences apart."""

from __future__ import annotations

from collections.abc import Hashable

from compiler_core.capture.breaks import raise_real
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.items import set_item
from compiler_core.capture.iteration import items_of, unpack
from compiler_core.capture.keys import as_key, dict_of, pairs_of
from compiler_core.capture.methods import call_method
from compiler_core.capture.operators import make_slice
from compiler_core.capture.strings import format_value
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import DictValue, ListValue, SetValue, TupleValue
from compiler_core.stages import Instruction


@handles("BUILD_TUPLE")
def build_tuple(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(TupleValue(tuple(frame.pop_raw_n(i.arg))))


@handles("BUILD_LIST")
def build_list(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(ListValue(frame.pop_raw_n(i.arg)))


@handles("BUILD_SET")
def build_set(frame: SymbolicFrame, i: Instruction) -> None:
    values = frame.pop_n(i.arg)
    items: dict[Hashable, Value] = {}
    for value in values:
        items.setdefault(as_key(value), value)
    frame.push(SetValue(items, made=set(map(as_key, values))))


@handles("BUILD_MAP")
def build_map(frame: SymbolicFrame, i: Instruction) -> None:
    flat = frame.pop_raw_n(2 * i.arg)
    keys = [frame.trace.look(key) for key in flat[::2]]
    frame.push(dict_of(zip(keys, flat[1::2])))


@handles("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: SymbolicFrame, i: Instruction) -> None:
    keys = frame.pop()
    assert isinstance(keys, TupleValue)
    frame.push(dict_of(zip(keys.items, frame.pop_raw_n(i.arg))))


@handles("BUILD_STRING")
def build_string(frame: SymbolicFrame, i: Instruction) -> None:
    parts = frame.pop_n(i.arg)
    frame.push(Constant("".join(part.real for part in parts if isinstance(part, Constant))))


@handles("FORMAT_VALUE")
def format_(frame: SymbolicFrame, i: Instruction) -> None:
    conversion, has_spec = i.arg
    spec = frame.pop() if has_spec else Constant("")
    frame.push(format_value(frame.trace, frame.pop(), conversion, spec))


@handles("BUILD_SLICE")
def build_slice(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(make_slice(frame.trace, frame.pop_n(i.arg)))


def _write(frame: SymbolicFrame, depth: int, method: str, *values: Value) -> None:
    """Write to the container on the stack. After a break inside the display, or inside a comprehension
    that CPython 3.12 runs in the frame itself, it is one from outside: the write is replayed then."""
    frame.trace.touch()
    call_method(frame.trace, frame.top(depth), method, list(values), {})


@handles("LIST_APPEND")
def list_append(frame: SymbolicFrame, i: Instruction) -> None:
    _write(frame, i.arg, "append", frame.pop_raw())


@handles("SET_ADD")
def set_add(frame: SymbolicFrame, i: Instruction) -> None:
    _write(frame, i.arg, "add", frame.pop())


@handles("MAP_ADD")
def map_add(frame: SymbolicFrame, i: Instruction) -> None:
    key, value = frame.pop_n(2)
    frame.trace.touch()
    set_item(frame.trace, frame.top(i.arg), key, value)


@handles("LIST_EXTEND")
def list_extend(frame: SymbolicFrame, i: Instruction) -> None:
    _write(frame, i.arg, "extend", frame.pop())


@handles("SET_UPDATE")
def set_update(frame: SymbolicFrame, i: Instruction) -> None:
    _write(frame, i.arg, "update", frame.pop())


@handles("DICT_UPDATE", "DICT_MERGE")
def dict_update(frame: SymbolicFrame, i: Instruction) -> None:
    pairs, target = pairs_of(frame.trace, frame.pop()), frame.top(i.arg)
    assert isinstance(target, DictValue)
    frame.trace.touch()
    for key, value in pairs:
        if i.op == "DICT_MERGE" and as_key(key) in target.items:
            text = f"got multiple values for keyword argument {as_key(key)!r}"
            raise raise_real(TypeError(text))
        set_item(frame.trace, target, key, value)


@handles("LIST_TO_TUPLE")
def list_to_tuple(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop()
    assert isinstance(value, ListValue)
    frame.push(TupleValue(tuple(value.items)))


@handles("UNPACK_SEQUENCE")
def unpack_sequence(frame: SymbolicFrame, i: Instruction) -> None:
    frame.stack.extend(reversed(unpack(frame.trace, frame.pop(), i.arg)))


@handles("UNPACK_EX")
def unpack_ex(frame: SymbolicFrame, i: Instruction) -> None:
    before, after = i.arg
    items = items_of(frame.trace, frame.pop())
    if len(items) < before + after:
        text = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        raise raise_real(ValueError(text))
    middle = ListValue(list(items[before : len(items) - after]))
    frame.stack.extend(reversed([*items[:before], middle, *items[len(items) - after :]]))
