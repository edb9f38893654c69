"""Graphs as Graphviz source: every node, every edge, hostile names kept as text."""

from __future__ import annotations

import pytest

from compiler_core.recording import Item, StageRecord
from explorer.dot import of_records, to_dot


def node(name: str, op: str, *inputs: str) -> Item:
    data = {"op": op, "type": "f32[2]", "inputs": [f"joint:{i}" for i in inputs]}
    return Item(f"joint:{name}", name, (), (1,), data)


def record(*items: Item) -> StageRecord:
    return StageRecord("joint", "", "", "python", "", "", list(items))


def test_nodes_and_edges_are_the_graphs() -> None:
    items = [
        node("x", "placeholder"),
        node("sin", "call_function", "x"),
        node("mul", "call_function", "sin", "x"),
    ]
    source = to_dot(record(*items))
    assert source.count("->") == 3 and '"joint/sin" -> "joint/mul"' in source
    assert source.count("shape=ellipse") == 1 and "f32[2]" in source
    assert to_dot(record(*items)) == source


def test_text_of_a_program_stays_text() -> None:
    source = to_dot(record(node('a"];\\l<b>', "call_function")))
    assert '\\"' in source and source.count("->") == 0


def test_a_stage_that_is_no_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="stage kernels is a text"):
        to_dot(StageRecord("kernels", "", "", "cpp", "", "", [Item("kernels:k:1", "k", ())]))


def test_the_graph_of_a_stage_is_found_among_records() -> None:
    records = [record(node("x", "placeholder"), node("sin", "call_function", "x"))]
    assert '"joint/x" -> "joint/sin"' in of_records(records, "joint")
    with pytest.raises(ValueError, match="no capture stage"):
        of_records(records, "capture")
