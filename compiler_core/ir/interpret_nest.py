"""The meaning of one nest: a reference interpreter over whole iteration spaces.

In: a nest, flat memory, sizes. Out: the stores done. The one idea: an axis is a dimension of
broadcast tensors, so a value at depth d is a tensor of d dimensions (1 where it does not depend on an
axis), entering a loop appends dimensions, and a reduction folds the last ones away. Nothing is fast
here and everything is torch's own arithmetic: one rounding per statement, halves computed in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from compiler_core.ir.checks import CHECKS
from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import FloorDiv, Index, Max, Min, Mod, Product, Sum
from compiler_core.ir.loop import (
    Axis,
    Block,
    Constant,
    Load,
    Loop,
    Nest,
    Place,
    Position,
    Reduce,
    Statement,
    Store,
    Value,
)
from compiler_core.ir.ops import OPS, REDUCTIONS

__all__ = ["Trace", "run_nest"]

Trace = Callable[[str, str, torch.Tensor], None]
_CHUNK = 1 << 22  # points of an iteration space that are evaluated at once


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a block sees: axes as (name, extent), values by name, each of as many dimensions."""

    nest: str
    memory: Mapping[str, torch.Tensor]
    sizes: Mapping[str, int]
    device: torch.device
    trace: Trace | None
    axes: tuple[tuple[str, int], ...] = ()
    values: dict[str, torch.Tensor] = field(default_factory=dict)

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(extent for _, extent in self.axes)

    def get(self, name: str) -> torch.Tensor:
        """A value with as many dimensions as there are axes here."""
        value = self.values[name]
        return value.reshape([*value.shape, *[1] * (len(self.axes) - value.dim())])

    def enter(self, axes: Sequence[Axis]) -> _Scope:
        """The scope inside a loop over these axes."""
        sizes = [(axis.name, axis.extent.evaluate(self.sizes)) for axis in axes]
        inner = replace(self, axes=(*self.axes, *sizes), values=dict(self.values))
        for depth, (name, extent) in enumerate(sizes, len(self.axes)):
            inner.values[name] = torch.arange(extent, device=self.device).reshape(
                *[1] * depth, extent
            )
        return inner

    def fail(self, statement: str, problem: str) -> IndexError:
        return IndexError(f"nest {self.nest}, statement {statement}: {problem}")


