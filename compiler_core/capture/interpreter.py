"""The symbolic interpreter: one instruction after the other, handlers by table.

In: a frame set up by `capture_frame` or `inlining`. Out: its return value, or (outermost frame) how
and where it ended. A break never leaves half an instruction done: the outermost frame goes back to
the state in front of it, or, when something was changed meanwhile, the whole trace is made again.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler_core.capture.breaks import (
    OPCODE,
    TOO_DEEP,
    UNCAUGHT,
    Break,
    Raised,
    Restart,
    describe,
)
from compiler_core.capture.frame import Handled, SymbolicFrame
from compiler_core.capture.handlers import HANDLERS
from compiler_core.capture.raising import settle_context
from compiler_core.capture.trace import Trace
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.objects import Instance
from compiler_core.recording import Step
from compiler_core.stages import Instruction

__all__ = ["Broken", "Exit", "Returned", "run", "run_outermost", "throw_into"]

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


Exit = Returned | Broken


def run(frame: SymbolicFrame) -> Value:
    """Run an inlined frame to its return, or a generator's to its next yield. Raises Raised, Break."""
    trace = frame.trace
    trace.touch(is_effect=False)
    trace.frames.append(frame)
    frame.outcome, frame.yielded = None, False
    try:
        while frame.outcome is None:
            advance(frame)
        return frame.outcome
    except Break as cause:
        cause.user_stack = cause.user_stack or trace.stack()
        raise
    finally:
        del trace.frames[trace.frames.index(frame) :]


def throw_into(frame: SymbolicFrame, exception: Instance) -> Value:
    """Resume a generator's frame with an exception at its yield."""
    instruction, raised = frame.current, Raised(exception, settled=True)
    if not _unwind(frame, instruction, raised):
        raise raised
    return run(frame)


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
        settle_context(frame.trace, raised)
        if not _unwind(frame, instruction, raised):
            raise


def _unwind(frame: SymbolicFrame, instruction: Instruction, raised: Raised) -> bool:
    """Enter the handler that protects the instruction. False when there is none."""
    for entry in frame.decoded.table:
        if entry.start <= instruction.offset < entry.end:
            del frame.stack[entry.depth :]
            if entry.lasti:
                frame.push(Constant(instruction.offset))
            raised.value.raise_step = raised.value.raise_step or frame.trace.step
            frame.push(raised.value)
            frame.jump(entry.target)
            return True
    return False


def _record(frame: SymbolicFrame, instruction: Instruction) -> None:
    trace = frame.trace
    trace.instruction_count += 1
    trace.note_questions()
    if trace.instruction_count > STEP_LIMIT:
        raise Break(TOO_DEEP, f"more than {STEP_LIMIT} instructions")
    recorder = trace.context.recorder
    if recorder.explore:
        recorder.step(
            Step(
                frame.note_instruction(), instruction.op,
                tuple(value.describe() for value in frame.stack),
                tuple((name, value.describe()) for name, value in frame.locals.items()),
                len(trace.builder.graph.nodes), len(trace.guards),
            )
        )  # fmt: skip


@dataclass(slots=True)
class _Checkpoint:
    """The state in front of an instruction group of the outermost frame."""

    instruction: Instruction
    stack: tuple[Value, ...]
    locals: dict[str, Value]
    changes: int
    handled: Handled | None

    @classmethod
    def of(cls, frame: SymbolicFrame) -> _Checkpoint:
        return cls(
            frame.instructions[frame.index], tuple(frame.stack), dict(frame.locals), frame.trace.changes,
            frame.handled[0] if frame.handled else None,
        )  # fmt: skip

    def broken(self, cause: Break) -> Broken:
        return Broken(self.instruction, cause, self.stack, self.locals)


def run_outermost(trace: Trace, frame: SymbolicFrame) -> Exit:
    """Run the frame that was intercepted. Raises Restart when a break must be made earlier."""
    trace.frames.append(frame)
    previous = -1
    checkpoint = _Checkpoint.of(frame)
    while frame.outcome is None:
        if not _continues_group(frame, previous):
            trace.step += 1
            checkpoint = _Checkpoint.of(frame)
            if trace.step in trace.forced:
                frame.advance_to(checkpoint.instruction)
                return _forced(trace, checkpoint)
        previous = frame.index
        try:
            advance(frame)
        except (Break, Raised) as raised:
            return _end(trace, checkpoint, raised)
    return Returned(frame.outcome)


def _forced(trace: Trace, checkpoint: _Checkpoint) -> Broken:
    """The break that an earlier attempt asked for; inside `except` it moves on to what raised."""
    cause = trace.forced[trace.step]
    trace.rely_on(cause)
    if checkpoint.handled is not None:
        raise Restart(checkpoint.handled.step, cause)
    return checkpoint.broken(cause)


def _continues_group(frame: SymbolicFrame, previous: int) -> bool:
    """Whether the next instruction is a further part of the physical one that ran last."""
    now, last = frame.instructions[frame.index], frame.instructions[previous]
    return frame.index == previous + 1 and now.offset == last.offset


def _end(trace: Trace, checkpoint: _Checkpoint, raised: Break | Raised) -> Broken:
    """The frame ends in front of the group at hand, or the trace is made again to end earlier."""
    cause = raised if isinstance(raised, Break) else Break(UNCAUGHT, describe(raised.value))
    cause.user_stack = cause.user_stack or trace.stack()
    cause.__traceback__ = cause.__context__ = None  # they hold frames, the program's among them
    trace.rely_on(cause)
    step = trace.step
    if isinstance(raised, Raised):
        step = raised.value.raise_step or step
    if (
        checkpoint.handled is not None
    ):  # inside `except`: the interpreter's own state cannot be resumed
        step = checkpoint.handled.step
    if step != trace.step or trace.changes != checkpoint.changes:
        raise Restart(step, cause) from None
    return checkpoint.broken(cause)
