"""Control flow: `scf.if`, `scf.for`, `scf.while`, also where programs go different ways.

A branch or a loop body runs for all programs of the chunk under the mask of those that are in it; the
others keep their values. So a loop lasts as long as its longest program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from compiler_core.runtime.ttir_evaluator.parse import Operation
from compiler_core.runtime.ttir_evaluator.values import Pointer, Value, as_tensor, together, where

if TYPE_CHECKING:
    from compiler_core.runtime.ttir_evaluator.evaluate import Evaluation

__all__ = ["CONTROL"]

Names = dict[str, Value]


def _if(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    condition = as_tensor(names[op.operands[0]])
    otherwise = op.regions[1].body if len(op.regions) > 1 else []
    if bool(condition.all()):
        return run.block(op.regions[0].body, dict(names))
    if not bool(condition.any()):
        return run.block(otherwise, dict(names))
    condition = condition.expand(len(run.programs))
    then = run.masked_by(condition).block(op.regions[0].body, dict(names))
    return _merged(condition, then, run.masked_by(~condition).block(otherwise, dict(names)) or then)


def _for(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    counter_name = op.operands[0]
    counter, end, step = (as_tensor(names[name]) for name in op.operands[1:4])
    carried = _carried(op.text)
    values = [names[start] for _, start in carried]
    while bool((active := counter < end).any()):
        inner = run if bool(active.all()) else run.masked_by(active)
        scope = {**names, counter_name: counter}
        scope.update(zip([name for name, _ in carried], values))
        values = _merged(active, inner.block(op.regions[0].body, scope), values)
        counter = counter + step
    return values


def _while(run: Evaluation, op: Operation, names: Names) -> Sequence[Value]:
    carried = _carried(op.text)
    values = [names[start] for _, start in carried]
    before, after = op.regions
    active = torch.ones(1, dtype=torch.bool)
    passed: list[Value] | None = None
    while True:
        scope = {**names, **dict(zip([name for name, _ in carried], values))}
        condition, *now = run.masked_by(active).block(before.body, scope)
        passed = now if passed is None else _merged(active, now, passed)
        active = active & as_tensor(condition)
        if not bool(active.any()):
            return passed
        scope = {**names, **dict(zip(after.arguments, passed))}
        values = _merged(active, run.masked_by(active).block(after.body, scope), values)


def _merged(active: Tensor, new: Sequence[Value], old: Sequence[Value]) -> list[Value]:
    """New values for the programs that are active, old ones for the others."""
    return [_merge(active, a, b) for a, b in zip(new, old)]


def _merge(active: Tensor, new: Value, old: Value) -> Value:
    if bool(active.all()):
        return new
    if isinstance(new, Pointer) or isinstance(old, Pointer):
        if not (isinstance(new, Pointer) and isinstance(old, Pointer) and new.base == old.base):
            raise NotImplementedError("programs that diverge to pointers into two tensors")
        offset = as_tensor(_merge(active, new.offset, old.offset))
        return Pointer(new.base, offset, new.element)
    condition = active.reshape(-1, *([1] * (new.dim() - 1)))
    return where(condition, *together(new, old))


def _carried(text: str) -> list[tuple[str, str]]:
    """(name inside the loop, its first value): `iter_args(%a = %b)`, or `(%a = %b)` of a while."""
    head = text.partition(" : ")[0].partition(" -> ")[0]
    pairs = re.findall(r"(%[\w.-]+) = (%[\w.-]+(?:#\d+)?)", head)
    return pairs[1:] if text.lstrip().startswith("%") else pairs


CONTROL: dict[str, Callable[[Any, Operation, Names], Sequence[Value]]] = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
}
