"""Merges pairs of nests, the pair that saves most first, until no pair may be merged.

In: a workspace. Out: the workspace with fewer groups, one "fuse" record per candidate pair. A pair is
a candidate if one nest reads what the other writes, or both read the same buffer. A merge makes a new
group whose pairs are candidates in turn; what is left over at the end was refused, and says why.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from compiler_core.fuse.benefit import Saving, saving_of
from compiler_core.fuse.candidates import Candidate, candidates_of
from compiler_core.fuse.legality import examine, examine_siblings
from compiler_core.fuse.merge import merged
from compiler_core.fuse.plan import Plan, Refusal
from compiler_core.fuse.records import record_merge, record_refusal
from compiler_core.fuse.tidy import tidy
from compiler_core.fuse.workspace import Group, Workspace

__all__ = ["merge_greedily"]


@dataclass(slots=True)
class _Queue:
    work: Workspace
    heap: list[Candidate] = field(default_factory=list)
    refused: list[tuple[Refusal, Candidate]] = field(default_factory=list)

    def push_all(self, group: Group) -> None:
        """All pairs of one group."""
        for pair in candidates_of(self.work, group):
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
            record_refusal(work, first, second, refusal, pair.shared, -pair.cost)


def _try(queue: _Queue, pair: Candidate) -> None:
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
