"""Constants, locals, cells, globals, imports."""

from __future__ import annotations

import types
from typing import Any

from compiler_core.capture.break_kinds.objects import CLASS_MADE
from compiler_core.capture.breaks import OPCODE, Break, Raised, raise_real
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.global_names import global_value, imported
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.resolve import constant_value
from compiler_core.capture.values.base import NULL, Value
from compiler_core.capture.values.functions import Cell
from compiler_core.stages import Instruction


def _raise(error: BaseException) -> Raised:
    return raise_real(error)


@handles("LOAD_CONST")
def load_const(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(constant_value(i.arg))


@handles("LOAD_FAST")
def load_fast(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.locals.get(i.arg)
    if value is None:
        text = f"cannot access local variable {i.arg!r} where it is not associated with a value"
        raise _raise(UnboundLocalError(text))
    frame.push(value)


@handles("LOAD_FAST_AND_CLEAR")
def load_fast_and_clear(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.locals.pop(i.arg, NULL))


@handles("STORE_FAST")
def store_fast(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop_raw()
    if value is NULL:
        frame.locals.pop(i.arg, None)
    else:
        frame.locals[i.arg] = value


@handles("DELETE_FAST")
def delete_fast(frame: SymbolicFrame, i: Instruction) -> None:
    if frame.locals.pop(i.arg, None) is None:
        text = f"cannot access local variable {i.arg!r} where it is not associated with a value"
        raise _raise(UnboundLocalError(text))


@handles("LOAD_CLOSURE")
def load_closure(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.cells[i.arg])


@handles("LOAD_DEREF", "LOAD_CLASSDEREF")
def load_deref(frame: SymbolicFrame, i: Instruction) -> None:
    if i.op == "LOAD_CLASSDEREF":
        raise Break(CLASS_MADE)
    content = frame.cells[i.arg].content
    if content is None:
        raise _raise(_empty_cell(frame.code, i.arg))
    frame.push(content)


def _empty_cell(code: types.CodeType, name: str) -> NameError:
    if name in code.co_freevars:
        text = f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
        return NameError(text)
    text = f"cannot access local variable {name!r} where it is not associated with a value"
    return UnboundLocalError(text)


@handles("STORE_DEREF")
def store_deref(frame: SymbolicFrame, i: Instruction) -> None:
    store_cell(frame, frame.cells[i.arg], frame.pop_raw())


@handles("DELETE_DEREF")
def delete_deref(frame: SymbolicFrame, i: Instruction) -> None:
    cell = frame.cells[i.arg]
    if cell.content is None:
        raise _raise(_empty_cell(frame.code, i.arg))
    store_cell(frame, cell, None)


def store_cell(frame: SymbolicFrame, cell: Cell, value: Value | None) -> None:
    frame.trace.ledger.store_cell(cell, value)


@handles("LOAD_GLOBAL", "LOAD_NAME")
def load_global(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(global_value(frame, i.arg))


@handles("STORE_GLOBAL")
def store_global(frame: SymbolicFrame, i: Instruction) -> None:
    frame.trace.ledger.store_global(frame, i.arg, frame.pop_raw())


@handles("IMPORT_NAME")
def import_name(frame: SymbolicFrame, i: Instruction) -> None:
    level, names = frame.pop_n(2)
    frame.push(imported(frame, i.arg, _payload(level), names))


def _payload(value: Value) -> Any:
    return getattr(value, "real", None)


@handles("IMPORT_FROM")
def import_from(frame: SymbolicFrame, i: Instruction) -> None:
    from compiler_core.capture.attributes import get_attribute

    frame.push(get_attribute(frame.trace, frame.top(), i.arg))


@handles("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(constant_value(AssertionError))


@handles("DELETE_GLOBAL")
def delete_global(frame: SymbolicFrame, i: Instruction) -> None:
    ledger = frame.trace.ledger
    written = ledger.global_(frame.globals, i.arg)
    is_deleted = ledger.is_global_deleted(frame.globals, i.arg)
    if written is None and (is_deleted or i.arg not in frame.globals):
        raise _raise(NameError(f"name {i.arg!r} is not defined"))
    if written is None:  # that it exists is relied on
        frame.trace.look(global_value(frame, i.arg))
    ledger.delete_global(frame, i.arg)


@handles("LOAD_BUILD_CLASS", "STORE_NAME", "UNSUPPORTED")
def unsupported(frame: SymbolicFrame, i: Instruction) -> None:
    if i.op == "LOAD_BUILD_CLASS":
        raise Break(CLASS_MADE)
    raise Break(OPCODE, str(i.arg) if i.op == "UNSUPPORTED" else i.op)
