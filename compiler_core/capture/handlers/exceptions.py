"""Exceptions and context managers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler_core.capture.breaks import OPCODE, Break, Raised, raise_real
from compiler_core.capture.calls import call
from compiler_core.capture.frame import Handled, SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.managers import enter
from compiler_core.capture.raising import as_exception, handled_now, matches
from compiler_core.capture.resolve import constant_value
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant, is_none
from compiler_core.capture.values.objects import Instance
from compiler_core.stages import Instruction

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


@handles("RAISE_VARARGS")
def raise_varargs(frame: SymbolicFrame, i: Instruction) -> None:
    if i.arg == 0:
        handled = handled_now(frame.trace)
        if handled is not None:
            raise Raised(handled, settled=True)
        raise raise_real(RuntimeError("No active exception to reraise"))
    parts = frame.pop_n(i.arg)
    exception = as_exception(frame.trace, parts[0])
    if i.arg == 2:
        exception.attributes["__cause__"] = _cause(frame.trace, parts[1])
        exception.attributes["__suppress_context__"] = Constant(True)
    raise Raised(exception)


def _cause(trace: Trace, given: Value) -> Value:
    if is_none(given):
        return given
    try:
        return as_exception(trace, given)
    except Raised:
        text = "exception causes must derive from BaseException"
        raise raise_real(TypeError(text)) from None


@handles("RERAISE")
def reraise(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop()
    if not isinstance(value, Instance):
        raise Break(OPCODE, "an exception from outside is raised again")
    raise Raised(value, settled=True)


@handles("PUSH_EXC_INFO")
def push_exc_info(frame: SymbolicFrame, i: Instruction) -> None:
    exception = frame.pop()
    assert isinstance(exception, Instance)
    frame.push(frame.handled[-1].value if frame.handled else NONE)
    frame.push(exception)
    frame.handled.append(Handled(exception, exception.raise_step))


@handles("POP_EXCEPT")
def pop_except(frame: SymbolicFrame, i: Instruction) -> None:
    frame.pop_raw()
    if frame.handled:
        frame.handled.pop()


@handles("CHECK_EXC_MATCH")
def check_exc_match(frame: SymbolicFrame, i: Instruction) -> None:
    wanted = frame.pop()
    frame.push(Constant(matches(frame.trace, frame.top(), wanted)))


@handles("BEFORE_WITH")
def before_with(frame: SymbolicFrame, i: Instruction) -> None:
    exit_, result = enter(frame.trace, frame.pop())
    frame.push(exit_)
    frame.push(result)


@handles("WITH_EXCEPT_START")
def with_except_start(frame: SymbolicFrame, i: Instruction) -> None:
    exception = frame.top()
    assert isinstance(exception, Instance)
    exit_ = frame.trace.look(frame.stack[-1 - i.arg])
    args: list[Value] = [constant_value(exception.cls), exception, NONE]
    frame.push(call(frame.trace, exit_, args, {}))


@handles("CHECK_EG_MATCH", "END_ASYNC_FOR")
def unsupported(frame: SymbolicFrame, i: Instruction) -> None:
    reasons = {"CHECK_EG_MATCH": "except*", "END_ASYNC_FOR": "async for"}
    raise Break(OPCODE, reasons[i.op])
