"""Jumps and returns."""

from __future__ import annotations

from compiler_core.capture.breaks import Break
from compiler_core.capture.comparisons import truth
from compiler_core.capture.decisions import kind_of_decision
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import is_none
from compiler_core.capture.values.tensor import TensorValue
from compiler_core.stages import Instruction


def _decide(frame: SymbolicFrame, i: Instruction, value: Value) -> bool:
    """The truth of what a jump looks at. Raises Break for a tensor."""
    if isinstance(value, TensorValue):
        raise Break(kind_of_decision(i.span))
    return truth(frame.trace, value)


def _jump_if(frame: SymbolicFrame, i: Instruction, condition: bool) -> None:
    if condition:
        assert i.target is not None
        frame.jump(i.target)


@handles("JUMP")
def jump(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, True)


@handles("POP_JUMP_IF_FALSE")
def pop_jump_if_false(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, not _decide(frame, i, frame.pop()))


@handles("POP_JUMP_IF_TRUE")
def pop_jump_if_true(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, _decide(frame, i, frame.pop()))


@handles("POP_JUMP_IF_NONE")
def pop_jump_if_none(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, is_none(frame.pop()))


@handles("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, not is_none(frame.pop()))


@handles("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(frame: SymbolicFrame, i: Instruction) -> None:
    if _decide(frame, i, frame.top()):
        frame.pop_raw()
    else:
        _jump_if(frame, i, True)


@handles("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(frame: SymbolicFrame, i: Instruction) -> None:
    if _decide(frame, i, frame.top()):
        _jump_if(frame, i, True)
    else:
        frame.pop_raw()


@handles("RETURN_VALUE")
def return_value(frame: SymbolicFrame, i: Instruction) -> None:
    frame.outcome = frame.pop_raw()
