"""Loops in the order of memory, and as few as possible.

In: a nest. Out: an equal nest whose axes (its own, and those of each loop and reduction inside) are
sorted so that the last one walks memory in steps of one element, and merged where two walk it as one:
with `i0 < 4, i1 < 6` and every offset a multiple of `6*i0 + i1`, one axis `i1 < 24` is left. Positions of
argmax and argmin count in row-major order, so those axes are merged but not sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compiler_core.codegen.statement_handles import statements_of
from compiler_core.ir.index import Index, index
from compiler_core.ir.loop import (
    Axis,
    Block,
    Load,
    Loop,
    Nest,
    Position,
    Reduce,
    Statement,
    Store,
)  # fmt: skip

__all__ = ["accesses", "stride", "tidy_nest"]


def tidy_nest(nest: Nest) -> Nest:
    """The nest with tidy axes. Statements keep their order and their names."""
    axes, body = _tidy(nest.axes, nest.body, may_sort=True)
    return replace(nest, axes=axes, body=_tidy_block(body))


def _tidy_block(block: Block) -> Block:
    return tuple(_tidy_statement(statement) for statement in block)


def _tidy_statement(statement: Statement) -> Statement:
    if not isinstance(statement, Reduce | Loop):
        return statement
    may_sort = not (isinstance(statement, Reduce) and statement.kind.startswith("arg"))
    axes, body = _tidy(statement.axes, statement.body, may_sort)
    return replace(statement, axes=axes, body=_tidy_block(body))


def _tidy(axes: tuple[Axis, ...], body: Block, may_sort: bool) -> tuple[tuple[Axis, ...], Block]:
    if may_sort:
        axes = _sorted(axes, body)
    for k in reversed(range(len(axes) - 1)):
        outer, inner = axes[k], axes[k + 1]
        if _is_one_walk(outer, inner, body):
            merged = Axis(inner.name, outer.extent * inner.extent)
            axes = (*axes[:k], merged, *axes[k + 2 :])
            body = _substituted(body, {outer.name: index(0)})
    return axes, body


# ------------------------------------------------------------------------------------ questions


def accesses(block: Block) -> Iterator[Load | Store]:
    """Every load and store of a block and of the blocks inside."""
    for statement in statements_of(block):
        if isinstance(statement, Load | Store):
            yield statement


def stride(offset: Index, name: str) -> Index | None:
    """Elements from one position of an axis to the next; None where the steps differ."""
    parts = offset.split(name)
    return parts[0] if parts else None


def _is_one_walk(outer: Axis, inner: Axis, body: Block) -> bool:
    """Do both axes enter each expression as outer * extent(inner) + inner, times some number?"""
    names = {outer.name, inner.name}
    for e in _expressions(body):
        if e.names.isdisjoint(names):
            continue
        far, near = stride(e, outer.name), stride(e, inner.name)
        if far is None or near is None or far != near * inner.extent:
            return False
    return all(
        names.isdisjoint(axis.extent.names)
        for statement in statements_of(body)
        if isinstance(statement, Reduce | Loop)
        for axis in statement.axes
    )


def _expressions(block: Block) -> Iterator[Index]:
    for statement in statements_of(block):
        if isinstance(statement, Load | Store):
            yield statement.offset
        elif isinstance(statement, Position):
            yield statement.index


def _sorted(axes: tuple[Axis, ...], body: Block) -> tuple[Axis, ...]:
    """Axes by falling stride in the first store (else load); the best for the inner loop last."""
    if len(axes) < 2:
        return axes
    found = list(accesses(body))
    stores = [access for access in found if isinstance(access, Store)]
    for access in (*stores, *found):
        strides = _constant_strides(access.offset, axes)
        if strides:
            order = sorted(axes, key=lambda axis: -strides[axis.name])
            axes = tuple(order)
            break
    best = max(axes, key=lambda axis: (_score(axis, found), axes.index(axis)))
    return (*(axis for axis in axes if axis is not best), best)


def _constant_strides(offset: Index, axes: Sequence[Axis]) -> dict[str, int] | None:
    """The strides along axes, if all are known and not 0."""
    strides = {}
    for axis in axes:
        step = stride(offset, axis.name)
        if step is None or not step.constant:
            return None
        strides[axis.name] = step.constant
    return strides


def _score(axis: Axis, found: Sequence[Load | Store]) -> int:
    """How well an axis fits an inner loop: contiguous stores count most, then loads."""
    score = 0
    for access in found:
        step = stride(access.offset, axis.name)
        if step is not None and step.constant == 1:
            score += 3 if isinstance(access, Store) else 2
    return score


# ------------------------------------------------------------------------------------ rewriting


def _substituted(block: Block, values: dict[str, Index]) -> Block:
    """The block with names in its expressions replaced."""
    return tuple(_substituted_in(statement, values) for statement in block)


def _substituted_in(statement: Statement, values: dict[str, Index]) -> Statement:
    match statement:
        case Load() | Store():
            return replace(statement, offset=statement.offset.substitute(values))
        case Position():
            return replace(statement, index=statement.index.substitute(values))
        case Reduce() | Loop():
            return replace(statement, body=_substituted(statement.body, values))
    return statement
