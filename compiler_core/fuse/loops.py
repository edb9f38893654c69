"""Makes one loop of loops over the same extents, and none of a nest that is only a loop.

`merge_loops` moves an earlier loop into the later one, where all that it reads is known too. Requires
that no statement of the nest loads what it stores, so the order of stores does not matter.

    for r<8: store b[i*8 + r] = x;  s = sum over …;  for q<8: store c[i*8 + q] = y
    becomes
    s = sum over …;  for q<8: store b[i*8 + q] = x; store c[i*8 + q] = y
"""

from __future__ import annotations

from dataclasses import replace

from compiler_core.fuse.blocks import Renaming, relabel_block
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Block, Loop, Nest, Reduce, Statement
from compiler_core.provenance import union

__all__ = ["merge_loops", "unwrap_only_loop"]


def merge_loops(nest: Nest) -> Nest:
    """The nest with one loop for each iteration space."""
    waiting: dict[tuple[Index, ...], Loop] = {}
    result: list[Statement] = []
    last = {_space(s): n for n, s in enumerate(nest.body) if isinstance(s, Loop)}
    for number, s in enumerate(nest.body):
        if not isinstance(s, Loop):
            result.append(s)
            continue
        space = _space(s)
        merged = _joined(waiting.pop(space), s) if space in waiting else s
        if last[space] == number:
            result.append(merged)
        else:
            waiting[space] = merged
    return nest if len(result) == len(nest.body) else replace(nest, body=tuple(result))


def _space(loop: Loop) -> tuple[Index, ...]:
    return tuple(axis.extent for axis in loop.axes)


def _joined(earlier: Loop, later: Loop) -> Loop:
    names = {a.name: b.name for a, b in zip(earlier.axes, later.axes, strict=True)}
    body: Block = relabel_block(earlier.body, Renaming(names)) + later.body
    return Loop(later.axes, body, union(earlier.origins, later.origins))


def unwrap_only_loop(nest: Nest) -> Nest:
    """A nest with one loop and no reduction: the loop's axes become axes of the nest."""
    compound = [s for s in nest.body if isinstance(s, Loop | Reduce)]
    if len(compound) != 1 or not isinstance(compound[0], Loop):
        return nest
    loop = compound[0]
    if nest.body[-1] is not loop or any(isinstance(s, Loop | Reduce) for s in loop.body):
        return nest
    before = nest.body[:-1]
    if any(type(s).__name__ == "Store" for s in before):
        return nest
    origins = union(nest.origins, loop.origins)
    return Nest(nest.name, nest.axes + loop.axes, before + loop.body, origins)
