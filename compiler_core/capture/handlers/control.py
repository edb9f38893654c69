"""Jumps and returns."""

from __future__ import annotations

from compiler_core.capture.comparisons import truth
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.values.constant import is_none
from compiler_core.stages import Instruction


def _jump_if(frame: SymbolicFrame, i: Instruction, condition: bool) -> None:
    if condition:
        assert i.target is not None
        frame.jump(i.target)


@handles("JUMP")
def jump(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, True)


@handles("POP_JUMP_IF_FALSE")
def pop_jump_if_false(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, not truth(frame.trace, frame.pop()))


@handles("POP_JUMP_IF_TRUE")
def pop_jump_if_true(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, truth(frame.trace, frame.pop()))


@handles("POP_JUMP_IF_NONE")
def pop_jump_if_none(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, is_none(frame.pop()))


@handles("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(frame: SymbolicFrame, i: Instruction) -> None:
    _jump_if(frame, i, not is_none(frame.pop()))


@handles("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(frame: SymbolicFrame, i: Instruction) -> None:
    if truth(frame.trace, frame.top()):
        frame.pop_raw()
    else:
        _jump_if(frame, i, True)


@handles("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(frame: SymbolicFrame, i: Instruction) -> None:
    if truth(frame.trace, frame.top()):
        _jump_if(frame, i, True)
    else:
        frame.pop_raw()


@handles("RETURN_VALUE")
def return_value(frame: SymbolicFrame, i: Instruction) -> None:
    frame.outcome = frame.pop_raw()
