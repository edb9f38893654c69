"""Forward down on the left, backward up on the right, each gradient at the height of its cause.

In: boxes with lanes, edges. Out: a `Drawing` with two lanes. Every forward row is a band as high as the
chain of backward nodes that belong to it, so both lanes keep step; edges between the lanes are the
values that are saved.
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.layout.drawing import Box, Drawing, Edge, Point
from explorer.layout.layered import ROW_GAP, layered
from explorer.layout.ranks import neighbours, ranks, topological

__all__ = ["in_lanes"]

_BETWEEN = 110.0  # px from lane to lane
_TITLE = 26.0  # px for the lanes' titles


def in_lanes(boxes: Sequence[Box], edges: Sequence[Edge]) -> Drawing:
    """Place a joint graph. Raises ValueError for a cycle."""
    forward = [n for n, box in enumerate(boxes) if not box.lane]
    backward = [n for n, box in enumerate(boxes) if box.lane]
    rows = _rows(boxes, edges, forward, backward)
    height = max(box.height for box in boxes)
    levels = [_TITLE + row * (height + ROW_GAP) + height / 2 for row in range(max(rows) + 1)]
    left = _lane(boxes, edges, forward, rows, levels, False)
    right = _lane(boxes, edges, backward, rows, levels, True)
    shift = left.width + _BETWEEN
    places: list[Point] = [(0.0, 0.0)] * len(boxes)
    for n, place in zip(forward, left.places):
        places[n] = place
    for n, (x, y) in zip(backward, right.places):
        places[n] = (x + shift, y)
    inner = _inner_paths(boxes, edges, left, right, shift)
    paths = [inner[e] if e in inner else _rung(boxes, places, e) for e in edges]
    lanes = (("forward", 0.0, left.width), ("backward", shift, right.width))
    return Drawing(places, paths, shift + right.width, levels[-1] + height / 2, lanes)


def _rows(
    boxes: Sequence[Box], edges: Sequence[Edge], forward: list[int], backward: list[int]
) -> list[int]:
    """The row of every box: forward ones open a band, backward ones stack up in it."""
    place = {n: k for k, n in enumerate(forward)}
    own = ranks(len(forward), [(place[a], place[b]) for a, b in edges if a in place and b in place])
    band = [0] * len(boxes)
    depth = [0] * len(boxes)
    last: dict[str, int] = {}  # origin → the last forward row that has it
    for n, row in zip(forward, own):
        band[n] = row
        for origin in boxes[n].about:
            last[origin] = max(last.get(origin, 0), row)
    readers, order = _against_the_flow(edges, backward)
    for n in order:
        causes = [last[origin] for origin in boxes[n].about if origin in last]
        band[n] = max([*causes, *(band[r] for r in readers[n])], default=0)
        depth[n] = 1 + max((depth[r] for r in readers[n] if band[r] == band[n]), default=-1)
    heights = [1] * (max(band) + 1)
    for n in range(len(boxes)):
        heights[band[n]] = max(heights[band[n]], depth[n] + 1)
    starts = [0]
    for height in heights:
        starts.append(starts[-1] + height)
    return [starts[band[n]] + depth[n] for n in range(len(boxes))]


def _against_the_flow(
    edges: Sequence[Edge], backward: list[int]
) -> tuple[dict[int, list[int]], list[int]]:
    """Who reads each backward node, and the backward nodes with readers first."""
    place = {n: k for k, n in enumerate(backward)}
    inner = [(place[a], place[b]) for a, b in edges if a in place and b in place]
    after, before = neighbours(len(backward), inner)
    readers = {n: [backward[r] for r in after[k]] for n, k in place.items()}
    return readers, [backward[k] for k in reversed(topological(after, before))]


def _lane(
    boxes: Sequence[Box], edges: Sequence[Edge], members: list[int], rows: list[int],
    levels: list[float], is_upward: bool,
) -> Drawing:  # fmt: skip
    """One lane by itself, in the rows that it uses."""
    used = sorted({rows[n] for n in members})
    local = {row: k for k, row in enumerate(used)}
    place = {n: k for k, n in enumerate(members)}
    inner = [(place[a], place[b]) for a, b in edges if a in place and b in place]
    if is_upward:
        inner = [(b, a) for a, b in inner]
    own = [local[rows[n]] for n in members]
    return layered([boxes[n] for n in members], inner, own, [levels[row] for row in used])


def _inner_paths(
    boxes: Sequence[Box], edges: Sequence[Edge], left: Drawing, right: Drawing, shift: float
) -> dict[Edge, list[Point] | None]:
    inside = {
        lane: [e for e in edges if boxes[e[0]].lane == boxes[e[1]].lane == lane] for lane in (0, 1)
    }
    paths: dict[Edge, list[Point] | None] = dict(zip(inside[0], left.paths))
    for edge, path in zip(inside[1], right.paths):
        paths[edge] = path and [(x + shift, y) for x, y in reversed(path)]
    return paths


def _rung(boxes: Sequence[Box], places: list[Point], edge: Edge) -> list[Point]:
    """A saved value: from the right side of its producer to the left side of its reader."""
    (ax, ay), (bx, by) = places[edge[0]], places[edge[1]]
    return [(ax + boxes[edge[0]].width / 2, ay), (bx - boxes[edge[1]].width / 2, by)]
