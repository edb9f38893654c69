"""Merges pairs of nests, the pair that saves most first, until no pair may be merged.

In: a workspace. Out: the workspace with fewer groups, one "fuse" record per candidate pair. A pair is
a candidate if one nest reads what the other writes, or both read the same buffer. A merge makes a new
group whose pairs are candidates in turn; what is left over at the end was refused, and says why.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from compiler_core.fuse.benefit import Saving, saving_of
from compiler_core.fuse.blocks import is_pointwise
from compiler_core.fuse.legality import examine, examine_siblings
from compiler_core.fuse.merge import merged
from compiler_core.fuse.plan import Plan, Refusal
from compiler_core.fuse.records import record_merge, record_refusal
from compiler_core.fuse.tidy import tidy
from compiler_core.fuse.workspace import Group, Workspace

__all__ = ["merge_greedily"]


@dataclass(frozen=True, slots=True, order=True)
class _Candidate:
    """A pair in the queue; the order of fields is the order in which pairs are tried.

    Siblings wait until no producer can meet a consumer: a nest that goes to a sibling first may have
    to store what its consumer would have taken from it.
    """

    is_sibling: bool
    cost: int  # minus the estimated bytes
    positions: tuple[int, int]
    numbers: tuple[int, int]
    shared: str = field(compare=False)  # a buffer between them, or one that both read


@dataclass(slots=True)
class _Queue:
    work: Workspace
    heap: list[_Candidate] = field(default_factory=list)
    refused: list[tuple[Refusal, _Candidate]] = field(default_factory=list)

    def push_all(self, group: Group) -> None:
        """All pairs of one group."""
        for pair in {*_edges(self.work, group), *_siblings(self.work, group)}:
            heapq.heappush(self.heap, pair)


def merge_greedily(work: Workspace) -> None:
    """Merge until every candidate pair is refused; leave the records of all."""
    queue = _Queue(work)
    seen: set[tuple[int, int]] = set()
    for group in work.groups():
        queue.push_all(group)
    while queue.heap:
        pair = heapq.heappop(queue.heap)
        if pair.numbers in seen or not all(number in work.nodes for number in pair.numbers):
            continue
        seen.add(pair.numbers)
        _try(queue, pair)
    for refusal, pair in queue.refused:
        if all(number in work.nodes for number in pair.numbers):  # else a merge has replaced it
            first, second = map(work.group, pair.numbers)
            record_refusal(work, first, second, refusal, pair.shared)


def _try(queue: _Queue, pair: _Candidate) -> None:
    """Merge a pair or note why not."""
    work = queue.work
    first, second = map(work.group, pair.numbers)
    if pair.is_sibling:
        plan = examine_siblings(work, first, second, pair.shared)
    else:
        plan = examine(work, first, second)
    if isinstance(plan, Plan):
        nest = tidy(merged(first.nest, plan, work.names), _is_needed(work, first, second))
        saving = saving_of(work, (first.nest, second.nest), nest)
        refusal = _refused_by_saving(saving, pair.is_sibling)
        if refusal is None:
            group = work.replace_pair(first, second, nest)
            record_merge(work, first, second, group, pair.shared, saving)
            queue.push_all(group)
            return
        plan = refusal
    queue.refused.append((plan, pair))


def _refused_by_saving(saving: Saving, is_sibling: bool) -> Refusal | None:
    """A producer's merge may save nothing (it is one launch less); a sibling's must save bytes."""
    if saving.bytes < 0 or (is_sibling and saving.bytes == 0):
        return Refusal(
            "would read more than it saves", f"the merged kernel moves {-saving.bytes} bytes more"
        )
    if saving.worth < 0:
        return Refusal(
            "would recompute too much",
            f"{saving.again} costly operations would run again to save {saving.bytes} bytes",
        )
    return None


def _is_needed(work: Workspace, first: Group, second: Group) -> Callable[[str], bool]:
    pair = (first.number, second.number)
    return lambda buffer: work.is_kept(buffer, pair)


# ---------------------------------------------------------------------------------- candidates


def _edges(work: Workspace, group: Group) -> Iterator[_Candidate]:
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


def _edge(work: Workspace, writer: Group, reader: Group) -> _Candidate:
    between = [buffer for buffer in writer.writes if buffer in reader.reads]
    pair = (writer.number, reader.number)
    saved = 0
    for buffer in between:
        loads_and_store = 1 if work.is_kept(buffer, pair) else 2
        saved += loads_and_store * work.bytes(buffer)
    saved += _common_bytes(work, writer, reader)
    return _Candidate(False, -saved, (writer.position, reader.position), pair, between[0])


def _common_bytes(work: Workspace, a: Group, b: Group) -> int:
    return sum(work.bytes(name) for name in {*a.reads} & {*b.reads})


def _siblings(work: Workspace, group: Group) -> Iterator[_Candidate]:
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


_NEIGHBOURS = (
    4  # readers of one buffer, before and after, that are tried: keeps the number of pairs linear
)


def _is_edge(a: Group, b: Group) -> bool:
    return not set(a.writes).isdisjoint(b.reads) or not set(b.writes).isdisjoint(a.reads)


def _sibling(work: Workspace, a: Group, b: Group) -> _Candidate:
    first, second = sorted((a, b), key=lambda g: (is_pointwise(g.nest), g.position, g.number))
    common = {*a.reads} & {*b.reads}
    shared = min(common, key=lambda name: (-work.bytes(name), name))
    saved = _common_bytes(work, a, b)
    places, numbers = (first.position, second.position), (first.number, second.number)
    return _Candidate(True, -saved, places, numbers, shared)
