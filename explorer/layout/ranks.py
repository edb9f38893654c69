"""Ranks: which row of the picture each node stands in.

In: a number of nodes and edges. Out: a row per node, every edge pointing down. Longest path from the
sources; then sources are pulled down to just above their first reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.layout.drawing import Edge

__all__ = ["Lists", "neighbours", "ranks", "topological"]

Lists = list[list[int]]


def neighbours(count: int, edges: Sequence[Edge]) -> tuple[Lists, Lists]:
    """(who reads each node, what each node reads)."""
    after: Lists = [[] for _ in range(count)]
    before: Lists = [[] for _ in range(count)]
    for a, b in edges:
        after[a].append(b)
        before[b].append(a)
    return after, before


def topological(after: Lists, before: Lists) -> list[int]:
    """Nodes, producers first. Raises ValueError when the graph has a cycle."""
    waiting = [len(b) for b in before]
    order = [n for n, count in enumerate(waiting) if not count]
    for node in order:  # grows while it is walked
        for reader in after[node]:
            waiting[reader] -= 1
            if not waiting[reader]:
                order.append(reader)
    if len(order) != len(after):
        raise ValueError("a graph with a cycle has no layers")
    return order


def ranks(count: int, edges: Sequence[Edge]) -> list[int]:
    """The row of each node, from 0."""
    after, before = neighbours(count, edges)
    order = topological(after, before)
    rows = [0] * count
    for node in order:
        for reader in after[node]:
            rows[reader] = max(rows[reader], rows[node] + 1)
    for node in reversed(order):
        if not before[node] and after[node]:
            rows[node] = min(rows[r] for r in after[node]) - 1
    lowest = min(rows, default=0)
    return [row - lowest for row in rows]
