"""Moves what does not change in a reduction or loop out of it.

    for r<8: m = load a[i]; e = exp m; x = load b[i*8 + r]; y = mul x e; store c[i*8 + r] = y
    becomes
    m = load a[i]; e = exp m; for r<8: x = load b[i*8 + r]; y = mul x e; store c[i*8 + r] = y

Requires that no statement of the nest loads what it stores. NB: an integer division stays where it
is: outside, it would run even if the loop runs zero times. So does the check of a position, unless the
loop surely runs.
"""

from __future__ import annotations

from dataclasses import replace

from compiler_core.fuse.blocks import defined, used, walk, with_body
from compiler_core.fuse.limits import DIVISIONS
from compiler_core.ir.index import bounds
from compiler_core.ir.loop import (
    Axis,
    Block,
    Load,
    Loop,
    Nest,
    Place,
    Reduce,
    Statement,
    Store,
    Value,
)

__all__ = ["hoist_invariants"]


def hoist_invariants(nest: Nest) -> Nest:
    """The nest with each statement in the outermost block where its operands are known."""
    stored = frozenset(s.buffer for s in walk(nest.body) if isinstance(s, Store))
    body = _hoisted(nest.body, stored)
    return nest if body == nest.body else replace(nest, body=body)


def _hoisted(block: Block, stored: frozenset[str]) -> Block:
    """The block with the invariants of its inner blocks before them."""
    result: list[Statement] = []
    for s in block:
        if isinstance(s, Reduce | Loop):
            inner = _hoisted(s.body, stored)
            moved, stays = _divide(inner, s.axes, stored)
            result += moved
            s = with_body(s, stays)
        result.append(s)
    return tuple(result)


def _divide(block: Block, axes: tuple[Axis, ...], stored: frozenset[str]) -> tuple[Block, Block]:
    """The statements that do not depend on the axes of the loop around them, and the others."""
    varying = {axis.name for axis in axes}
    surely_runs = all((bounds(axis.extent, {})[0] or 0) > 0 for axis in axes)
    moved: list[Statement] = []
    stays: list[Statement] = []
    for s in block:
        if _can_move(s, stored, surely_runs) and varying.isdisjoint(used(s)):
            moved.append(s)
            continue
        stays.append(s)
        name = defined(s)
        if name is not None:
            varying.add(name)
    return tuple(moved), tuple(stays)


def _can_move(s: Statement, stored: frozenset[str], surely_runs: bool) -> bool:
    match s:
        case Place():
            return surely_runs
        case Store() | Loop():
            return False
        case Load(buffer=buffer):
            return buffer not in stored
        case Value(op=op, dtype=dtype):
            return dtype.is_float or op not in DIVISIONS
    return True
