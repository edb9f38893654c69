"""Runs a kernel's TTIR on CPU tensors: every program of the launch at once, one torch call an operation.

In: a parsed `Function`, the arguments in order, the grid. Out: the stores. It is the real compiled
artifact that runs, after Triton's own passes, so what it gets right is what the GPU is asked to do.

Programs are numbered along the first axis of every value and run in chunks, so that no value has more
than 4 million elements. Where control flow differs between programs, both sides run under a mask: a
loop goes on while any program is in it, and those that left keep their values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from compiler_core.errors import InternalError, register
from compiler_core.runtime.ttir_evaluator.accesses import ACCESSES
from compiler_core.runtime.ttir_evaluator.arith import COMPUTE
from compiler_core.runtime.ttir_evaluator.control import CONTROL
from compiler_core.runtime.ttir_evaluator.folds import dot
from compiler_core.runtime.ttir_evaluator.memory import BAD_ACCESS, Memory
from compiler_core.runtime.ttir_evaluator.parse import (
    Function,
    Operation,
    operations_of,
)
from compiler_core.runtime.ttir_evaluator.shapes import SHAPES
from compiler_core.runtime.ttir_evaluator.values import TYPES, Pointer, Value

__all__ = ["OPERATIONS", "Evaluation", "Trace", "evaluate"]

UNKNOWN = register(
    "CC620",
    "the evaluator does not know a TTIR operation",
    "Kernels run on a CPU by evaluating their compiled TTIR; this operation has no row in the tables.",
    "If you edited the kernel, use operations that the evaluator has; otherwise report it.",
)

Trace = list[tuple[int, str, Value]]
_CHUNK = 1 << 22


def evaluate(
    function: Function,
    arguments: Sequence[Any],
    grid: Sequence[int],
    trace: Trace | None = None,
    chunk: int = _CHUNK,
) -> None:
    """Run all programs. Tensors are written in place.

    `arguments`: tensors and numbers in the order of the function. `trace` takes (TTIR line, SSA name,
    value) of every operation, in order. `chunk`: elements of the largest value of one step.
    Raises InternalError for an operation without a row (CC620), an access outside a tensor (CC621), a race
    (CC622).
    """
    sizes = [*grid, 1, 1][:3]
    total = math.prod(sizes)
    named = {a.name: value for a, value in zip(function.arguments, arguments, strict=True)}
    tensors = {name: v for name, v in named.items() if isinstance(v, Tensor)}
    _check_alignment(function, tensors)
    memory = Memory(tensors, _stored(function))
    widest = max(
        (math.prod(t.shape) for op in operations_of(function.body) for t in op.types), default=1
    )
    step = max(1, chunk // max(widest, 1))
    for first in range(0, total, step):
        programs = torch.arange(first, min(total, first + step), dtype=torch.int64)
        run = Evaluation(memory, programs, (sizes[0], sizes[1], sizes[2]), trace)
        run.block(
            function.body, {f"%{a.name}": _argument(a, named[a.name]) for a in function.arguments}
        )


def _argument(argument: Any, value: Any) -> Value:
    if isinstance(value, Tensor):
        return Pointer(
            argument.name, torch.zeros(1, dtype=torch.int64), argument.type.pointee or ""
        )
    return torch.tensor([value], dtype=TYPES[argument.type.element])


def _check_alignment(function: Function, tensors: dict[str, Tensor]) -> None:
    """The compiled code may rely on `tt.divisibility` of a pointer."""
    for argument in function.arguments:
        tensor = tensors.get(argument.name)
        if tensor is not None and tensor.numel() and tensor.data_ptr() % argument.divisibility:
            raise InternalError(
                BAD_ACCESS,
                f"{argument.name} is not aligned to {argument.divisibility} bytes, as the kernel was compiled for",
            )


def _stored(function: Function) -> set[str]:
    """Arguments that some store may write: those whose pointers reach one."""
    made_from: dict[str, set[str]] = {
        f"%{a.name}": {a.name} for a in function.arguments if a.type.pointee
    }
    reached: set[str] = set()
    for op in operations_of(function.body):
        bases = set().union(*(made_from.get(name, set()) for name in op.operands))
        for result in op.results:
            made_from[result] = bases if op.name != "tt.load" else set()
        if op.name in ("tt.store", "tt.atomic_rmw"):
            reached |= made_from.get(op.operands[0], set())
    return reached


Names = dict[str, Value]


@dataclass(slots=True)
class Evaluation:
    """A chunk of programs in execution. `active` is None while all of them are."""

    memory: Memory
    programs: Tensor
    grid: tuple[int, int, int]
    trace: Trace | None = None
    active: Tensor | None = field(default=None)

    def block(self, body: list[Operation], names: Names) -> list[Value]:
        """Run operations; the operands of the terminator are the block's values."""
        for op in body:
            if op.name in _TERMINATORS:
                return [names[name] for name in op.operands]
            for name, value in zip(op.results, self.operation(op, names)):
                names[name] = value
                if self.trace is not None:
                    self.trace.append((op.line, name, value))
        return []

    def operation(self, op: Operation, names: Names) -> Sequence[Value]:
        row = OPERATIONS.get(op.name)
        if row is None:
            raise InternalError(UNKNOWN, f"{op.name} (TTIR line {op.line})")
        try:
            return row(self, op, names)
        except InternalError:
            raise
        except (NotImplementedError, KeyError, TypeError) as error:
            raise InternalError(UNKNOWN, f"{op.name} (TTIR line {op.line}): {error}") from error

    def untraced(self) -> Evaluation:
        """For regions whose values are no values of the program, such as a reduction's."""
        return Evaluation(self.memory, self.programs, self.grid, None, self.active)

    def masked_by(self, condition: Tensor) -> Evaluation:
        """The same programs, of which only those run for which the condition holds."""
        both = condition if self.active is None else self.active & condition
        return Evaluation(
            self.memory, self.programs, self.grid, self.trace, both.expand(len(self.programs))
        )

    def mask(self, own: Tensor | None, rank: int) -> Tensor | None:
        """A memory operation's mask together with the active programs."""
        if self.active is None:
            return own
        active = self.active.reshape(-1, *([1] * rank))
        return active if own is None else own & active


_TERMINATORS = frozenset(
    {"tt.return", "tt.reduce.return", "tt.scan.return", "scf.yield", "scf.condition"}
)

Row = Callable[[Evaluation, Operation, Names], Sequence[Value]]


def _computing(function: Callable[..., Any]) -> Row:
    """A row for an operation that sees its operands only."""

    def row(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
        result = function(op, *(names[name] for name in op.operands))
        return result if isinstance(result, tuple) else (result,)

    return row


OPERATIONS: dict[str, Row] = {
    **{name: _computing(row) for name, row in {**COMPUTE, **SHAPES, "tt.dot": dot}.items()},
    **ACCESSES,
    **CONTROL,
}
