"""Why a graph ends before its function does: the kinds, and the exceptions of ours that carry them.

In: a kind of the catalogue and the facts of one case. Out: `BreakInfo`, which the replacement's
comments, the recording and `fullgraph=True` show. A break is never an error of the user's program:
the instruction runs natively and capture goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compiler_core.capture.break_kinds.autograd import AUTOGRAD, HOOKS
from compiler_core.capture.break_kinds.calls import DISABLED, GLOBAL_STATE, RANDOM, UNKNOWN_CALL
from compiler_core.capture.break_kinds.control_flow import (
    ITERATION,
    OPCODE,
    SUSPENDED,
    TENSOR_BRANCH,
    TOO_DEEP,
    UNCAUGHT,
)
from compiler_core.capture.break_kinds.objects import ATTRIBUTE, NOT_REBUILT, SIDE_EFFECT
from compiler_core.capture.break_kinds.output import PRINTS
from compiler_core.capture.break_kinds.tensors import (
    DATA_SHAPE,
    LAZY_BIT,
    OPERATOR_RAISES,
    OVERLAP,
    SUBCLASS,
)
from compiler_core.capture.break_kinds.values import IDENTITY, SCALAR_READ, UNHASHABLE
from compiler_core.capture.values.objects import Instance
from compiler_core.errors import Kind
from compiler_core.provenance import Span
from compiler_core.stages import BreakInfo

__all__ = ["ATTRIBUTE", "AUTOGRAD", "DATA_SHAPE", "DISABLED", "GLOBAL_STATE", "HOOKS", "IDENTITY", "ITERATION", "LAZY_BIT", "NOT_REBUILT", "OPCODE", "OPERATOR_RAISES", "OVERLAP", "PRINTS", "RANDOM", "SCALAR_READ", "SIDE_EFFECT", "SUBCLASS", "SUSPENDED", "TENSOR_BRANCH", "TOO_DEEP", "UNCAUGHT", "UNHASHABLE", "UNKNOWN_CALL", "Again", "Break", "CannotCapture", "Raised", "Restart", "break_info", "describe", "raise_real"]  # fmt: skip

Because = tuple[str, Any, Any, dict[str, Any]]


class CannotCapture(Exception):
    """The frame stays in eager as a whole. The text is the reason, for the recording.

    `once`: the reason is the state of this call, not the code; ask again on the next one.
    """

    def __init__(self, reason: str, once: bool = False):
        self.once = once
        super().__init__(reason)


class Break(Exception):
    """The instruction at hand cannot be part of the graph.

    `because`: (guard kind, source, value, data) of what was found; a version that is broken here is
    for values of this kind only, also when a later attempt does not look at them again.
    """

    def __init__(self, kind: Kind, detail: str = "", because: Sequence[Because] = ()):
        self.kind, self.detail, self.because = kind, detail, tuple(because)
        self.user_stack: tuple[str, ...] = ()
        super().__init__(f"{kind.sentence}: {detail}" if detail else kind.sentence)


class Restart(Exception):
    """Trace again, and break in front of outer step `step`: the state was changed before the break."""

    def __init__(self, step: int, cause: Break):
        self.step, self.cause = step, cause
        super().__init__(f"break at step {step}: {cause}")


class Again(Exception):
    """Trace again: what was learnt is kept outside of the trace."""


class Raised(Exception):
    """The traced program raised; `value` models the exception.

    settled: its `__context__` is set already, or stays as it is because the exception is raised again.
    """

    def __init__(self, value: Instance, settled: bool = False):
        self.value, self.settled = value, settled
        super().__init__(value.cls.__name__)


def raise_real(error: BaseException) -> Raised:
    """`Raised` for an exception that a host function raised while it ran on constants."""
    from compiler_core.capture.values.constant import Constant, is_constant
    from compiler_core.capture.values.objects import ObjectValue

    args = tuple(Constant(a) if is_constant(a) else ObjectValue(a) for a in error.args)
    return Raised(Instance(type(error), args=args, real=error))


def describe(exception: Instance) -> str:
    """'ValueError: text' of a modelled exception."""
    text = ", ".join(arg.describe() for arg in exception.args or ())
    return f"{exception.cls.__name__}: {text}" if text else exception.cls.__name__


def break_info(
    cause: Break, where: Span | None, alive: Iterable[str], resumes: Iterable[str]
) -> BreakInfo:
    """The record of a break."""
    kind = cause.kind
    return BreakInfo(
        kind.code, kind.sentence, cause.detail, kind.hints, where, cause.user_stack, tuple(alive), tuple(resumes)
    )  # fmt: skip
