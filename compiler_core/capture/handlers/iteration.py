"""Loops."""

from __future__ import annotations

from compiler_core.capture.breaks import Raised
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.iteration import iterator_of, length, next_item
from compiler_core.stages import Instruction


@handles("GET_ITER")
def get_iter(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(iterator_of(frame.trace, frame.pop()))


@handles("FOR_ITER")
def for_iter(frame: SymbolicFrame, i: Instruction) -> None:
    try:
        frame.push(next_item(frame.trace, frame.top()))
    except Raised as raised:
        if not issubclass(raised.value.cls, StopIteration):
            raise
        frame.pop_raw()
        assert i.target is not None
        frame.jump(i.target)


@handles("GET_LEN")
def get_len(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(length(frame.trace, frame.top()))
