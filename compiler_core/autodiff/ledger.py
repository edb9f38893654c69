"""Who made which node: the provenance of a joint trace.

In: the growing graph of a trace, and the moments when its maker changes. Out: `origins` (handles of
captured nodes) and `phase` in the meta of every node. The idea: nodes that appeared since the
last moment belong to whoever was running, so nothing needs to be passed down.

Backward nodes belong to the captured node that made their autograd node. Torch numbers autograd
nodes in order of creation, so the numbers taken while a captured node ran are its own. Hooks around
each autograd node tell its own work from the additions the engine makes between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import fx

from compiler_core.autodiff.borrowed import node_sequence, unwrap
from compiler_core.provenance import Handle, Origins, handle, synthetic, union

__all__ = ["Ledger", "capture_handle", "reachable"]


def capture_handle(node: fx.Node) -> Handle:
    return handle("capture", node.name)


class Ledger:
    """Gives the nodes of `graph` their origins and phase as they appear."""

    def __init__(self, graph: fx.Graph):
        self._graph = graph
        self._maker: dict[int, Origins] = {}  # autograd sequence number → captured node
        self._made: dict[fx.Node, set[str]] = {}  # captured node → calls that it became
        self._sizes: dict[str, Origins] = {}  # symbolic size → captured nodes that computed it

    def settle(self, origins: Iterable[Handle], phase: str) -> None:
        """Nodes that appeared since the last call were made by `origins`."""
        origins = frozenset(origins)
        for node in self._unsettled():
            node.meta["origins"], node.meta["phase"] = origins, phase

    def settle_forward(self, maker: fx.Node) -> None:
        """Nodes that appeared were made by this captured node."""
        self._made[maker] = {_call(node) for node in self._unsettled()}
        self.settle({capture_handle(maker)}, "forward")

    def settle_replay(self, writer: fx.Node, maker: fx.Node) -> None:
        """Nodes that appeared compute a view again, because `writer` wrote its memory.

        `maker` is the captured node of the view. A view of a view is computed from the memory in
        several calls: each belongs to the captured node that first became the same call.
        """
        for node in self._unsettled():
            same = (m for m in _view_chain(maker) if _call(node) in self._made.get(m, ()))
            makers = {capture_handle(writer), capture_handle(next(same, maker))}
            node.meta["origins"], node.meta["phase"] = frozenset(makers), "forward"

    def settle_sums(self) -> None:
        """Nodes that appeared are sums of gradients: each comes from all that it adds up."""
        for node in reversed(self._unsettled()):
            sides = [a.meta["origins"] for a in node.all_input_nodes if "origins" in a.meta]
            origins = union(*sides) or synthetic("trace_joint", "made by the autograd engine")
            node.meta["origins"], node.meta["phase"] = origins, "backward"

    def claim(self, first: int, last: int, node: fx.Node) -> None:
        """Autograd nodes numbered [first, last) were made while `node` ran."""
        for number in range(first, last):
            self._maker[number] = frozenset({capture_handle(node)})

    def claim_size(self, value: Any, node: fx.Node) -> None:
        """`node` computed this symbolic size."""
        text = str(value.node.expr)
        self._sizes[text] = union(self._sizes.get(text, ()), {capture_handle(node)})

    def size_origins(self, node: fx.Node) -> Origins:
        """Origins of a node that computes a size: who asked for that size, else what it measures.

        Torch makes such nodes late, when something needs them, so the moment says little.
        """
        asked = self._sizes.get(str(node.meta["val"].node.expr))
        measured = union(*(a.meta["origins"] for a in node.all_input_nodes))
        return asked or measured or synthetic("trace_joint", "a constant size")

    def watch(self, grad_fns: Iterable[Any]) -> None:
        """While one of these autograd nodes runs, what appears is its maker's."""
        for grad_fn in grad_fns:
            origins = self._maker.get(node_sequence(grad_fn))
            if origins is None:
                origins = synthetic("trace_joint", f"no captured node made {grad_fn.name()}")
            grad_fn.register_prehook(lambda _: self.settle_sums())
            grad_fn.register_hook(lambda got, _, origins=origins: self._ran(got, origins))

    def _ran(self, gradients: Sequence[Any], origins: Origins) -> None:
        for gradient in gradients:
            unwrap(gradient)  # writes that are still pending are this node's work too
        self.settle(origins, "backward")

    def _unsettled(self) -> list[fx.Node]:
        """New nodes, the newest first."""
        new = []
        for node in reversed(self._graph.nodes):
            if "origins" in node.meta:
                break
            new.append(node)
        return new


def _call(node: fx.Node) -> str:
    return f"{node.target}{node.args[1:]}"


def _view_chain(node: fx.Node) -> Iterator[fx.Node]:
    """A captured node, the node of its first operand, and so on."""
    yield node
    while node.all_input_nodes:
        node = node.all_input_nodes[0]
        yield node


def reachable(roots: Sequence[torch.Tensor]) -> list[Any]:
    """Every autograd node behind the roots, each after all that it leads to (leaves first)."""
    order: list[Any] = []
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(root.grad_fn, False) for root in roots]
    while stack:
        grad_fn, done = stack.pop()
        if done:
            order.append(grad_fn)
        elif grad_fn is not None and grad_fn not in seen:
            seen.add(grad_fn)
            stack.append((grad_fn, True))
            stack += [(following, False) for following, _ in grad_fn.next_functions]
    return order
