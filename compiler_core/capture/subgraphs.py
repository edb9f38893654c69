"""A function followed into a graph of its own, for an operator that takes graphs.

In: a callable and its arguments, at an instruction of the graph being built. Out: a `Subgraph`, whose
operands are all that it reads of the graph around it: arguments, variables of closures, parameters,
sizes. The idea: `GraphBuilder.graph` is the inner graph for a while, and a value of an outer graph
becomes a placeholder of the inner one the first time that it is an argument there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import fx

from compiler_core.capture.break_kinds.calls import CONTROL_FLOW
from compiler_core.capture.breaks import Break, Raised
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.containers import TupleValue
from compiler_core.capture.values.tensor import TensorValue
from compiler_core.capture.watch import storage_of
from compiler_core.provenance import Origins, union

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["Subgraph", "assemble", "follow"]


@dataclass(slots=True, eq=False)
class Subgraph:
    """An inner graph: what it reads of the graph around it, and what it computes."""

    graph: fx.Graph = field(default_factory=fx.Graph)
    carried: tuple[fx.Node, ...] = ()  # placeholders that are not operands
    operands: dict[fx.Node, tuple[Value, fx.Node]] = field(default_factory=dict)  # by outer node
    results: tuple[TensorValue, ...] = ()
    nodes: tuple[fx.Node, ...] = ()
    is_tuple: bool = False

    def take(self, outer: fx.Node, value: Value) -> fx.Node:
        """The placeholder of a value whose node in the graph around this one is `outer`."""
        if outer not in self.operands:
            node = self.graph.placeholder(outer.name)
            node.meta["val"] = outer.meta["val"]
            self.operands[outer] = value, node
        return self.operands[outer][1]

    @property
    def origins(self) -> Origins:
        """The instructions that its nodes come from."""
        return union(*(node.meta.get("origins", ()) for node in self.graph.nodes))


def follow(trace: Trace, sub: Subgraph, function: Value, args: Sequence[Value]) -> Subgraph:
    """Call `function` into `sub`. Raises Break (CC187) for what an operator's graph may not do."""
    from compiler_core.capture.calls import call

    builder, effects = trace.builder, trace.effects
    outer, written = builder.graph, set(builder.written)
    builder.graph = sub.graph
    builder.subgraphs.append(sub)
    try:
        _take_results(trace, sub, trace.look(call(trace, function, list(args), {})))
    except Raised as raised:
        raise Break(CONTROL_FLOW, f"a branch raises {raised}") from None
    finally:
        builder.graph = outer
        builder.subgraphs.pop()
    if trace.effects != effects:
        raise Break(CONTROL_FLOW, "a branch changes an object or a variable")
    _refuse_memory(sub, builder.written - written)
    if any(node.meta.get("draws") for node in sub.graph.nodes):
        raise Break(CONTROL_FLOW, "a branch draws random numbers")
    return sub


def _take_results(trace: Trace, sub: Subgraph, result: Value) -> None:
    sub.is_tuple = isinstance(result, TupleValue) and result.cls is tuple
    items = result.items if isinstance(result, TupleValue) and sub.is_tuple else (result,)
    found = [value for value in map(trace.look, items) if isinstance(value, TensorValue)]
    if not found or len(found) != len(items):
        raise Break(CONTROL_FLOW, "a branch returns other than a tensor or a tuple of tensors")
    sub.results = tuple(found)
    sub.nodes = tuple(trace.builder.lower(value)[0] for value in found)


def _refuse_memory(sub: Subgraph, written: set[int]) -> None:
    """Operators neither write to their operands nor return them: torch refuses both."""
    given = [n.meta["val"] for n in sub.graph.nodes if n.op == "placeholder"]
    memory = {storage_of(fake) for fake in given if isinstance(fake, torch.Tensor)}
    if written & memory:
        raise Break(CONTROL_FLOW, "a branch writes to a tensor from outside")
    for result in sub.results:
        if storage_of(result.fake) in memory:
            raise Break(CONTROL_FLOW, "a branch returns memory of an operand, or a result twice")
        memory.add(storage_of(result.fake))


def assemble(sub: Subgraph, operands: Iterable[fx.Node]) -> fx.GraphModule:
    """The inner graph with these operands, whether it reads them or not, in this order."""
    graph = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    for node in sub.carried:
        new[node] = graph.placeholder(node.name)
    for outer in operands:
        placeholder = graph.placeholder(outer.name)
        if outer in sub.operands:
            new[sub.operands[outer][1]] = placeholder
    for node in sub.graph.nodes:
        if node.op != "placeholder":
            new[node] = graph.node_copy(node, lambda operand: new[operand])
            new[node].meta = {}
    graph.output(tuple(new[node] for node in sub.nodes))
    return fx.GraphModule(torch.nn.Module(), graph)
