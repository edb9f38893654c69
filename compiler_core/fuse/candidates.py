"""Which pairs of nests may be worth a merge, and in which order they are tried.

In: a workspace and one group. Out: `Candidate`s: the group with each nest that reads what it writes or
writes what it reads, and with its neighbours among the readers of the same buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compiler_core.fuse.blocks import is_pointwise
from compiler_core.fuse.workspace import Group, Workspace

__all__ = ["Candidate", "candidates_of"]

# Readers of one buffer, before and after, that are tried: keeps the number of pairs linear.
_NEIGHBOURS = 4


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A pair in the queue; the order of fields is the order in which pairs are tried.

    `rank` 0: producer and consumer. 1: siblings; a nest that goes to a sibling first may have to store
    what its consumer would have taken from it. 2: work over many positions with a reduction over
    everything; it would run in one position from then on.
    """

    rank: int
    cost: int  # minus the estimated bytes
    positions: tuple[int, int]
    numbers: tuple[int, int]
    shared: str = field(compare=False)  # a buffer between them, or one that both read
    is_sibling: bool = field(compare=False, default=False)


def candidates_of(work: Workspace, group: Group) -> set[Candidate]:
    """All pairs of one group."""
    return {*_edges(work, group), *_siblings(work, group)}


def _edges(work: Workspace, group: Group) -> Iterator[Candidate]:
    """The group with each nest that it reads from or that reads it."""
    for buffer in group.reads:
        writer = work.nodes.get(work.writer.get(buffer, -1))
        if isinstance(writer, Group) and writer is not group:
            yield _edge(work, writer, group)
    for buffer in group.writes:
        for number in sorted(work.readers.get(buffer, ())):
            reader = work.nodes[number]
            if isinstance(reader, Group) and reader is not group:
                yield _edge(work, group, reader)


def _edge(work: Workspace, writer: Group, reader: Group) -> Candidate:
    between = [buffer for buffer in writer.writes if buffer in reader.reads]
    pair = (writer.number, reader.number)
    saved = 0
    for buffer in between:
        loads_and_store = 1 if work.is_kept(buffer, pair) else 2
        saved += loads_and_store * work.bytes(buffer)
    saved += _common_bytes(work, writer, reader)
    places = (writer.position, reader.position)
    is_stored = any(work.is_kept(buffer, pair) for buffer in writer.writes)
    late = _would_be_alone(writer, reader) and (is_stored or not is_pointwise(writer.nest))
    return Candidate(2 if late else 0, -saved, places, pair, between[0])


def _would_be_alone(a: Group, b: Group) -> bool:
    """Whether one is a reduction to a single position, and the other has many."""
    return any(
        not one.nest.axes and not is_pointwise(one.nest) and other.nest.axes
        for one, other in ((a, b), (b, a))
    )


def _common_bytes(work: Workspace, a: Group, b: Group) -> int:
    return sum(work.bytes(name) for name in {*a.reads} & {*b.reads})


def _siblings(work: Workspace, group: Group) -> Iterator[Candidate]:
    """The group with its neighbours among the readers of each buffer that it reads."""
    for buffer in group.reads:
        readers = [work.nodes[n] for n in work.readers[buffer]]
        groups = sorted(
            (r for r in readers if isinstance(r, Group)), key=lambda g: (g.position, g.number)
        )
        here = groups.index(group)
        for other in groups[max(0, here - _NEIGHBOURS) : here + _NEIGHBOURS + 1]:
            if other is not group and not _is_edge(group, other):
                yield _sibling(work, group, other)


def _is_edge(a: Group, b: Group) -> bool:
    return not set(a.writes).isdisjoint(b.reads) or not set(b.writes).isdisjoint(a.reads)


def _sibling(work: Workspace, a: Group, b: Group) -> Candidate:
    first, second = sorted((a, b), key=lambda g: (is_pointwise(g.nest), g.position, g.number))
    common = {*a.reads} & {*b.reads}
    shared = min(common, key=lambda name: (-work.bytes(name), name))
    saved = _common_bytes(work, a, b)
    places, numbers = (first.position, second.position), (first.number, second.number)
    rank = 2 if _would_be_alone(a, b) else 1
    return Candidate(rank, -saved, places, numbers, shared, is_sibling=True)
