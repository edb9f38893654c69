"""A recorded graph as Graphviz source, for papers and slides; and as SVG where `dot` is installed.

In: the stage record of a graph (captured, joint, forward, backward). Out: DOT text. The explorer's own
pictures do not use it (`layout/` does): Graphviz takes minutes for graphs of a thousand nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import graphviz

from compiler_core.recording import StageRecord

__all__ = ["of_records", "to_dot", "to_svg"]

_SHAPES = {"placeholder": "ellipse", "get_attr": "ellipse"}


def to_dot(record: StageRecord) -> str:
    """DOT source. Raises ValueError for a stage whose items have no inputs: a text, not a graph."""
    return str(_digraph(record).source)


def of_records(records: Iterable[StageRecord], stage: str) -> str:
    """DOT source of the first record of a stage. Raises ValueError if there is none."""
    for record in records:
        if record.name == stage:
            return to_dot(record)
    raise ValueError(f"no {stage} stage was recorded")


def to_svg(record: StageRecord) -> str:
    """An SVG picture. Raises graphviz.ExecutableNotFound where `dot` is not installed."""
    return str(_digraph(record).pipe(format="svg", encoding="utf-8"))


def _digraph(record: StageRecord) -> graphviz.Digraph:
    if not any("inputs" in item.data for item in record.items):
        raise ValueError(
            f"stage {record.name} is a text; captured, joint, forward, backward are graphs"
        )
    graph = graphviz.Digraph(record.name, node_attr={"shape": "box", "fontname": "sans-serif"})
    for item in record.items:
        label = graphviz.escape(f"{item.label}\n{item.data['type']}")
        graph.node(_name(item.handle), label, shape=_SHAPES.get(item.data["op"], "box"))
        graph.edges((_name(source), _name(item.handle)) for source in item.data["inputs"])
    return graph


def _name(handle: str) -> str:
    """Graphviz reads a colon as a port."""
    return handle.replace(":", "/")
