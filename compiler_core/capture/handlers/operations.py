"""Operators and comparisons."""

from __future__ import annotations

from compiler_core.capture.break_kinds.control_flow import TENSOR_LOGIC
from compiler_core.capture.breaks import Break
from compiler_core.capture.comparisons import compare, contains, is_same, truth
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.handlers.table import handles
from compiler_core.capture.operators import binary, unary
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.tensor import TensorValue
from compiler_core.stages import Instruction


@handles("BINARY_OP")
def binary_op(frame: SymbolicFrame, i: Instruction) -> None:
    left, right = frame.pop_n(2)
    frame.push(binary(frame.trace, i.arg, left, right))


@handles("COMPARE_OP")
def compare_op(frame: SymbolicFrame, i: Instruction) -> None:
    left, right = frame.pop_n(2)
    frame.push(compare(frame.trace, i.arg, left, right))


@handles("COMPARE_OP_BOOL")
def compare_op_bool(frame: SymbolicFrame, i: Instruction) -> None:
    left, right = frame.pop_n(2)
    frame.push(Constant(truth(frame.trace, compare(frame.trace, i.arg, left, right))))


@handles("IS_OP")
def is_op(frame: SymbolicFrame, i: Instruction) -> None:
    left, right = frame.pop_n(2)
    frame.push(Constant(is_same(frame.trace, left, right) != bool(i.arg)))


@handles("CONTAINS_OP")
def contains_op(frame: SymbolicFrame, i: Instruction) -> None:
    needle, container = frame.pop_n(2)
    frame.push(Constant(contains(frame.trace, container, needle) != bool(i.arg)))


@handles("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
def unary_op(frame: SymbolicFrame, i: Instruction) -> None:
    frame.push(unary(frame.trace, i.op, frame.pop()))


@handles("UNARY_NOT")
def unary_not(frame: SymbolicFrame, i: Instruction) -> None:
    value = frame.pop()
    if isinstance(value, TensorValue):
        raise Break(TENSOR_LOGIC)
    frame.push(Constant(not truth(frame.trace, value)))


@handles("TO_BOOL")
def to_bool(frame: SymbolicFrame, i: Instruction) -> None:
    """A tensor stays as it is: the jump that follows branches on it."""
    value = frame.pop()
    frame.push(value if isinstance(value, TensorValue) else Constant(truth(frame.trace, value)))
