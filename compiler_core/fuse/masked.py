"""Statements that run where a mask holds: their loads are kept inside it.

In: a block and the name of a bool. Out: the block, its loads under that mask too. What it computes elsewhere is
arbitrary, and whoever uses it chooses with `where`.
"""

from __future__ import annotations

from dataclasses import replace

from compiler_core.fuse.fresh import Names
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.loop import Block, Load, Statement, Value
from compiler_core.provenance import Origins

__all__ = ["masked"]

_BOOL = DTYPES["bool"]


def masked(block: Block, mask: str, origins: Origins, names: Names) -> Block:
    """Loads only where the mask holds too: elsewhere the position may be outside the buffer.

    `origins` go to the conjunctions with masks that loads have already.
    """
    result: list[Statement] = []
    for s in block:
        if isinstance(s, Load) and s.mask is None:
            s = replace(s, mask=mask)
        elif isinstance(s, Load) and s.mask is not None:
            both = names.fresh(mask)
            result.append(Value(both, "and", (s.mask, mask), _BOOL, origins))
            s = replace(s, mask=both)
        result.append(s)
    return tuple(result)
