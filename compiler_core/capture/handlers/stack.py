"""Moving values on the stack."""

from __future__ import annotations

from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.values.base import NULL
from compiler_core.stages import Instruction


@handles("NOP")
def nop(frame: SymbolicFrame, i: Instruction) -> None:
    pass


@handles("POP_TOP")
def pop_top(frame: SymbolicFrame, i: Instruction) -> None:
    frame.pop_raw()


@handles("COPY")
def copy(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(frame.stack[-i.arg])


@handles("SWAP")
def swap(frame: SymbolicFrame, i: Instruction) -> None:
    stack = frame.stack
    stack[-1], stack[-i.arg] = stack[-i.arg], stack[-1]


@handles("PUSH_NULL")
def push_null(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(NULL)
