"""The layout: deterministic, edges down, boxes apart, lanes in step, linear time."""

from __future__ import annotations

import gc
import random
import time

import pytest

from explorer.layout import Box, clone_hubs, in_lanes, layered
from explorer.layout.layered import squeeze
from explorer.layout.ranks import ranks


def boxes(count: int, **about: object) -> list[Box]:
    return [Box(f"n{i}", 60.0 + 7 * (i % 5), 36.0, **about) for i in range(count)]


def random_graph(count: int, seed: int) -> list[tuple[int, int]]:
    draw = random.Random(seed)
    edges = {(n - 1, n) for n in range(1, count)}
    for n in range(2, count):
        edges |= {(draw.randrange(max(0, n - 12), n), n) for _ in range(draw.randrange(3))}
    return sorted(edges)


def overlaps(boxes: list[Box], places: list[tuple[float, float]]) -> list[tuple[str, str]]:
    rows: dict[float, list[int]] = {}
    for n, (_, y) in enumerate(places):
        rows.setdefault(y, []).append(n)
    found = []
    for row in rows.values():
        row.sort(key=lambda n: places[n][0])
        found += [
            (boxes[a].name, boxes[b].name)
            for a, b in zip(row, row[1:])
            if places[b][0] - places[a][0] < (boxes[a].width + boxes[b].width) / 2
        ]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_edges_point_down_and_boxes_do_not_overlap(seed: int) -> None:
    nodes, edges = boxes(120), random_graph(120, seed)
    drawing = layered(nodes, edges)
    assert all(drawing.places[a][1] < drawing.places[b][1] for a, b in edges)
    assert overlaps(nodes, drawing.places) == []
    assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in drawing.places)
    assert drawing == layered(nodes, edges)


def test_a_chain_is_straight_and_a_picture_has_known_places() -> None:
    drawing = layered([Box("a", 60, 36), Box("b", 60, 36), Box("c", 60, 36)], [(0, 1), (1, 2)])
    assert drawing.places == [(30.0, 18.0), (30.0, 82.0), (30.0, 146.0)]
    assert drawing.paths == [[(30.0, 18.0), (30.0, 82.0)], [(30.0, 82.0), (30.0, 146.0)]]


def test_sources_stand_just_above_their_first_reader() -> None:
    assert ranks(4, [(0, 1), (1, 2), (3, 2)]) == [0, 1, 2, 1]


def test_a_cycle_is_refused_and_nothing_is_nothing() -> None:
    with pytest.raises(ValueError, match="cycle"):
        layered(boxes(2), [(0, 1), (1, 0)])
    assert layered([], []).places == []


def test_squeeze_is_the_nearest_order_that_keeps_the_gaps() -> None:
    assert squeeze([(0.0, 1.0), (0.0, 1.0)], [10.0]) == [-5.0, 5.0]
    assert squeeze([(0.0, 1.0), (100.0, 1.0)], [10.0]) == [0.0, 100.0]
    assert squeeze([(0.0, 3.0), (0.0, 1.0)], [8.0]) == [-2.0, 6.0]


def test_hubs_become_a_copy_for_each_reader() -> None:
    nodes = [Box("w", 50, 36, is_source=True), *boxes(6)]
    kept, edges = clone_hubs(nodes, [(0, n) for n in range(1, 7)])
    assert [b.name for b in kept].count("w") == 6 and len(edges) == 6
    assert len({a for a, _ in edges}) == 6
    assert clone_hubs(nodes, [(0, 1)])[0] == nodes


def joint(count: int) -> tuple[list[Box], list[tuple[int, int]]]:
    """A chain of forward nodes, two backward nodes for each, a saved value from each."""
    nodes = [Box(f"f{i}", 60, 36, 0, (f"capture:{i}",)) for i in range(count)]
    nodes += [Box(f"b{i}.{k}", 60, 36, 1, (f"capture:{i}",)) for i in range(count) for k in (0, 1)]
    edges = [(i, i + 1) for i in range(count - 1)]
    for i in range(count):
        edges += [(count + 2 * i + 1, count + 2 * i), (i, count + 2 * i + 1)]
        if i:
            edges.append((count + 2 * i, count + 2 * i - 1))
    return nodes, edges


def test_lanes_keep_step_and_the_gradient_flows_up() -> None:
    nodes, edges = joint(6)
    drawing = in_lanes(nodes, edges)
    y = {box.name: place[1] for box, place in zip(nodes, drawing.places)}
    x = {box.name: place[0] for box, place in zip(nodes, drawing.places)}
    for i in range(6):
        assert y[f"b{i}.0"] == y[f"f{i}"] and y[f"b{i}.1"] > y[f"b{i}.0"]
    assert max(x[f"f{i}"] for i in range(6)) < min(x[f"b{i}.0"] for i in range(6))
    assert [title for title, _, _ in drawing.lanes] == ["forward", "backward"]


def test_time_grows_with_the_graph_and_no_faster() -> None:
    """Eight times the graph may take 24 times as long: a quadratic step would take 64."""

    def seconds(count: int) -> float:
        nodes, edges = joint(count)
        times = []
        for _ in range(3):  # the best: other tests share the machine, and the heap
            start = time.process_time()
            in_lanes(nodes, edges)
            times.append(time.process_time() - start)
        return min(times)

    gc.disable()
    try:
        small, large = seconds(400), seconds(3200)
    finally:
        gc.enable()
    assert large < 3.0 and large < 24 * small, (small, large)
