"""Exceptions and context managers."""

from __future__ import annotations

from compiler_core.capture.breaks import OPCODE, Break, Raised, raise_real
from compiler_core.capture.calls import call
from compiler_core.capture.frame import Handled, SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.managers import enter
from compiler_core.capture.raising import as_exception, matches
from compiler_core.capture.resolve import constant_value
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.objects import Instance
from compiler_core.stages import Instruction


@handles("RAISE_VARARGS")
def raise_varargs(frame: SymbolicFrame, i: Instruction) -> None:
    if i.arg == 0:
        for outer in reversed(frame.trace.frames):
            if outer.handled:
                raise Raised(outer.handled[-1].value)
        raise raise_real(RuntimeError("No active exception to reraise"))
    parts = frame.pop_n(i.arg)
    exception = as_exception(frame.trace, parts[0])
    if i.arg == 2:
        exception.attributes["__cause__"] = parts[1]
    raise Raised(exception)


@handles("RERAISE")
def reraise(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop()
    if not isinstance(value, Instance):
        raise Break(OPCODE, "an exception from outside is raised again")
    raise Raised(value)


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
