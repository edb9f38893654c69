"""Joint → Partitioned: which forward values the backward pass keeps, and the two graphs.

In: a joint graph. Out: a forward and a backward graph and what crosses between them. The idea is a
minimum cut: each value is a pair of nodes joined by an edge whose capacity is the price of saving
it (`costs.py`); what the cut severs is saved, what lies behind it is computed again. Source: H. He
and S. Yu, "Transcending Runtime-Memory Tradeoffs in Checkpointing by being Fusion Aware", MLSys 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from compiler_core.autodiff.checkpoints import Remade, remade_by
from compiler_core.autodiff.costs import bytes_of, can_recompute, price
from compiler_core.autodiff.extract import extract
from compiler_core.autodiff.mincut import UNLIMITED, Network
from compiler_core.autodiff.missing_sizes import missing_sizes
from compiler_core.autodiff.own_memory import give_own_memory
from compiler_core.autodiff.vocabulary import is_fraction, is_random, is_size, is_view
from compiler_core.options import Context
from compiler_core.provenance import handle
from compiler_core.stages import Joint, Partitioned, Saved

__all__ = ["partition"]


def partition(joint: Joint, context: Context) -> Partitioned:
    """Cut a joint graph in two.

    With `options.recompute` off, whatever the backward pass reads is saved. Each choice is recorded as a
    decision "save" or "recompute".
    """
    parts = _Parts.of(joint)
    if not joint.diff_inputs:
        return Partitioned(joint, _forward(joint, parts, []), None, ())
    saved = _choose(parts, context.options.recompute)
    backward = _backward(joint, parts, saved)
    if sizes := missing_sizes(joint.graph, backward):
        saved = [*sizes, *saved]
        backward = _backward(joint, parts, saved)
    forward = _forward(joint, parts, saved)
    _link(forward, backward, len(saved))
    records = tuple(
        Saved(n.name, bytes_of(n), _reason(n, context.options.recompute)) for n in saved
    )
    _record(context, parts.remade, records, forward, backward)
    return Partitioned(joint, forward, backward, records)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The joint graph's nodes by role. `results` are the outputs and new values to compute."""

    primals: tuple[fx.Node, ...]
    tangents: tuple[fx.Node, ...]
    results: tuple[Any, ...]
    gradients: tuple[Any, ...]
    late: frozenset[fx.Node]  # depend on a tangent
    remade: Remade  # made again because checkpoints ask for it
    values: tuple[fx.Node, ...]  # do not, and the backward pass uses them, in order

    @classmethod
    def of(cls, joint: Joint) -> _Parts:
        nodes = list(joint.graph.graph.nodes)
        inputs = [n for n in nodes if n.op == "placeholder"]
        outputs = list(nodes[-1].args[0])
        rebuilt = {o for o, _ in joint.aliases} | {view.output for view in joint.views}
        end = joint.outputs + len(joint.mutated)
        results = [None if i in rebuilt else o for i, o in enumerate(outputs[:end])]
        late = set(inputs[joint.primals :])
        for node in nodes:
            if node.op != "output" and not late.isdisjoint(node.all_input_nodes):
                late.add(node)
        used = _ancestors(o for o in outputs[end:] if isinstance(o, fx.Node))
        return cls(
            tuple(inputs[: joint.primals]), tuple(inputs[joint.primals :]), tuple(results),
            tuple(outputs[end:]), frozenset(late), remade_by(joint, results), tuple(n for n in nodes if n in used and n not in late),
        )  # fmt: skip


