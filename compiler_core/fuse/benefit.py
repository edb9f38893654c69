"""What a merge saves: bytes that are no longer read or written.

In: nests. Out: bytes of memory traffic, where each pass of a nest (`passes.py`) counts each buffer once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler_core.fuse.accesses import Access, accesses
from compiler_core.fuse.limits import COSTLY_BYTES, HEAVY
from compiler_core.fuse.linear import steps
from compiler_core.fuse.passes import keeps_rows, passes_of
from compiler_core.fuse.workspace import Workspace
from compiler_core.ir.loop import Block, Loop, Nest, Reduce, Value

__all__ = ["Saving", "footprint", "saving_of", "traffic"]


@dataclass(frozen=True, slots=True)
class Saving:
    """What a merge gains: bytes not moved, less costly operations that run again.

    `bytes` and `again` have a stand-in for symbolic sizes; `is_exact` where there are none. `worth`
    is both in bytes.
    """

    bytes: int
    again: int
    worth: float
    is_exact: bool


def saving_of(work: Workspace, apart: tuple[Nest, Nest], together: Nest) -> Saving:
    """What one nest saves against two."""
    saved = sum(traffic(work, nest) for nest in apart) - traffic(work, together)
    again = 0
    if not keeps_rows(together):  # where a pass over a row finds what the last one computed
        again = max(0, _costly(together) - sum(map(_costly, apart)))
    worth = saved - again * COSTLY_BYTES[work.target.device]
    return Saving(saved, again, worth, all(_is_exact(work, nest) for nest in apart))


def _is_exact(work: Workspace, nest: Nest) -> bool:
    return all(work.size_of(a.buffer).constant is not None for a in accesses(nest))


def traffic(work: Workspace, nest: Nest) -> int:
    """The bytes that a nest moves, with a stand-in for symbolic sizes."""
    passes = passes_of(nest, work.target)
    moved: dict[tuple[int, str], int] = {}
    for access in accesses(nest):
        key = (passes[access.phase], access.buffer)
        moved[key] = max(footprint(work, access), moved.get(key, 0))
    return sum(moved.values())


def _costly(nest: Nest) -> int:
    """How often a nest runs operations that cost more than a load."""
    return sum(runs for op, runs in _operations(nest.body, steps(nest.axes)) if op in HEAVY)


def _operations(block: Block, runs: int) -> Iterator[tuple[str, int]]:
    for s in block:
        if isinstance(s, Value):
            yield s.op, runs
        elif isinstance(s, Reduce | Loop):
            yield from _operations(s.body, runs * steps(s.axes))


def footprint(work: Workspace, access: Access) -> int:
    """The bytes that an access touches, at most the whole buffer."""
    names = access.statement.offset.names
    axes = {axis.name for axis in access.scope}
    is_direct = names <= axes.union(work.program.symbols)
    touched = steps(a for a in access.scope if not is_direct or a.name in names)
    return min(touched * work.buffer(access.buffer).dtype.bytes, work.bytes(access.buffer))
