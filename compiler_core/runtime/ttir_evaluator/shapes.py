"""Shapes and pointers: one row per operation that moves values without computing.

A broadcast does nothing: axes of size 1 are expanded where an operation needs them (`values.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor

from compiler_core.runtime.ttir_evaluator.parse import Operation
from compiler_core.runtime.ttir_evaluator.values import (
    TYPES,
    Pointer,
    Value,
    as_tensor,
    expanded,
    reshaped,
    together,
)

__all__ = ["SHAPES"]


def _splat(op: Operation, value: Value) -> Value:
    rank = len(op.types[0].shape)
    return reshaped(value, lambda t: t.reshape(t.shape[0], *([1] * rank)))


def _unsplat(op: Operation, value: Value) -> Value:
    return reshaped(value, lambda t: t.reshape(t.shape[0]))


def _broadcast(op: Operation, value: Value) -> Value:
    return value


def _expand_dims(op: Operation, value: Value) -> Value:
    axis = int(op.attribute("axis") or 0) + 1
    return reshaped(value, lambda t: t.unsqueeze(axis))


def _reshape(op: Operation, value: Value) -> Value:
    source, shape = op.operand_types[0].shape, op.types[0].shape
    return reshaped(value, lambda t: expanded(t, source).reshape(t.shape[0], *shape))


def _transpose(op: Operation, value: Value) -> Value:
    match = re.search(r"order = array<i32: ([^>]*)>", op.text)
    order = [int(axis) + 1 for axis in match.group(1).split(",")] if match else []
    return reshaped(value, lambda t: t.permute(0, *order))


def _make_range(op: Operation) -> Tensor:
    start, end = int(op.attribute("start") or 0), int(op.attribute("end") or 0)
    return torch.arange(start, end, dtype=torch.int32)[None]


def _addptr(op: Operation, pointer: Value, offset: Value) -> Pointer:
    assert isinstance(pointer, Pointer)
    return Pointer(pointer.base, pointer.offset + as_tensor(offset).long(), pointer.element)


def _bitcast(op: Operation, value: Value) -> Value:
    """The same bits as another type; of a pointer, the same place as another type (i1 as i8)."""
    kind = op.types[0]
    if isinstance(value, Pointer):
        return Pointer(value.base, value.offset, kind.pointee or value.element)
    return value.contiguous().view(TYPES[kind.element])


def _select(op: Operation, condition: Value, a: Value, b: Value) -> Value:
    chosen = as_tensor(condition)
    if isinstance(a, Pointer) and isinstance(b, Pointer):
        if a.base != b.base:
            raise NotImplementedError("arith.select between pointers into two tensors")
        return Pointer(a.base, torch.where(chosen, a.offset, b.offset), a.element)
    return torch.where(chosen, as_tensor(a), as_tensor(b))


def _join(op: Operation, a: Value, b: Value) -> Tensor:
    return torch.stack(together(as_tensor(a), as_tensor(b)), -1)


def _split(op: Operation, value: Value) -> tuple[Tensor, Tensor]:
    both = as_tensor(value)
    return both[..., 0], both[..., 1]


def _cat(op: Operation, a: Value, b: Value) -> Tensor:
    shape = op.operand_types[0].shape
    return torch.cat([expanded(as_tensor(v), shape) for v in (a, b)], 1)


SHAPES: dict[str, Callable[..., Value | tuple[Tensor, ...]]] = {
    "tt.splat": _splat,
    "tt.unsplat": _unsplat,
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _expand_dims,
    "tt.reshape": _reshape,
    "tt.trans": _transpose,
    "tt.make_range": _make_range,
    "tt.addptr": _addptr,
    "tt.bitcast": _bitcast,
    "arith.select": _select,
    "tt.join": _join,
    "tt.split": _split,
    "tt.cat": _cat,
}
