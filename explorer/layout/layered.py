"""A graph in rows: order within each row by barycentres, x by isotonic regression, y by row.

In: boxes and edges, or also the rows. Out: a `Drawing`. Time is linear in boxes and edges up to the
sort of each row: an edge passes at most `_SPAN` rows, a longer one is drawn as two stubs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from explorer.layout.drawing import Box, Drawing, Edge, Point
from explorer.layout.ranks import Lists, ranks

__all__ = ["ROW_GAP", "layered", "squeeze"]

_GAP, ROW_GAP = 12.0, 28.0  # px between boxes of a row, and between rows
_SPAN = 30
_SWEEPS = 6


@dataclass(slots=True)
class _Net:
    """Boxes and the dummies that stand for long edges in the rows between, all by number."""

    rows: list[list[int]]
    row_of: list[int]
    widths: list[float]
    up: Lists
    down: Lists
    boxes: int  # numbers below this are boxes
    chains: list[list[int] | None]  # the dummies of each edge, from its upper end; None: too long


def layered(
    boxes: Sequence[Box],
    edges: Sequence[Edge],
    rows: list[int] | None = None,
    levels: list[float] | None = None,
) -> Drawing:
    """Place boxes in rows; every edge must point to a later row. Raises ValueError for a cycle.

    rows, levels: the row of each box and the y of each row's middle, when they are given beforehand.
    """
    if not boxes:
        return Drawing([], [], 0.0, 0.0)
    net = _net(boxes, edges, ranks(len(boxes), edges) if rows is None else rows)
    _order(net)
    xs = _coordinates(net)
    left = min(x - w / 2 for x, w in zip(xs, net.widths))
    xs = [x - left for x in xs]
    ys, height = _heights(net, boxes) if levels is None else (levels, levels[-1])
    places = [(xs[n], ys[net.row_of[n]]) for n in range(len(boxes))]
    paths = [_path(edge, chain, xs, ys, net) for edge, chain in zip(edges, net.chains)]
    return Drawing(places, paths, max(x + w / 2 for x, w in zip(xs, net.widths)), height)


def _net(boxes: Sequence[Box], edges: Sequence[Edge], rows: list[int]) -> _Net:
    count = len(boxes)
    net = _Net([], list(rows), [b.width for b in boxes], [[] for _ in boxes], [[] for _ in boxes],
               count, [])  # fmt: skip
    for a, b in edges:
        net.chains.append(None if rows[b] - rows[a] > _SPAN else _chain(net, a, b))
    net.rows = [[] for _ in range(max(rows) + 1)]
    return net


def _chain(net: _Net, a: int, b: int) -> list[int]:
    """Dummies in the rows between two boxes, linked up."""
    chain = []
    last = a
    for row in range(net.row_of[a] + 1, net.row_of[b]):
        dummy = len(net.row_of)
        net.row_of.append(row)
        net.widths.append(6.0)
        net.up.append([last])
        net.down.append([])
        net.down[last].append(dummy)
        chain.append(dummy)
        last = dummy
    net.down[last].append(b)
    net.up[b].append(last)
    return chain


def _order(net: _Net) -> None:
    """First order: depth first, which keeps chains together. Then sweeps down and up by barycentres."""
    _first_order(net)
    position = [0.0] * len(net.row_of)
    for row in net.rows:
        _number(row, position)
    for sweep in range(_SWEEPS):
        towards = net.down if sweep % 2 else net.up
        for row in reversed(net.rows) if sweep % 2 else net.rows:
            if len(row) > 1:
                key = {n: _mean(towards[n], position, position[n]) for n in row}
                row.sort(key=key.__getitem__)
                _number(row, position)


def _first_order(net: _Net) -> None:
    seen = [False] * len(net.row_of)
    for start in sorted(range(len(seen)), key=net.row_of.__getitem__):
        todo = [start]
        while todo:
            node = todo.pop()
            if not seen[node]:
                seen[node] = True
                net.rows[net.row_of[node]].append(node)
                todo.extend(n for n in reversed(net.down[node]) if not seen[n])


def _number(row: list[int], position: list[float]) -> None:
    for place, node in enumerate(row):
        position[node] = float(place)


def _mean(nodes: list[int], values: list[float], otherwise: float) -> float:
    return sum(values[n] for n in nodes) / len(nodes) if nodes else otherwise


def _coordinates(net: _Net) -> list[float]:
    """x of every box and dummy: each row is pulled to the medians of its neighbours, order kept."""
    xs = [0.0] * len(net.row_of)
    gaps = [_gaps(row, net.widths) for row in net.rows]
    for row, between in zip(net.rows, gaps):
        start = -sum(between) / 2
        for node, step in zip(row, [0.0, *between]):
            start += step
            xs[node] = start
    spine = _spine(net)
    is_leaf = [len(u) + len(d) <= 1 for u, d in zip(net.up, net.down)]
    for sweep in range(8):
        order = range(len(net.rows))
        for r in reversed(order) if sweep % 2 else order:
            row = net.rows[r]
            pulls = [_pull(n, net, xs, sweep, spine, is_leaf) for n in row]
            for node, x in zip(row, squeeze(pulls, gaps[r])):
                xs[node] = x
    return xs


def _gaps(row: list[int], widths: list[float]) -> list[float]:
    return [(widths[a] + widths[b]) / 2 + _GAP for a, b in pairwise(row)]


def _pull(
    node: int, net: _Net, xs: list[float], sweep: int, spine: set[int], is_leaf: list[bool]
) -> tuple[float, float]:
    """(where a node wants to be, how much). The longest chain is pinned to 0, or pictures drift."""
    if node in spine:
        return 0.0, 60.0
    near = net.up[node] + net.down[node] if sweep > 1 else (net.down if sweep else net.up)[node]
    if len(near) > 1:  # a parameter does not pull the chain that reads it
        near = [n for n in near if not is_leaf[n]] or near
    if not near:
        return xs[node], 0.1
    weight = 8.0 if node >= net.boxes else 0.5 if is_leaf[node] else 3.0
    values = sorted(xs[n] for n in near)
    middle = len(values) // 2
    return (values[middle] + values[(len(values) - 1) // 2]) / 2, weight


def _spine(net: _Net) -> set[int]:
    """The chain with most boxes from top to bottom."""
    best = [0] * len(net.row_of)
    follows = [-1] * len(net.row_of)
    for row in reversed(net.rows):
        for node in row:
            for reader in net.down[node]:
                score = best[reader] + (reader < net.boxes)
                if score > best[node] or follows[node] < 0:
                    best[node], follows[node] = score, reader
    chain = set()
    node = max(range(len(best)), key=best.__getitem__)
    while node >= 0:
        chain.add(node)
        node = follows[node]
    return chain


def squeeze(pulls: Sequence[tuple[float, float]], gaps: Sequence[float]) -> list[float]:
    """The x nearest to the wanted ones, weighted squares, that keep their order and gaps; exact, O(n).

    Pool adjacent violators (Ayer et al. 1955) on x minus the sum of the gaps before it.
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count
    for (wanted, weight), offset in zip(pulls, offsets):
        block = (wanted - offset, weight, 1)
        while blocks and blocks[-1][0] > block[0]:
            block = _pooled(blocks.pop(), block)
        blocks.append(block)
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets)]


def _pooled(a: tuple[float, float, int], b: tuple[float, float, int]) -> tuple[float, float, int]:
    weight = a[1] + b[1]
    return (a[0] * a[1] + b[0] * b[1]) / weight, weight, a[2] + b[2]


def _heights(net: _Net, boxes: Sequence[Box]) -> tuple[list[float], float]:
    """The y of each row's middle, and the height of all."""
    ys, y = [], 0.0
    for row in net.rows:
        height = max((boxes[n].height for n in row if n < net.boxes), default=0.0)
        ys.append(y + height / 2)
        y += height + ROW_GAP
    return ys, y - ROW_GAP


def _path(
    edge: Edge, chain: list[int] | None, xs: list[float], ys: list[float], net: _Net
) -> list[Point] | None:
    if chain is None:
        return None
    return [(xs[n], ys[net.row_of[n]]) for n in (edge[0], *chain, edge[1])]
