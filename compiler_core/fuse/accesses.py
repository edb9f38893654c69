"""Which buffers a nest reads and writes, where, and how often: as values.

In: a nest. Out: one `Access` per load and store, with the axes that it runs over. Legality, benefit
and code layout all read these and none of them walks the nest for memory again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler_core.fuse.blocks import body_of
from compiler_core.ir.loop import Axis, Block, Load, Loop, Nest, Reduce, Statement, Store

__all__ = ["Access", "accesses", "loads", "read_buffers", "stores", "written_buffers"]


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store. `outer` are the nest's axes, `inner` those of reductions and loops around it.

    `around` are these reductions and loops, `phase` the number of the statement of the nest's body
    that holds the access.
    """

    statement: Load | Store
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    around: tuple[Statement, ...]
    phase: int

    @property
    def buffer(self) -> str:
        return self.statement.buffer

    @property
    def scope(self) -> tuple[Axis, ...]:
        """All axes that the access runs over, outermost first."""
        return self.outer + self.inner


def accesses(nest: Nest) -> tuple[Access, ...]:
    """All loads and stores of a nest, in program order."""
    return tuple(
        access
        for phase, s in enumerate(nest.body)
        for access in _inside((s,), nest.axes, (), (), phase)
    )


def _inside(
    block: Block,
    outer: tuple[Axis, ...],
    inner: tuple[Axis, ...],
    around: tuple[Statement, ...],
    phase: int,
) -> Iterator[Access]:
    for s in block:
        if isinstance(s, Load | Store):
            yield Access(s, outer, inner, around, phase)
        elif isinstance(s, Reduce | Loop):
            yield from _inside(body_of(s), outer, inner + s.axes, (*around, s), phase)


def loads(nest: Nest) -> tuple[Access, ...]:
    return tuple(a for a in accesses(nest) if isinstance(a.statement, Load))


def stores(nest: Nest) -> tuple[Access, ...]:
    return tuple(a for a in accesses(nest) if isinstance(a.statement, Store))


def read_buffers(nest: Nest) -> tuple[str, ...]:
    """Buffers read, in order of their first load."""
    return tuple(dict.fromkeys(a.buffer for a in loads(nest)))


def written_buffers(nest: Nest) -> tuple[str, ...]:
    """Buffers written, in order of their first store."""
    return tuple(dict.fromkeys(a.buffer for a in stores(nest)))
