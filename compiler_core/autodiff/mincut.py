"""The smallest cut between two nodes of a directed graph with capacities.

In: edges with capacities. Out: the nodes on the source's side of a minimum cut, of all minimum cuts
the one nearest to the sink. No compiler types in here. Method: Dinic's algorithm (E. A. Dinic, 1970):
breadth-first levels, then a blocking flow by depth-first search along them; O(V² E), far less in
practice. The cut is found from the sink: what cannot reach it through edges that still have room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["UNLIMITED", "Network"]

N = TypeVar("N", bound=Hashable)
UNLIMITED = 1 << 60


class Network(Generic[N]):
    """A flow network. Edges are kept in pairs, edge `e` and its reverse `e ^ 1`."""

    def __init__(self) -> None:
        self._number: dict[N, int] = {}
        self._edges: list[list[int]] = []  # per node: the edges that leave it
        self._head: list[int] = []
        self._room: list[int] = []

    def edge(self, tail: N, head: N, capacity: int) -> None:
        """Add an edge; UNLIMITED (or more) means that it is never cut."""
        first, second = self._node(tail), self._node(head)
        for node, to, room in ((first, second, min(capacity, UNLIMITED)), (second, first, 0)):
            self._edges[node].append(len(self._head))
            self._head.append(to)
            self._room.append(room)

    def minimum_cut(self, source: N, sink: N) -> tuple[int, set[N]]:
        """The capacity of the cut and the nodes on the source's side; the network is used up.

        A capacity of UNLIMITED or more means that no cut of limited capacity exists.
        """
        start, end = self._node(source), self._node(sink)
        total = 0
        while total < UNLIMITED:
            levels = self._levels(start)
            if levels[end] < 0:
                break
            total += self._blocking_flow(start, end, levels)
        reaching = self._reaching(end)
        return total, {name for name, node in self._number.items() if node not in reaching}

    def _node(self, name: N) -> int:
        if name not in self._number:
            self._number[name] = len(self._edges)
            self._edges.append([])
        return self._number[name]

    def _levels(self, start: int) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for edge in self._edges[node]:
                head = self._head[edge]
                if self._room[edge] > 0 and levels[head] < 0:
                    levels[head] = levels[node] + 1
                    queue.append(head)
        return levels

    def _blocking_flow(self, start: int, end: int, levels: list[int]) -> int:
        """Push along shortest paths until none is left. A loop with a path, not recursion."""
        total, path = 0, list[int]()
        waiting = [0] * len(self._edges)  # per node: its first edge that is not known to be useless
        node = start
        while True:
            if node == end:
                pushed = min(self._room[edge] for edge in path)
                for edge in path:
                    self._room[edge] -= pushed
                    self._room[edge ^ 1] += pushed
                total += pushed
                path, node = [], start
                continue
            edges = self._edges[node]
            while waiting[node] < len(edges) and not self._leads_on(edges[waiting[node]], levels):
                waiting[node] += 1
            if waiting[node] < len(edges):
                path.append(edges[waiting[node]])
                node = self._head[path[-1]]
            elif path:
                node = self._head[path.pop() ^ 1]
                waiting[node] += 1
            else:
                return total

    def _leads_on(self, edge: int, levels: list[int]) -> bool:
        tail, head = self._head[edge ^ 1], self._head[edge]
        return self._room[edge] > 0 and levels[head] == levels[tail] + 1

    def _reaching(self, end: int) -> set[int]:
        """Nodes from which the sink can be reached through edges with room."""
        reaching, queue = {end}, deque([end])
        while queue:
            for edge in self._edges[queue.popleft()]:
                tail = self._head[edge]
                if self._room[edge ^ 1] > 0 and tail not in reaching:
                    reaching.add(tail)
                    queue.append(tail)
        return reaching
