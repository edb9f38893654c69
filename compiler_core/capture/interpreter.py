"""The symbolic interpreter: one instruction after the other, handlers by table.

In: a frame set up by `capture_frame` or `inlining`. Out: its return value, or (outermost frame) how
and where it ended. A break never leaves half an instruction done: the outermost frame goes back to
the state in front of it, or, when something was changed meanwhile, the whole trace is made again.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler_core.capture.breaks import OPCODE, TOO_DEEP, UNCAUGHT, Break, Raised, Restart
from compiler_core.capture.frame import Handled, SymbolicFrame
from compiler_core.capture.handlers import HANDLERS
from compiler_core.capture.trace import Trace
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.recording import Step
from compiler_core.stages import Instruction

__all__ = ["Broken", "Exit", "Returned", "run", "run_outermost"]

STEP_LIMIT = 200_000  # instructions of one trace: a loop that never ends must break


@dataclass(frozen=True, slots=True, eq=False)
class Returned:
    """The frame ran to its end."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """The frame ended in front of `instruction`, with this stack and these locals."""

    instruction: Instruction
    cause: Break
    stack: tuple[Value, ...]
    locals: dict[str, Value]
    user_stack: tuple[str, ...]


Exit = Returned | Broken


def run(frame: SymbolicFrame) -> Value:
    """Run an inlined frame to its return, or a generator's to its next yield. Raises Raised, Break."""
    trace = frame.trace
    trace.touch()
    trace.frames.append(frame)
    frame.outcome, frame.yielded = None, False
    try:
        while frame.outcome is None:
            advance(frame)
        return frame.outcome
    finally:
        del trace.frames[trace.frames.index(frame) :]


def advance(frame: SymbolicFrame) -> None:
    """One canonical instruction; an exception of the program goes to the frame's handler if it has one."""
    instruction = frame.instructions[frame.index]
    frame.advance_to(instruction)
    frame.index += 1
    _record(frame, instruction)
    handler = HANDLERS.get(instruction.op)
    if handler is None:
        raise Break(OPCODE, instruction.op)
    try:
        handler(frame, instruction)
    except Raised as raised:
        if not _unwind(frame, instruction, raised):
            raise


def _unwind(frame: SymbolicFrame, instruction: Instruction, raised: Raised) -> bool:
    """Enter the handler that protects the instruction. False when there is none."""
    for entry in frame.decoded.table:
        if entry.start <= instruction.offset < entry.end:
            del frame.stack[entry.depth :]
            if entry.lasti:
                frame.push(Constant(instruction.offset))
            frame.push(raised.value)
            frame.pending.append(Handled(raised.value, frame.trace.step))
            frame.jump(entry.target)
            return True
    return False


def _record(frame: SymbolicFrame, instruction: Instruction) -> None:
    trace = frame.trace
    trace.instruction_count += 1
    if trace.instruction_count > STEP_LIMIT:
        raise Break(TOO_DEEP, f"more than {STEP_LIMIT} instructions")
    recorder = trace.context.recorder
    if recorder.explore:
        recorder.step(
            Step(
                frame.note_instruction(), instruction.op,
                tuple(value.describe() for value in frame.stack),
                tuple((name, value.describe()) for name, value in frame.locals.items()),
                len(trace.builder.graph.nodes), len(trace.guards.rows()),
            )
        )  # fmt: skip


def run_outermost(trace: Trace, frame: SymbolicFrame) -> Exit:
    """Run the frame that was intercepted. Raises Restart when a break must be made earlier."""
    trace.frames.append(frame)
    previous = -1
    stack, locals_, changes, handled = list(frame.stack), dict(frame.locals), 0, 0
    while frame.outcome is None:
        index, instruction = frame.index, frame.instructions[frame.index]
        starts_group = not (
            index == previous + 1 and instruction.offset == frame.instructions[previous].offset
        )
        if starts_group:
            trace.step += 1
            stack, locals_, changes = list(frame.stack), dict(frame.locals), trace.changes
            handled = len(frame.handled) + len(frame.pending)
            group = instruction
            if trace.step in trace.forced:
                frame.advance_to(instruction)
                return Broken(instruction, trace.forced[trace.step], tuple(stack), locals_, trace.stack())  # fmt: skip
        previous = index
        try:
            advance(frame)
        except (Break, Raised) as raised:
            cause = _cause(trace, raised)
            user_stack = cause.user_stack or trace.stack()
            cause.user_stack = user_stack
            del trace.frames[1:]
            if handled:
                first = (frame.handled + frame.pending)[0]
                raise Restart(first.step, cause) from None
            if trace.changes != changes:
                raise Restart(trace.step, cause) from None
            return Broken(group, cause, tuple(stack), locals_, user_stack)
    return Returned(frame.outcome)


def _cause(trace: Trace, raised: Break | Raised) -> Break:
    if isinstance(raised, Break):
        return raised
    return Break(UNCAUGHT, raised.value.describe_exception())
