"""Parameters that many nodes read become one small box per reader.

In: boxes and edges. Out: boxes and edges without hubs. One parameter with forty edges across the whole
picture says less than forty labels, and costs any layered layout most of its time.
"""

from __future__ import annotations

from collections import Counter

from explorer.layout.drawing import Box, Edge

__all__ = ["clone_hubs"]


def clone_hubs(boxes: list[Box], edges: list[Edge], limit: int = 4) -> tuple[list[Box], list[Edge]]:
    """Sources with more than `limit` readers, or with readers in both lanes, are copied to their readers.

    A copy keeps the name and stands in its reader's lane; it takes the reader's origins, to stand near.
    """
    readers = Counter(a for a, _ in edges)
    crossing = {a for a, b in edges if boxes[a].lane != boxes[b].lane}
    hubs = {
        n
        for n, box in enumerate(boxes)
        if box.is_source and (readers[n] > limit or (n in crossing and readers[n] > 1))
    }
    place: dict[int, int] = {}
    kept: list[Box] = []
    for n, box in enumerate(boxes):
        if n not in hubs:
            place[n] = len(kept)
            kept.append(box)
    found: list[Edge] = []
    for a, b in edges:
        if a in hubs:
            kept.append(_copy(boxes[a], boxes[b]))
            found.append((len(kept) - 1, place[b]))
        else:
            found.append((place[a], place[b]))
    return kept, found


def _copy(hub: Box, reader: Box) -> Box:
    return Box(hub.name, hub.width, hub.height, reader.lane, reader.about, True)
