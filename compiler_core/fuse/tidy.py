"""Cleans a merged nest; each step keeps what the nest stores.

In: a nest and the buffers whose stores are still needed. Out: the same computation with fewer
statements. A table of contents; each step is a file.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler_core.fuse.cse import share_equal_statements
from compiler_core.fuse.dead import remove_dead_statements, remove_stores
from compiler_core.fuse.hoist import hoist_invariants
from compiler_core.fuse.loops import merge_loops, unwrap_only_loop
from compiler_core.ir.loop import Nest

__all__ = ["tidy"]


def tidy(nest: Nest, is_needed: Callable[[str], bool]) -> Nest:
    """The nest without stores to buffers that nobody needs, and without what only served them."""
    nest = remove_stores(nest, is_needed)
    nest = remove_dead_statements(nest)
    nest = merge_loops(nest)  # before sharing: two loops in one may share a load
    nest = hoist_invariants(nest)  # before sharing: equal values of two blocks meet outside them
    nest = share_equal_statements(nest)
    return unwrap_only_loop(nest)
