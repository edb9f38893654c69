"""Removes stores that nobody reads and statements that no store needs.

Requires single assignment. Establishes: every value is used. Keeps the order of what stays.

    x = load a[i]; y = exp x; z = neg x; store b[i] = z      →      x = load a[i]; z = neg x; store b[i] = z
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from compiler_core.fuse.blocks import defined, index_names, value_names, with_body
from compiler_core.ir.loop import Block, Loop, Nest, Reduce, Statement, Store

__all__ = ["remove_dead_statements", "remove_stores"]


def remove_stores(nest: Nest, is_needed: Callable[[str], bool]) -> Nest:
    """Drop the stores to buffers that `is_needed` says no to, and loops left empty by that."""
    return replace(nest, body=_without_stores(nest.body, is_needed))


def _without_stores(block: Block, is_needed: Callable[[str], bool]) -> Block:
    kept: list[Statement] = []
    for s in block:
        if isinstance(s, Store) and not is_needed(s.buffer):
            continue
        if isinstance(s, Loop):
            s = with_body(s, _without_stores(s.body, is_needed))
        kept.append(s)
    return tuple(kept)


def remove_dead_statements(nest: Nest) -> Nest:
    """Drop what no store depends on."""
    body = _live(nest.body, set())
    return nest if len(body) == len(nest.body) and body == nest.body else replace(nest, body=body)


def _live(block: Block, wanted: set[str]) -> Block:
    """The statements that stores or `wanted` names need; their operands join `wanted`."""
    kept: list[Statement] = []
    for s in reversed(block):
        name = defined(s)
        if name is not None and name not in wanted:
            continue
        wanted.update(value_names(s), index_names(s))
        if isinstance(s, Reduce | Loop):
            s = with_body(s, _live(s.body, wanted))
            if isinstance(s, Loop) and not s.body:
                continue
        kept.append(s)
    return tuple(reversed(kept))
