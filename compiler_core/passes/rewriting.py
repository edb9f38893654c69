"""Copies a graph node by node, so that passes are pure; and says in words what was rewritten.

In: a graph, and for each node in order one of `keep`, `stand_in`, `replace`, `drop`. Out: a new
graph, or the same object if every node was kept. A node that disappears gives its origins and
readers to the node that stands in for it, and every rewrite is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from compiler_core.options import Context
from compiler_core.provenance import NOWHERE, union
from compiler_core.recording import Rewrite

__all__ = ["Rewriter", "escapes", "is_random", "same_layout"]


# Their results can share memory, though their schemas do not say so.
_UNDECLARED_VIEWS = {"aten::_unsafe_view", "aten::_reshape_alias", "aten::reshape"}


class Rewriter:
    """One run of one pass over one graph."""

    def __init__(self, graph: fx.GraphModule, context: Context, pass_name: str):
        self.graph, self.context, self.pass_name = graph, context, pass_name
        self.new = fx.Graph()
        self.copies: dict[fx.Node, fx.Node] = {}
        self.changed = False

    def keep(self, node: fx.Node) -> fx.Node:
        """Copy a node."""
        self.copies[node] = self.new.node_copy(node, lambda x: self.copies[x])
        return self.copies[node]

    def stand_in(
        self, node: fx.Node, survivor: fx.Node, rule: str, through: Iterable[fx.Node] = ()
    ) -> None:
        """Let `survivor`, a node of the new graph, take a node's place.

        `through` are nodes between the two, which may now be without a reader: their origins stay.
        """
        self._record(node, rule, survivor.name)
        self._inherit(survivor, (node, *through))
        self.copies[node] = survivor

    def replace(
        self,
        node: fx.Node,
        target: Any,
        args: tuple[Any, ...],
        rule: str,
        through: Iterable[fx.Node] = (),
        **kwargs: Any,
    ) -> None:
        """Compute a node by another operator on nodes of the new graph; its metadata stays."""
        made = self.new.create_node("call_function", target, args, kwargs, name=node.name)
        made.meta = dict(node.meta)
        self._inherit(made, through)
        self._record(node, rule, made.format_node() or "")
        self.copies[node] = made

    def drop(self, node: fx.Node, rule: str) -> None:
        """Leave out a node that nothing reads."""
        self._record(node, rule, "")

    def build(self) -> fx.GraphModule:
        """The new graph; the old one if nothing changed."""
        if not self.changed:
            return self.graph
        built = fx.GraphModule(self.graph, self.new)
        built.meta = dict(self.graph.meta)
        return built

    def _inherit(self, survivor: fx.Node, nodes: Iterable[fx.Node]) -> None:
        for key in ("origins", "readers"):
            found = union(*(x.meta.get(key, NOWHERE) for x in (survivor, *nodes)))
            if found:
                survivor.meta[key] = found

    def _record(self, node: fx.Node, rule: str, after: str) -> None:
        self.changed = True
        if not self.context.recorder.explore:
            return
        caller = sys._getframe(2)
        where = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        about = tuple(sorted(node.meta.get("origins", NOWHERE)))
        before = node.format_node() or node.name
        self.context.recorder.rewrite(Rewrite(self.pass_name, rule, where, before, after, about))


def escapes(graph: fx.GraphModule) -> set[fx.Node]:
    """Nodes whose memory the caller gets: returned, or seen by a returned view."""
    found: set[fx.Node] = set()
    for node in reversed(graph.graph.nodes):
        if any(user.op == "output" for user in node.users) or any(
            user in found and _may_alias(user, node) for user in node.users
        ):
            found.add(node)
    return found


def _may_alias(user: fx.Node, node: fx.Node) -> bool:
    """Whether a user's result can share memory with its argument."""
    schema = getattr(user.target, "_schema", None)
    if schema is None:
        return True
    declared = any(r.alias_info is not None for r in schema.returns)
    return declared or schema.name in _UNDECLARED_VIEWS


def is_random(node: fx.Node) -> bool:
    """Whether running a node twice gives different results, or none moves the random stream."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def same_layout(a: Any, b: Any) -> bool:
    """Whether two fake tensors have one type, size, stride, offset and device."""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    return (a.dtype, a.device, _text(a.shape), _text(a.stride()), str(a.storage_offset())) == (
        b.dtype, b.device, _text(b.shape), _text(b.stride()), str(b.storage_offset()),
    )  # fmt: skip


def _text(sizes: Any) -> tuple[str, ...]:
    """Sizes as text, so that comparing symbolic ones makes no guards."""
    return tuple(map(str, sizes))
