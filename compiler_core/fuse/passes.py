"""How often a kernel goes over its inputs: its passes.

In: a nest and the target. Out: the pass of each statement of its body. Each reduction and each loop is a
pass of its own, except where memory is found in the cache: a row that fits it makes all passes one, and
so does a tile of columns. On a GPU, neighbours over the same extents of which none needs another's
result run in one pass.
"""

from __future__ import annotations

from compiler_core.fuse.blocks import defined, used
from compiler_core.fuse.limits import COLUMN_IN_CACHE, ROW_IN_CACHE
from compiler_core.fuse.linear import steps
from compiler_core.fuse.strategy import strategy_of
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Loop, Nest, Reduce
from compiler_core.options import Target

__all__ = ["keeps_rows", "passes_of"]


def passes_of(nest: Nest, target: Target) -> list[int]:
    """The number of the pass that each statement of the body belongs to."""
    strategy, longest = strategy_of(nest), _longest(nest)
    if longest <= (COLUMN_IN_CACHE if strategy == "column" else ROW_IN_CACHE):
        return [0] * len(nest.body)
    return _separate(nest) if target.device == "cpu" else _shared(nest)


def keeps_rows(nest: Nest) -> bool:
    """Whether what one pass computes of a row is still at hand in the next."""
    return strategy_of(nest) != "column" and _longest(nest) <= ROW_IN_CACHE


def _longest(nest: Nest) -> int:
    return max((steps(s.axes) for s in nest.body if isinstance(s, Reduce | Loop)), default=0)


def _separate(nest: Nest) -> list[int]:
    """Each reduction and loop by itself."""
    numbers: list[int] = []
    for s in nest.body:
        last = numbers[-1] if numbers else 0
        numbers.append(last + isinstance(s, Reduce | Loop))
    return numbers


def _shared(nest: Nest) -> list[int]:
    """Neighbours over the same extents together, unless one needs what the other gives."""
    numbers: list[int] = []
    space: tuple[Index, ...] | None = None
    made: set[str] = set()  # what the current pass gives, and what depends on it
    current = 0
    for s in nest.body:
        depends = not made.isdisjoint(used(s))
        if isinstance(s, Reduce | Loop):
            extents = tuple(axis.extent for axis in s.axes)
            if extents != space or depends:
                current, space, made, depends = current + 1, extents, set(), False
        name = defined(s)
        if name and (depends or isinstance(s, Reduce)):
            made.add(name)
        numbers.append(current)
    return numbers
