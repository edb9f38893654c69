"""The raw trace made into a Joint: inputs first, no leftovers, provenance complete.

In: the graph that `make_fx` wrote and the facts learned while it did. Out: a `Joint`.

Establishes: placeholders are the captured inputs under their names, then tangents; only nodes that
an output needs and those that draw random numbers; no aliases or no-op views; origins and phase on
every node.
Keeps: order, names, values, `meta["val"]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from compiler_core.autodiff.ledger import Ledger
from compiler_core.autodiff.outputs import OutputPlan
from compiler_core.autodiff.refusals import DRAWS_LOST, TRACE_FAILED, refuse
from compiler_core.autodiff.sizes import same_sizes
from compiler_core.autodiff.vocabulary import is_random
from compiler_core.provenance import synthetic, union
from compiler_core.stages import Captured, Joint

__all__ = ["Facts", "joint"]

_aten = torch.ops.aten
_SAME_VALUE = {_aten.alias.default, _aten.detach.default, _aten.lift_fresh.default}
_SAME_IF_SHAPE = {_aten.view.default, _aten._unsafe_view.default, _aten.expand.default}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a trace learned; numbers are positions in the flat outputs and inputs."""

    outputs: int  # visible and hidden
    plan: OutputPlan
    written: tuple[int, ...]
    diff_outputs: tuple[int, ...]
    diff_inputs: tuple[int, ...]
    reaches: tuple[tuple[int, ...], ...]


def joint(captured: Captured, traced: fx.GraphModule, ledger: Ledger, facts: Facts) -> Joint:
    """The Joint of a trace.

    Raises InternalError CC206 for a value with a lazy bit, CC201 when draws are missing or too many.
    """
    _check_draws(captured.graph.graph, traced.graph)
    builder = _Builder(captured, traced, ledger, facts)
    graph = builder.build()
    plan = facts.plan
    return Joint(
        graph=fx.GraphModule(traced, graph, "Joint"), primals=len(captured.inputs), outputs=facts.outputs,
        diff_outputs=facts.diff_outputs, diff_inputs=facts.diff_inputs, mutated=facts.written,
        aliases=plan.aliases, views=plan.views, hidden=len(plan.hidden), reaches=facts.reaches,
        captured=captured.graph,
    )  # fmt: skip


def _check_draws(captured: fx.Graph, traced: fx.Graph) -> None:
    """Only where the capture counted: it notes on each node how often the operators under it draw."""
    known = [node.meta["draws"] for node in captured.nodes if "draws" in node.meta]
    found = sum(map(is_random, traced.nodes))
    if known and found != sum(known):
        raise refuse(DRAWS_LOST, f"{sum(known)} draws captured, {found} traced")


class _Builder:
    """Copies the needed part of a trace into a new graph."""

    def __init__(self, captured: Captured, traced: fx.GraphModule, ledger: Ledger, facts: Facts):
        self._captured = captured
        self._traced = traced
        self._ledger = ledger
        self._facts = facts
        self._graph = fx.Graph()
        self._new: dict[fx.Node, fx.Node] = {}

    def build(self) -> fx.Graph:
        nodes = list(self._traced.graph.nodes)
        result = nodes[-1]
        outputs = pytree.tree_leaves(result.args[0], is_leaf=lambda x: x is None)
        needed = _needed([*outputs, *filter(is_random, nodes)])
        self._placeholders([n for n in nodes if n.op == "placeholder"])
        for node in nodes:
            if node in needed and node.op != "placeholder":
                self._copy(node)
        mapped = [self._new[o] if isinstance(o, fx.Node) else o for o in outputs]
        made = self._graph.output(tuple(mapped))
        (captured_result,) = (n for n in self._captured.graph.graph.nodes if n.op == "output")
        made.meta["origins"] = frozenset({f"capture:{captured_result.name}"})
        made.meta["phase"] = "forward"
        return self._graph

    def _placeholders(self, nodes: Sequence[fx.Node]) -> None:
        inputs = self._captured.inputs
        for position, node in enumerate(nodes):
            given = inputs[position] if position < len(inputs) else None
            new = self._graph.placeholder(given.name if given else node.name)
            new.meta = dict(node.meta)
            new.meta["origins"] = frozenset(node.meta["origins"])
            new.meta["is_parameter"] = given.is_parameter if given else False
            new.meta["is_mutated"] = position in self._facts.written
            self._new[node] = new

    def _copy(self, node: fx.Node) -> None:
        if _is_same_value(node):
            self._new[node] = self._new[node.args[0]]  # type: ignore[index]
            return
        if _is_lazy(node.meta.get("val")):
            raise refuse(TRACE_FAILED, f"{node.target} is conjugated or negated lazily")
        new = self._scalar(node) or self._graph.node_copy(node, lambda n: self._new[n])
        new.meta["origins"] = self._origins(node, new)
        new.meta.setdefault("phase", "forward")
        self._new[node] = new

    def _scalar(self, node: fx.Node) -> fx.Node | None:
        """A constant of one element becomes a number in the graph's text."""
        if node.target is not _aten.lift_fresh_copy.default:
            return None
        source = node.args[0]
        assert isinstance(source, fx.Node)
        value = getattr(self._traced, str(source.target)) if source.op == "get_attr" else None
        if not isinstance(value, torch.Tensor) or value.numel() != 1 or value.is_complex():
            return None
        options = {"dtype": value.dtype, "device": node.meta["val"].device}
        new = self._graph.call_function(
            _aten.full.default, (list(value.shape), value.item()), options
        )
        new.meta = dict(node.meta)
        return new

    def _origins(self, old: fx.Node, new: fx.Node) -> frozenset[str]:
        if isinstance(new.meta.get("val"), torch.SymInt):
            return self._ledger.size_origins(new)
        found = frozenset(old.meta.get("origins", ()))
        return (
            found
            or union(*(a.meta["origins"] for a in new.all_input_nodes))
            or synthetic("trace_joint", "a constant")
        )


def _is_lazy(value: Any) -> bool:
    """Does memory not say what the value is? Kernels would read numbers without the bit's meaning."""
    return isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg())


def _needed(outputs: Sequence[Any]) -> set[fx.Node]:
    stack = [o for o in outputs if isinstance(o, fx.Node)]
    needed = set(stack)
    while stack:
        for operand in stack.pop().all_input_nodes:
            if operand not in needed:
                needed.add(operand)
                stack.append(operand)
    return needed


def _is_same_value(node: fx.Node) -> bool:
    if node.target in _SAME_VALUE:
        return True
    if node.target not in _SAME_IF_SHAPE:
        return False
    source = node.args[0]
    assert isinstance(source, fx.Node)
    before, after = source.meta["val"], node.meta["val"]
    return same_sizes(before.shape, after.shape) and same_sizes(before.stride(), after.stride())