def run_nest(
    nest: Nest,
    memory: Mapping[str, torch.Tensor],
    sizes: Mapping[str, int],
    device: torch.device,
    trace: Trace | None = None,
) -> None:
    """Do the stores of a nest.

    `memory` maps each buffer to its elements, a tensor of one dimension. `trace` gets (nest,
    statement, value over all axes around it). Raises IndexError for an offset outside a buffer, for
    two positions of the axes that store to one place, and for the maximum of no elements; the error of
    a `place` for a position outside its dimension.
    """
    scope = _Scope(nest.name, memory, sizes, device, trace).enter(nest.axes)
    if 0 in scope.extents:
        return
    points = math.prod(scope.extents) * _inner_points(nest.body, sizes)
    if trace is not None or points <= _CHUNK or not nest.axes:
        _run_block(nest.body, scope)
        return
    name, extent = scope.axes[0]
    whole = scope.values[name]
    step = max(1, extent * _CHUNK // points)
    for first in range(0, extent, step):
        part = whole[first : first + step]
        axes = ((name, len(part)), *scope.axes[1:])
        _run_block(nest.body, replace(scope, axes=axes, values={**scope.values, name: part}))


def _inner_points(block: Block, sizes: Mapping[str, int]) -> int:
    """The size of the largest space of loops inside a block."""
    inner = [
        math.prod(axis.extent.evaluate(sizes) for axis in statement.axes)
        * _inner_points(statement.body, sizes)
        for statement in block
        if isinstance(statement, Loop | Reduce)
    ]
    return max([1, *inner])


def _run_block(block: Block, scope: _Scope) -> None:
    for statement in block:
        match statement:
            case Store():
                _store(statement, scope)
            case Loop():
                inner = scope.enter(statement.axes)
                if 0 not in inner.extents:
                    _run_block(statement.body, inner)
            case _:
                value = scope.values[statement.name] = _VALUES[type(statement)](statement, scope)
                if scope.trace:
                    scope.trace(scope.nest, statement.name, value.expand(scope.extents))


# ---------------------------------------------------------------------------------- statements


def _constant(statement: Constant, scope: _Scope) -> torch.Tensor:
    value = torch.tensor(statement.value, dtype=statement.dtype.torch, device=scope.device)
    return value.reshape([1] * len(scope.axes))


def _value(statement: Value, scope: _Scope) -> torch.Tensor:
    args = [_computable(scope.get(name)) for name in statement.args]
    result: torch.Tensor = OPS[statement.op].reference(*args)
    return result.to(statement.dtype.torch)


def _position(statement: Position, scope: _Scope) -> torch.Tensor:
    return _evaluate(statement.index, scope).to(statement.dtype.torch)


def _place(statement: Place, scope: _Scope) -> torch.Tensor:
    check, extent = CHECKS[statement.check], statement.extent.evaluate(scope.sizes)
    value = scope.get(statement.value).long()
    at = torch.where(value < 0, value + extent, value) if check.wraps else value
    outside = (at < 0) | (at >= extent)
    if bool(outside.any()):
        raise check.failure(int(value[outside][0]), statement.dimension, extent)
    return at


def _load(statement: Load, scope: _Scope) -> torch.Tensor:
    memory = scope.memory[statement.buffer]
    offset = _evaluate(statement.offset, scope)
    if statement.mask is None:
        _check(statement.name, statement.buffer, offset, scope)
        return _gather(memory, offset)
    mask, offset = _together(scope.get(statement.mask), offset)
    _check(statement.name, statement.buffer, offset[mask], scope)
    other = torch.tensor(statement.other, dtype=memory.dtype, device=scope.device)
    if len(memory) == 0:
        return other.expand(mask.shape)
    return torch.where(mask, _gather(memory, torch.where(mask, offset, 0)), other)


def _store(statement: Store, scope: _Scope) -> None:
    label = f"store_{statement.buffer}"
    memory = scope.memory[statement.buffer]
    offset = _evaluate(statement.offset, scope)
    _check(label, statement.buffer, offset, scope)
    if not statement.adds:
        places = offset.expand(scope.extents).flatten()
        if len(places) > 1 and int(torch.bincount(places).max()) > 1:
            raise scope.fail(label, "two positions of the axes write the same element")
    value, offset = _together(scope.get(statement.value), offset)
    if value.dtype != memory.dtype:
        raise TypeError(
            f"nest {scope.nest}, statement {label}: the value is {value.dtype}, "
            f"the buffer {memory.dtype}"
        )
    if statement.adds:
        _add(memory, offset.expand(scope.extents), value.expand(scope.extents))
    else:
        _bits(memory)[offset] = _bits(value)


def _add(memory: torch.Tensor, offset: torch.Tensor, value: torch.Tensor) -> None:
    """Add elements to memory: floats in f64, rounded once; integers wrap."""
    wide = memory.double() if memory.is_floating_point() else memory.clone()
    wide.index_add_(0, offset.flatten(), value.flatten().to(wide.dtype))
    memory.copy_(wide)


def _reduce(statement: Reduce, scope: _Scope) -> torch.Tensor:
    outer = len(scope.axes)
    inner = scope.enter(statement.axes)
    dtype = statement.dtype
    folded = inner.extents[outer:]
    if 0 in folded:
        empty = REDUCTIONS[statement.kind].empty
        if empty is None:
            raise scope.fail(statement.name, f"{statement.kind} over no elements has no value")
        return torch.full([1] * outer, empty, dtype=dtype.torch, device=scope.device)
    _run_block(statement.body, inner)
    value = inner.get(statement.value)
    flat = (
        value.expand(*value.shape[:outer], *folded).flatten(outer) if folded else value[..., None]
    )
    return _fold(statement.kind, flat, dtype).to(dtype.torch)


_VALUES: dict[type[Statement], Callable[[Any, _Scope], torch.Tensor]] = {
    Constant: _constant,
    Value: _value,
    Position: _position,
    Place: _place,
    Load: _load,
    Reduce: _reduce,
}


def _fold(kind: str, value: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Fold the last dimension."""
    reference = REDUCTIONS[kind].reference
    if kind in ("sum", "prod"):
        # integers wrap in the statement's type; floats are folded in f64, so that the reference has
        # no error of an order of its own, and rounded once
        folded = torch.float64 if dtype.is_float else dtype.torch
        result = reference(_computable(value), dim=-1, dtype=folded)
    elif value.dtype is torch.bool and kind not in ("any", "all"):
        result = reference(value.to(torch.uint8), dim=-1)
    else:
        result = reference(_computable(value), dim=-1)
    assert isinstance(result, torch.Tensor)
    return result


# ---------------------------------------------------------------------------------- elements


def _computable_type(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype


def _computable(value: torch.Tensor) -> torch.Tensor:
    """Half types and fp8 compute in f32."""
    return value.to(_computable_type(value.dtype))


def _together(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both broadcast to one shape."""
    shape = torch.broadcast_shapes(a.shape, b.shape)  # type: ignore[no-untyped-call]
    return a.expand(shape), b.expand(shape)


def _bits(value: torch.Tensor) -> torch.Tensor:
    """fp8 cannot be indexed on every device: move its bytes instead."""
    is_fp8 = value.dtype.is_floating_point and value.dtype.itemsize == 1
    return value.view(torch.uint8) if is_fp8 else value


def _gather(memory: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    return _bits(memory)[offset].view(memory.dtype)


def _check(label: str, buffer: str, offset: torch.Tensor, scope: _Scope) -> None:
    """Refuse an offset outside its buffer."""
    length = len(scope.memory[buffer])
    if offset.numel() == 0:
        return
    low, high = int(offset.min()), int(offset.max())
    if low < 0 or high >= length:
        bad = low if low < 0 else high
        raise scope.fail(label, f"offset {bad} is outside {buffer}, which has {length} elements")


def _evaluate(e: Index, scope: _Scope) -> torch.Tensor:
    """An index at every position of the axes."""
    value: int | torch.Tensor = _number(e, scope)
    if isinstance(value, torch.Tensor):
        return value
    return torch.tensor(value, device=scope.device).reshape([1] * len(scope.axes))


def _number(e: Index, scope: _Scope) -> Any:
    if e.names <= scope.sizes.keys():
        return e.evaluate(scope.sizes)
    parts = [_number(child, scope) for child in e.children]
    match e:
        case Sum():
            return sum(parts)
        case Product():
            return math.prod(parts)
        case FloorDiv():
            return parts[0] // parts[1]
        case Mod():
            return parts[0] % parts[1]
        case Min() | Max():
            pick = torch.minimum if isinstance(e, Min) else torch.maximum
            return pick(*(torch.as_tensor(part, device=scope.device) for part in parts))
    return scope.get(str(e)).long()
