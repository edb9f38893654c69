"""Generators: `RETURN_GENERATOR` is passed when the frame first runs; a yield ends the run."""

from __future__ import annotations

from compiler_core.capture.break_kinds.control_flow import COROUTINE
from compiler_core.capture.breaks import OPCODE, Break, Raised
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.generators import send
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.iteration import iterator_of
from compiler_core.capture.values.constant import NONE
from compiler_core.capture.values.iterators import GeneratorValue
from compiler_core.stages import Instruction


@handles("RETURN_GENERATOR")
def return_generator(frame: SymbolicFrame, i: Instruction) -> None:
    """CPython pushes what the first `send` passes in (None); the POP_TOP behind drops it."""
    frame.push(NONE)


@handles("YIELD_VALUE")
def yield_value(frame: SymbolicFrame, i: Instruction) -> None:
    frame.outcome, frame.yielded = frame.pop_raw(), True


@handles("GET_YIELD_FROM_ITER")
def get_yield_from_iter(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop()
    frame.push(value if isinstance(value, GeneratorValue) else iterator_of(frame.trace, value))


@handles("SEND")
def send_(frame: SymbolicFrame, i: Instruction) -> None:
    """Receiver, value → receiver, what it yields; when it is exhausted, its result, and jump."""
    value, receiver = frame.pop_raw(), frame.top()
    try:
        frame.push(send(frame.trace, receiver, frame.trace.look(value)))
    except Raised as raised:
        if not issubclass(raised.value.cls, StopIteration):
            raise
        result = raised.value.args[0] if raised.value.args else NONE
        frame.stack[-1] = result
        assert i.target is not None
        frame.jump(i.target)


@handles("GET_AWAITABLE", "CLEANUP_THROW")
def unsupported(frame: SymbolicFrame, i: Instruction) -> None:
    if i.op == "GET_AWAITABLE":
        raise Break(COROUTINE)
    raise Break(OPCODE, "throw() into a yield from")