def _ancestors(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    stack = list(nodes)
    found = set(stack)
    while stack:
        new = set(stack.pop().all_input_nodes) - found
        found |= new
        stack += new
    return found


def _choose(parts: _Parts, recompute: bool) -> list[fx.Node]:
    """The values to save: sizes first, then in the order of the graph."""
    network: Network[Any] = Network()
    outputs = frozenset(o for o in parts.results if isinstance(o, fx.Node))
    values = frozenset(parts.values)
    wanted = frozenset(g for g in parts.gradients if isinstance(g, fx.Node))
    network.edge("forward", "backward", 0)
    for node in parts.values:
        enter, leave = (node, "in"), (node, "out")
        network.edge(enter, leave, price(node, outputs, parts.remade.inside))
        if node.op == "placeholder" or _is_forward_only(node, parts, recompute):
            network.edge("forward", enter, UNLIMITED)
        for user in node.users:
            if user in values:
                network.edge(leave, (user, "in"), UNLIMITED)
        if node in wanted or not parts.late.isdisjoint(node.users):
            network.edge(leave, "backward", UNLIMITED)
    total, early = network.minimum_cut("forward", "backward")
    assert total < UNLIMITED, "every path from an input passes a value that can be saved"
    saved = [n for n in parts.values if (n, "in") in early and (n, "out") not in early]
    return sorted(saved, key=lambda n: not is_size(n))


def _is_forward_only(node: fx.Node, parts: _Parts, recompute: bool) -> bool:
    """Traced in the forward pass and not to be computed a second time."""
    if node.meta["phase"] == "backward" or node.op == "get_attr":
        return False
    if is_view(node) or is_fraction(node):
        return False
    if node in parts.remade.lines:
        return False
    return not (recompute and can_recompute(node))


def _forward(joint: Joint, parts: _Parts, saved: Sequence[fx.Node]) -> fx.GraphModule:
    """The forward graph. `meta["mutated"]` pairs inputs with the results that may be written into
    them straight away: new values without a gradient (the others are copied in by autograd).
    """
    draws = [n for n in joint.graph.graph.nodes if is_random(n) and n not in parts.late]
    module = extract(joint.graph, parts.primals, [*parts.results, *saved], "Forward", draws)
    module.meta["mutated"] = tuple(
        (given, joint.outputs + position)
        for position, given in enumerate(joint.mutated)
        if joint.outputs + position not in joint.diff_outputs
    )
    return give_own_memory(module, joint.outputs, joint.outputs + len(joint.mutated))


def _backward(joint: Joint, parts: _Parts, saved: Sequence[fx.Node]) -> fx.GraphModule:
    return extract(joint.graph, [*saved, *parts.tangents], parts.gradients, "Backward")


def _link(forward: fx.GraphModule, backward: fx.GraphModule, count: int) -> None:
    """Name on the node of each saved value the backward nodes that read it."""
    result = next(iter(reversed(forward.graph.nodes)))
    makers = result.args[0][len(result.args[0]) - count :]
    for maker, reader in zip(makers, backward.graph.nodes):
        maker.meta["readers"] = frozenset(handle("backward", u.name) for u in reader.users)


def _reason(node: fx.Node, recompute: bool) -> str:
    if is_size(node):
        return "a size"
    if node.op == "placeholder":
        is_parameter = node.meta.get("is_parameter")
        if node.meta.get("is_mutated"):
            return "a copy of an input that is overwritten"
        return "a parameter, it lives anyway" if is_parameter else "an input, kept as it is"
    if not recompute:
        return "recomputation is off"
    if is_random(node):
        return "random numbers are drawn once"
    if not can_recompute(node):
        return f"{node.target} is not computed twice"
    return "costs less than what it would be computed from"


def _record(
    context: Context, remade: Remade, saved: Sequence[Saved], forward: fx.GraphModule,
    backward: fx.GraphModule,
) -> None:  # fmt: skip
    for record in saved:
        about = [handle("joint", record.node)]
        context.recorder.decide("save", about, "saved", record.reason, bytes=record.bytes)
    lines = {node.name: line for node, line in remade.lines.items()}
    made = {n.name: n for n in forward.graph.nodes if n.op == "call_function"}
    for node in backward.graph.nodes:
        if node.name in made and node.op == "call_function":
            node.meta["recomputed"] = True
            is_tensor = isinstance(node.meta.get("val"), torch.Tensor)
            context.recorder.decide(
                "recompute", [handle("joint", node.name)], "recomputed",
                _why_made_again(node, lines),
                bytes=bytes_of(made[node.name]) if is_tensor else 0,
            )  # fmt: skip


def _why_made_again(node: fx.Node, lines: dict[str, str]) -> str:
    if node.name in lines:
        return f"the checkpoint at {lines[node.name]} asks for it"
    return f"{node.target} costs less than to save its result"
