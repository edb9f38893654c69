"""The order in which kernels and calls run.

In: the nodes of a workspace. Out: them, sorted: what is read is made before. Of two such orders, the
program's own and one that always takes the node that frees most memory, the one with the lower peak;
the program's own if they are equal.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from compiler_core.fuse.viewed import viewed_buffers
from compiler_core.fuse.workspace import Group, Workspace
from compiler_core.ir.loop import Call

__all__ = ["execution_order"]


def execution_order(work: Workspace) -> list[Group | Call]:
    """Groups and calls in the order in which they run."""
    memory = _Memory(work)
    own = _schedule(work, lambda number, _: 0)
    frugal = _schedule(work, memory.change)
    best = min((own, frugal), key=memory.peak)  # the first of equals
    return [work.nodes[number] for number in best]


def reads_of(node: Group | Call) -> tuple[str, ...]:
    return node.reads if isinstance(node, Group) else viewed_buffers((node.args, node.kwargs))


def writes_of(node: Group | Call) -> tuple[str, ...]:
    return node.writes if isinstance(node, Group) else tuple(b for b in node.outputs if b)


def _schedule(work: Workspace, cost: Callable[[int, dict[str, int]], int]) -> list[int]:
    """Nodes by lowest cost among those that are ready, then by their place in the program.

    A cost is computed when a node becomes ready and when it comes up again, not after each step.
    """
    waits = dict.fromkeys(work.nodes, 0)
    after = {number: work.successors(number) for number in work.nodes}
    for numbers in after.values():
        for number in numbers:
            waits[number] += 1
    left = {name: len(readers) for name, readers in work.readers.items()}
    heap = [(cost(n, left), _place(work, n), n) for n, count in waits.items() if not count]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        stale, place, number = heapq.heappop(heap)
        now = cost(number, left)
        if now > stale and heap and (now, place, number) > heap[0]:
            heapq.heappush(heap, (now, place, number))
            continue
        order.append(number)
        for name in reads_of(work.nodes[number]):
            left[name] -= 1
        for later in after[number]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(heap, (cost(later, left), _place(work, later), later))
    return order


def _place(work: Workspace, number: int) -> int:
    node = work.nodes[number]
    return node.position if isinstance(node, Group) else work.places[node.name]


class _Memory:
    """Bytes that nodes allocate and free."""

    def __init__(self, work: Workspace):
        self.work = work
        self.bytes = {n: work.bytes(n) for n in work.program.buffers}
        self.freed = {n for n, b in work.program.buffers.items() if b.role == "temp"} - work.kept

    def change(self, number: int, left: dict[str, int]) -> int:
        """Bytes allocated less bytes freed when a node runs now; `left` counts readers to come."""
        node = self.work.nodes[number]
        made = sum(self.bytes[name] for name in writes_of(node))
        last = [n for n in reads_of(node) if left.get(n) == 1 and n in self.freed]
        return made - sum(self.bytes[name] for name in last)

    def peak(self, order: list[int]) -> int:
        """The most bytes alive at once."""
        left = {name: len(readers) for name, readers in self.work.readers.items()}
        alive = peak = 0
        for number in order:
            node = self.work.nodes[number]
            alive += sum(self.bytes[name] for name in writes_of(node))
            peak = max(peak, alive)
            for name in reads_of(node):
                left[name] -= 1
                if not left[name] and name in self.freed:
                    alive -= self.bytes[name]
        return peak
