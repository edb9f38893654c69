"""Changing the axes of a nest without changing what it does.

In: a nest and new axes for old ones. Out: the nest over the new axes. `split_axes` is the inverse of
what `coalesce.py` does.

    split_axes: for k<12: store b[k] = v      with k → (i<3, j<4)
    becomes:    for i<3, j<4: store b[i*4 + j] = v
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from compiler_core.fuse.blocks import Renaming, relabel_block, walk
from compiler_core.fuse.linear import product
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import Axis, Block, Loop, Nest, Reduce, Statement

__all__ = ["inner_axes", "map_axes", "split_axes"]


def split_axes(nest: Nest, splits: Mapping[str, tuple[Axis, ...]]) -> Nest:
    """The nest with each axis in `splits` replaced by several, outermost first."""
    if not splits:
        return nest
    at = {name: _position(axes) for name, axes in splits.items()}
    body = relabel_block(nest.body, Renaming({}, at))

    def expand(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(new for axis in axes for new in splits.get(axis.name, (axis,)))

    return replace(nest, axes=expand(nest.axes), body=map_axes(body, expand))


def map_axes(block: Block, change: Callable[[tuple[Axis, ...]], tuple[Axis, ...]]) -> Block:
    """The block with the axes of its reductions and loops changed."""
    return tuple(_with_axes(s, change) for s in block)


def _with_axes(s: Statement, change: Callable[[tuple[Axis, ...]], tuple[Axis, ...]]) -> Statement:
    if not isinstance(s, Reduce | Loop):
        return s
    return replace(s, axes=change(s.axes), body=map_axes(s.body, change))


def _position(axes: tuple[Axis, ...]) -> Index:
    position = index(0)
    for number, axis in enumerate(axes):
        position = position + Sym(axis.name) * product(a.extent for a in axes[number + 1 :])
    return position


def inner_axes(block: Block) -> tuple[Axis, ...]:
    """The axes of all reductions and loops of a block."""
    return tuple(axis for s in walk(block) if isinstance(s, Reduce | Loop) for axis in s.axes)
