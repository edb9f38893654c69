"""The numbers that fusion judges by, in one place, each with its reason.

In: nests and axes. Out: yes or no. They are measures of cost, not of correctness: any value gives a
right program.
"""

from __future__ import annotations

from compiler_core.fuse.blocks import walk
from compiler_core.fuse.linear import steps
from compiler_core.ir.loop import Axis, Load, Nest, Value
from compiler_core.options import Target

__all__ = [
    "CHEAP_OPERATIONS", "COLUMN_IN_CACHE", "COSTLY_BYTES", "DIVISIONS", "HEAVY", "MOST_BUFFERS",
    "MOST_COPIES", "MOST_STATEMENTS", "ROW_IN_CACHE", "is_parallel_enough", "is_too_dear",
]  # fmt: skip

MOST_BUFFERS = 48  # kernel arguments, and streams that a machine can prefetch
MOST_STATEMENTS = 400  # keeps a kernel's compile time and register need in bounds
MOST_COPIES = 64  # statements that recomputing at several positions may add
ROW_IN_CACHE = 1 << 16  # elements of a row that a second pass over it finds in the cache
CHEAP_OPERATIONS = 12  # of a producer that is computed again for each reader
COLUMN_IN_CACHE = 1 << 10  # rows of a tile of columns that a second pass finds in the cache
SMALL = 1 << 20  # elements; below this a launch costs more than an idle machine

# On integers these trap when the divisor is 0, so they must not run where the program does not.
DIVISIONS = frozenset({"floordiv", "truncdiv", "remainder", "fmod"})

# Operations that cost tens of cycles: worth a load to avoid.
HEAVY = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "erf", "sigmoid"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
        *DIVISIONS,
    }
)

# Bytes that could be moved in the time of one costly operation, running on all of the machine.
COSTLY_BYTES = {"cpu": 5.0, "cuda": 1.0}

_LANES = {"cpu": 4, "cuda": 64}  # positions that keep the machine busy
_COLUMN_BLOCK = 64  # columns that one position of a column kernel takes together


def is_too_dear(nest: Nest) -> bool:
    """Whether a pointwise nest costs too much to be computed more than once per element."""
    ops = [s.op for s in walk(nest.body) if isinstance(s, Value)]
    reads = sum(isinstance(s, Load) for s in walk(nest.body))
    return len(ops) > 8 or reads > 2 or any(op in HEAVY for op in ops)


def is_parallel_enough(
    target: Target, strategy: str, outer: tuple[Axis, ...], loop: tuple[Axis, ...]
) -> bool:
    """Whether a loop inside these outer axes leaves enough positions to run side by side."""
    positions = steps(outer)
    if positions * steps(loop) <= SMALL:
        return positions > 1 or steps(loop) <= ROW_IN_CACHE
    if strategy == "column":
        positions //= _COLUMN_BLOCK
    return positions >= _LANES[target.device]
