"""What a checkpoint asks for: values of the forward pass that the backward pass makes again.

In: a joint graph, whose captured nodes say in `meta["checkpoint"]` which line wants them made again. Out: the
joint nodes that come from nothing else. Random numbers are drawn once: what draws them is never among these, so
the masks of both passes are the same ones.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from torch import fx

from compiler_core.autodiff.ledger import capture_handle
from compiler_core.autodiff.vocabulary import is_random
from compiler_core.stages import Joint

__all__ = ["Remade", "remade_by"]


@dataclass(frozen=True, slots=True)
class Remade:
    """Joint nodes → the line of the checkpoint. `inside` are never saved; the others, which the rest of the
    program reads too, may be.
    """

    lines: dict[fx.Node, str]
    inside: frozenset[fx.Node]


def remade_by(joint: Joint, results: Collection[Any]) -> Remade:
    """The nodes that checkpoints want made again. `results` are what the program gets."""
    marks = _marks(joint)
    lines = {n: line for n in joint.graph.graph.nodes if (line := _line(n, marks))} if marks else {}
    inside = {n for n in lines if n not in results and all(map(lines.__contains__, _readers(n)))}
    return Remade(lines, frozenset(inside))


def _marks(joint: Joint) -> dict[str, str]:
    """Handles of captured nodes under a checkpoint → its line."""
    if joint.captured is None:
        return {}
    nodes = joint.captured.graph.nodes
    return {capture_handle(n): n.meta["checkpoint"] for n in nodes if "checkpoint" in n.meta}


def _line(node: fx.Node, marks: dict[str, str]) -> str | None:
    """The line, if the forward pass computes the node under a checkpoint and it may run twice."""
    origins = node.meta.get("origins", frozenset())
    if node.op != "call_function" or node.meta.get("phase") == "backward" or _is_drawn(node):
        return None
    return marks[min(origins)] if origins and origins <= marks.keys() else None


def _is_drawn(node: fx.Node) -> bool:
    source = node.args[0] if node.target is operator.getitem else node
    return isinstance(source, fx.Node) and is_random(source)


def _readers(node: fx.Node) -> list[fx.Node]:
    """Those of the forward pass."""
    return [
        user for user in node.users if user.meta.get("phase") != "backward" and user.op != "output"
    ]
