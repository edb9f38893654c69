"""Calls and function definitions."""

from __future__ import annotations

from compiler_core.capture.breaks import OPCODE, Break
from compiler_core.capture.calls import call
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.iteration import items_of
from compiler_core.capture.keys import as_key, pairs_of
from compiler_core.capture.values.base import NULL, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import DictValue, ListValue, TupleValue
from compiler_core.capture.values.functions import Cell, FunctionValue
from compiler_core.stages import Instruction


def _callee(first: Value, second: Value, args: list[Value]) -> tuple[Value, list[Value]]:
    """The callable among the two slots below the arguments (see dialect.py), and all arguments."""
    if first is NULL:
        return second, args
    if second is NULL:
        return first, args
    return first, [second, *args]


@handles("CALL")
def call_(frame: SymbolicFrame, i: Instruction) -> None:
    count, names = i.arg
    args = frame.pop_raw_n(count)
    first, second = frame.pop_raw_n(2)
    callee, args = _callee(first, second, args)
    positional = args[: len(args) - len(names)]
    keywords = dict(zip(names, args[len(args) - len(names) :]))
    frame.push(call(frame.trace, frame.trace.look(callee), positional, keywords))


@handles("CALL_FUNCTION_EX")
def call_function_ex(frame: SymbolicFrame, i: Instruction) -> None:
    keywords: dict[str, Value] = {}
    if i.arg:
        keywords = {str(as_key(k)): v for k, v in pairs_of(frame.trace, frame.pop())}
    args = items_of(frame.trace, frame.pop())
    first, second = frame.pop_raw_n(2)
    callee = second if first is NULL else first
    frame.push(call(frame.trace, frame.trace.look(callee), list(args), keywords))


@handles("CALL_INTRINSIC_1")
def call_intrinsic_1(frame: SymbolicFrame, i: Instruction) -> None:
    name = str(i.arg)
    if "LIST_TO_TUPLE" in name:
        value = frame.pop()
        assert isinstance(value, ListValue)
        frame.push(TupleValue(tuple(value.items)))
    elif "UNARY_POSITIVE" in name:
        from compiler_core.capture.operators import unary

        frame.push(unary(frame.trace, "UNARY_POSITIVE", frame.pop()))
    elif "STOPITERATION_ERROR" in name:
        pass  # an exception that leaves a generator: `iteration.py` turns StopIteration around
    else:
        raise Break(OPCODE, name)


@handles("CALL_INTRINSIC_2")
def call_intrinsic_2(frame: SymbolicFrame, i: Instruction) -> None:
    raise Break(OPCODE, str(i.arg))


_DEFAULTS, _KWDEFAULTS, _ANNOTATIONS, _CLOSURE = 1, 2, 4, 8


@handles("MAKE_FUNCTION")
def make_function(frame: SymbolicFrame, i: Instruction) -> None:
    code = frame.pop()
    assert isinstance(code, Constant)
    outer = frame.function
    function = FunctionValue(
        code.real, frame.globals, code.real.co_name,
        globals_source=outer.globals_source if outer else None, trusted=outer.trusted if outer else False,
    )  # fmt: skip
    for flag in (_CLOSURE, _ANNOTATIONS, _KWDEFAULTS, _DEFAULTS):
        if i.arg & flag:
            _set(frame, function, flag, frame.pop())
    frame.push(function)


@handles("SET_FUNCTION_ATTRIBUTE")
def set_function_attribute(frame: SymbolicFrame, i: Instruction) -> None:
    attribute, function = frame.pop_n(2)
    assert isinstance(function, FunctionValue)
    _set(frame, function, i.arg, attribute)
    frame.push(function)


def _set(frame: SymbolicFrame, function: FunctionValue, flag: int, value: Value) -> None:
    if flag == _CLOSURE:
        assert isinstance(value, TupleValue)
        function.closure = [cell for cell in value.items if isinstance(cell, Cell)]
    elif flag == _DEFAULTS:
        function.defaults = list(items_of(frame.trace, value))
    elif flag == _KWDEFAULTS:
        assert isinstance(value, DictValue)
        function.kwdefaults = {str(k): v for k, (_, v) in value.items.items()}
    else:
        function.attributes["__annotations__"] = _annotations(frame, value)


def _annotations(frame: SymbolicFrame, value: Value) -> Value:
    """Names and annotations by turns, in a tuple, as the dict that the function has."""
    flat = [frame.trace.look(item) for item in items_of(frame.trace, value)]
    pairs = [
        (name, what) for name, what in zip(flat[::2], flat[1::2]) if isinstance(name, Constant)
    ]
    return DictValue({name.real: (name, what) for name, what in pairs})
