"""The same program with every real number in f64: the yardstick for tolerances.

In: a `Program`. Out: one that rounds nowhere but in f64, to be run on f64 arguments. The error of any
other form is measured against it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.loop import Block, Call, Loop, Nest, Program, Reduce, Statement, Store

__all__ = ["in_float64"]


def in_float64(program: Program) -> Program:
    """`program` with all floating types replaced by f64. Integers and truth values stay."""
    buffers = {
        name: replace(buffer, dtype=_wide(buffer.dtype)) for name, buffer in program.buffers.items()
    }
    body = tuple(_nest(item) if isinstance(item, Nest) else _call(item) for item in program.body)
    return replace(program, buffers=buffers, body=body)


def _wide(dtype: DType) -> DType:
    return DTYPES["f64"] if dtype.is_float else dtype


def _nest(nest: Nest) -> Nest:
    return replace(nest, body=_block(nest.body))


def _block(block: Block) -> Block:
    return tuple(map(_statement, block))


def _statement(statement: Statement) -> Statement:
    match statement:
        case Store():
            return statement
        case Loop():
            return replace(statement, body=_block(statement.body))
        case Reduce():
            body = _block(statement.body)
            return replace(statement, dtype=_wide(statement.dtype), body=body)
    return replace(statement, dtype=_wide(statement.dtype))


def _call(call: Call) -> Call:
    args = tuple(map(_argument, call.args))
    return replace(call, args=args, kwargs=tuple((k, _argument(v)) for k, v in call.kwargs))


def _argument(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_argument, value))
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    return value
