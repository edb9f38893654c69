"""Memory and the launch grid: rows that need more than their operands' values.

Loads and stores hand addresses to `memory.py` after their mask is joined with the programs that are active.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from compiler_core.runtime.ttir_evaluator.folds import reduce, scan
from compiler_core.runtime.ttir_evaluator.parse import Operation, Region
from compiler_core.runtime.ttir_evaluator.values import Pointer, Value, as_tensor, poison, where

if TYPE_CHECKING:
    from compiler_core.runtime.ttir_evaluator.evaluate import Evaluation

__all__ = ["ACCESSES"]

Names = dict[str, Value]


def _program_id(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    x, y, _ = run.grid
    by_axis = {"x": run.programs % x, "y": run.programs // x % y, "z": run.programs // (x * y)}
    return (by_axis[op.text.split()[0]].int(),)


def _num_programs(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    return (torch.tensor([run.grid["xyz".index(op.text.split()[0])]], dtype=torch.int32),)


def _load(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    pointer, *rest = (names[name] for name in op.operands)
    assert isinstance(pointer, Pointer)
    own = as_tensor(rest[0]) if rest else None
    mask = run.mask(own, pointer.offset.dim() - 1)
    value = run.memory.load(op.line, pointer, mask, run.programs)
    if len(rest) < 2:
        return (value,)
    assert own is not None
    return (where(own, value, as_tensor(rest[1])),)


def _store(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    pointer, value, *rest = (names[name] for name in op.operands)
    assert isinstance(pointer, Pointer)
    shape = (len(run.programs), *_pointer_shape(op))
    mask = run.mask(as_tensor(rest[0]) if rest else None, len(shape) - 1)
    place = Pointer(pointer.base, pointer.offset.expand(shape), pointer.element)
    full = None if mask is None else mask.expand(shape)
    run.memory.store(op.line, place, as_tensor(value).expand(shape), full, run.programs)
    return ()


def _atomic_add(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    """Atomic additions. What was there before them, the result, depends on their order: poison."""
    pointer, value, *rest = (names[name] for name in op.operands)
    assert isinstance(pointer, Pointer)
    kind = op.text.split(",")[0].strip()
    if kind not in ("fadd", "add"):
        raise NotImplementedError(f"atomic {kind}")
    shape = (len(run.programs), *_pointer_shape(op))
    mask = run.mask(as_tensor(rest[0]) if rest else None, len(shape) - 1)
    place = Pointer(pointer.base, pointer.offset.expand(shape), pointer.element)
    full = None if mask is None else mask.expand(shape)
    run.memory.add(op.line, place, as_tensor(value).expand(shape), full)
    return (poison(as_tensor(value).dtype).expand(shape),)


def _assert(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    """A device assertion: raised here as an error of the program that runs, with the kernel's message."""
    condition = as_tensor(names[op.operands[0]])
    active = run.mask(None, condition.dim() - 1)
    if active is not None:
        condition = condition | ~active
    if not bool(condition.all()):
        raise IndexError(op.text.split('"')[1])
    return ()


def _pointer_shape(op: Operation) -> tuple[int, ...]:
    """The shape of a store: that of the pointer type, which stands first after the colon."""
    match = re.search(r" : \(?(?:tensor<((?:\d+x)*))?!tt\.ptr", op.text)
    return tuple(int(n) for n in (match.group(1) or "").split("x") if n) if match else ()


def _combine(run: Evaluation, names: Names) -> Callable[[Region, Sequence[Tensor]], list[Tensor]]:
    def combine(region: Region, values: Sequence[Tensor]) -> list[Tensor]:
        results = run.untraced().block(
            region.body, {**names, **dict(zip(region.arguments, values))}
        )
        return [as_tensor(value) for value in results]

    return combine


def _reduce(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    operands = [as_tensor(names[name]) for name in op.operands[: len(op.results)]]
    return reduce(op, operands, _combine(run, names))


def _scan(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    operands = [as_tensor(names[name]) for name in op.operands[: len(op.results)]]
    return scan(op, operands, _combine(run, names))


def _nothing(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    """Barriers and assumptions: operations run in order here, for all threads at once."""
    return ()


ACCESSES: dict[str, Callable[[Any, Operation, Names], Sequence[Value]]] = {
    "tt.get_program_id": _program_id,
    "tt.get_num_programs": _num_programs,
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _atomic_add,
    "tt.assert": _assert,
    "tt.reduce": _reduce,
    "tt.scan": _scan,
    "gpu.barrier": _nothing,
    "ttg.barrier": _nothing,
    "llvm.intr.assume": _nothing,
}
