"""A graph as a picture: nodes with places, edges with paths.

In: a stage record whose items know their inputs (captured, joint, forward, backward). Out: plain
data with all coordinates; JavaScript only draws. A joint graph is laid out in two lanes.
"""

from __future__ import annotations

from typing import Any

from compiler_core.recording import Item, StageRecord
from explorer.layout import Box, Drawing, in_lanes, layered
from explorer.layout.hubs import clone_hubs

__all__ = ["HAS_PICTURE", "graph_picture", "kind_of"]

HAS_PICTURE = ("capture", "joint", "forward", "backward")
_CHARACTER = 6.8  # px of a character of the nodes' font: pictures do not depend on a browser
_HEIGHT = 36.0
_WORDS = {
    "product": ("mm", "matmul", "linear", "conv", "bmm", "einsum", "attention", "@"),
    "reduction": ("sum", "mean", "max", "min", "norm", "softmax", "prod", "var", "argmax", "any", "all"),
    "shape": ("view", "reshape", "expand", "permute", "transpose", "squeeze", "slice", "select", "cat",
              "getitem", "detach", "alias", "clone", "split", "flatten", "aten.t."),
}  # fmt: skip


def graph_picture(record: StageRecord, numbers: dict[str, int]) -> dict[str, Any] | None:
    """`nodes`: [item, label, type, kind, tip, x, y, w, h]; `edges`: [from, to, points or null, is saved].

    None for a record of another kind, or one without items.
    """
    if record.name not in HAS_PICTURE or not record.items:
        return None
    has_lanes = record.name == "joint"
    boxes, edges = clone_hubs([_box(i, has_lanes) for i in record.items], _edges(record.items))
    drawing = in_lanes(boxes, edges) if _has_backward(boxes) else layered(boxes, edges)
    by_handle = {item.handle: item for item in record.items}
    return {
        "size": [_round(drawing.width), _round(drawing.height)],
        "lanes": [[title, _round(x), _round(w)] for title, x, w in drawing.lanes],
        "nodes": [
            _node(box, by_handle[box.name], numbers, drawing.places[n])
            for n, box in enumerate(boxes)
        ],
        "edges": _paths(boxes, edges, drawing),
    }


def kind_of(data: dict[str, Any]) -> str:
    """What a node does, for its colour: input, product, reduction, shape or pointwise."""
    if data.get("op") in ("placeholder", "get_attr"):
        return "input"
    target = str(data.get("target", "")).lower()
    return next((k for k, words in _WORDS.items() if any(w in target for w in words)), "pointwise")


def _has_backward(boxes: list[Box]) -> bool:
    return len({box.lane for box in boxes}) > 1


def _box(item: Item, has_lanes: bool) -> Box:
    width = max(len(_short(item.label)), len(_short(_type(item)))) * _CHARACTER + 18
    return Box(
        item.handle,
        max(width, 48.0),
        _HEIGHT,
        lane=int(has_lanes and item.data.get("phase") == "backward"),
        about=item.origins,
        is_source=item.data.get("op") in ("placeholder", "get_attr"),
    )


def _short(text: str, most: int = 18) -> str:
    """The end of a long name says more than its middle."""
    return text if len(text) <= most else f"{text[: most - 9]}…{text[-8:]}"


def _type(item: Item) -> str:
    return str(item.data.get("type", ""))


def _edges(items: list[Item]) -> list[tuple[int, int]]:
    place = {item.handle: n for n, item in enumerate(items)}
    found = (
        (place[h], n)
        for n, item in enumerate(items)
        for h in item.data.get("inputs", ())
        if h in place
    )
    return list(dict.fromkeys(found))


def _node(box: Box, item: Item, numbers: dict[str, int], place: tuple[float, float]) -> list[Any]:
    tip = f"{item.label} = {item.data.get('target', '')}  {_type(item)}"
    if (size := item.data.get("bytes")) is not None:
        tip += f"  {size} B"
    x, y = place
    where = [_round(v) for v in (x, y, box.width, box.height)]
    names = [_short(item.label), _short(_type(item))]
    return [numbers[item.handle], *names, kind_of(item.data), tip, *where]


def _paths(boxes: list[Box], edges: list[tuple[int, int]], drawing: Drawing) -> list[list[Any]]:
    return [
        [a, b, None if path is None else [_round(v) for point in path for v in point],
         int(boxes[a].lane != boxes[b].lane)]
        for (a, b), path in zip(edges, drawing.paths)
    ]  # fmt: skip


def _round(value: float) -> float:
    return round(value, 1)
