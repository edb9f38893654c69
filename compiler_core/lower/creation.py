"""Operators that make values from nothing: constants, ranges, masks of positions.

In: a node whose result depends on positions and numbers only. Out: one nest of a `Constant` or
`Position` and a store. A result that is one number everywhere is known by that number to its readers:
they do not load it. NB: `empty` gives zeros, which is one of the contents that it may have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType, stored_as
from compiler_core.ir.index import Index, index
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.scalars import F64, I64, Number, Scalar, cast
from compiler_core.lower.sizes import SizeNumber

__all__ = ["TABLE", "lower_created"]

aten = torch.ops.aten

Maker = Callable[[NestBuilder, DType, dict[str, Any]], Scalar]


def lower_created(make: Maker, env: Environment, node: fx.Node) -> Operand:
    """One nest that stores what `make` gives at each position."""
    fake = node.meta["val"]
    dtype = stored_as(fake.dtype)
    if dtype.name not in DTYPES:
        raise Refusal(f"no kernel computes in {dtype}")
    with env.nest(node, indices_of(fake.shape)) as nest:
        made = make(nest, dtype, env.arguments(node))
        target, value = env.store(nest, node, made), nest.number_of(made)
    if value is None:
        return target
    return replace(target, number=_rounded(value, dtype), through=frozenset({env.handle(node)}))


def _rounded(value: Number, dtype: DType) -> Number:
    """The number that a buffer of this type holds."""
    held: Number = torch.tensor(value, dtype=dtype.torch).item()
    return held


def number(nest: NestBuilder, value: Any, dtype: DType) -> Scalar:
    """A Python number, a size, or a tensor of one element as a scalar."""
    if isinstance(value, Operand):
        return cast(nest.load(value, [index(0)] * len(value.shape)), dtype)
    if isinstance(value, SizeNumber):
        return value.emit(nest, dtype)
    if isinstance(value, Index):
        return nest.position(value, dtype)
    return nest.constant(value, dtype)


def _filled(value: float, nest: NestBuilder, dtype: DType, _: dict[str, Any]) -> Scalar:
    return nest.constant(value, dtype)


def _argument(name: str, nest: NestBuilder, dtype: DType, given: dict[str, Any]) -> Scalar:
    return number(nest, given[name], dtype)


def _arange(nest: NestBuilder, dtype: DType, given: dict[str, Any]) -> Scalar:
    """start + position * step: in integers, or in f64 and rounded once."""
    start, step = given.get("start", 0), given.get("step", 1)
    place = nest.positions[0]
    if all(isinstance(x, (int, Index)) for x in (start, step)):
        return nest.position(place * index(step) + index(start), dtype if dtype.is_float else I64)
    return nest.position(place, F64) * number(nest, step, F64) + number(nest, start, F64)


def _eye(nest: NestBuilder, dtype: DType, given: dict[str, Any]) -> Scalar:
    row, column = nest.positions
    on_diagonal = nest.operation("eq", nest.position(row - column, I64), nest.constant(0, I64))
    return cast(on_diagonal, dtype)


def _rows() -> dict[Any, Maker]:
    zeros, ones = partial(_filled, 0), partial(_filled, 1)
    filled, scalar = partial(_argument, "fill_value"), partial(_argument, "s")
    value = partial(_argument, "value")
    return {
        aten.full.default: filled,
        aten.full_like.default: filled,
        aten.new_full.default: filled,
        aten.fill.Scalar: value,
        aten.fill.Tensor: value,
        aten.scalar_tensor.default: scalar,
        aten.zeros.default: zeros,
        aten.zeros_like.default: zeros,
        aten.new_zeros.default: zeros,
        aten.ones.default: ones,
        aten.ones_like.default: ones,
        aten.new_ones.default: ones,
        aten.empty.memory_format: zeros,
        aten.empty_like.default: zeros,
        aten.empty_strided.default: zeros,
        aten.new_empty.default: zeros,
        aten.new_empty_strided.default: zeros,
        aten.arange.default: _arange,
        aten.arange.start: _arange,
        aten.arange.start_step: _arange,
        aten.eye.default: _eye,
        aten.eye.m: _eye,
    }


TABLE: dict[Any, Any] = {op: partial(lower_created, make) for op, make in _rows().items()}
