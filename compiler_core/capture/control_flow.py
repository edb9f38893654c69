"""`torch.cond` and `torch.while_loop`: their functions are followed, each into a graph of its own.

In: a predicate, functions and operands. Out: the results of one node, an operator that holds the graphs
(`compiler_core/control_flow.py`). A predicate that Python knows chooses now, with its guard. What
torch refuses, and what these operators do not hold, breaks the graph: natively it is torch's affair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._higher_order_ops import while_loop

from compiler_core.capture.break_kinds.calls import CONTROL_FLOW
from compiler_core.capture.breaks import Break
from compiler_core.capture.comparisons import truth
from compiler_core.capture.iteration import items_of
from compiler_core.capture.rules import rule
from compiler_core.capture.subgraphs import Subgraph, assemble, follow
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import ListValue, TupleValue
from compiler_core.capture.values.tensor import TensorValue
from compiler_core.control_flow import COND, WHILE_LOOP, keep_graph
from compiler_core.provenance import union

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__: list[str] = []


@rule(torch.cond)
def _cond(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.calls import call

    names = ("pred", "true_fn", "false_fn", "operands")
    predicate, true, false, given = _bound(args, kwargs, names, TupleValue(()))
    predicate = trace.look(predicate)
    if not isinstance(predicate, TensorValue):
        chosen = true if truth(trace, predicate) else false
        return call(trace, chosen, items_of(trace, given), {})
    _refuse_state("cond")
    _refuse_predicate(predicate)
    operands = _tensors(trace, given)
    branches = [follow(trace, Subgraph(), function, operands) for function in (true, false)]
    _refuse_difference(branches[0], branches[1].results)
    if branches[0].is_tuple != branches[1].is_tuple:
        raise Break(CONTROL_FLOW, "cond: one branch returns a tuple, the other does not")
    return _operator(trace, COND, ("true_graph", "false_graph"), branches, [predicate])


@rule(while_loop)
def _while_loop(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    condition, body, given = _bound(args, kwargs, ("cond_fn", "body_fn", "carried_inputs"))
    _refuse_state("while_loop")
    carried = _tensors(trace, given)
    graphs = []
    for function in (condition, body):
        values, sub = _carried(trace, carried)
        graphs.append(follow(trace, sub, function, values))
    _refuse_predicate(graphs[0].results[0])
    _refuse_difference(graphs[1], carried)
    if graphs[0].is_tuple or not graphs[1].is_tuple:
        raise Break(CONTROL_FLOW, "while_loop: a condition is a tensor, a body's result a tuple")
    read = [v for v, _ in (p for g in graphs for p in g.operands.values())]
    if torch.is_grad_enabled() and any(_requires_grad(v) for v in (*carried, *read)):
        raise Break(CONTROL_FLOW, "while_loop of tensors that require grad")
    return _operator(
        trace, WHILE_LOOP, ("cond_graph", "body_graph"), graphs, [], [ListValue(list(carried))]
    )


def _bound(
    args: list[Value], kwargs: dict[str, Value], names: Sequence[str], *otherwise: Value
) -> list[Value]:
    """The arguments by position. Raises Break where the call itself would raise."""
    given = dict(zip(names, args)) | kwargs
    given |= {n: v for n, v in zip(names[-len(otherwise) :], otherwise) if n not in given}
    if len(args) > len(names) or set(given) != set(names):
        raise Break(CONTROL_FLOW, "arguments of another form")
    return [given[name] for name in names]


# ---------------------------------------------------------------------------------- what is refused


def _refuse_state(name: str) -> None:
    if torch._C._is_any_autocast_enabled():
        raise Break(CONTROL_FLOW, f"{name} under autocast")


def _refuse_predicate(value: TensorValue) -> None:
    if value.fake.dtype is not torch.bool or value.fake.numel() != 1:
        raise Break(CONTROL_FLOW, "a predicate that is not one truth value")


def _refuse_difference(graph: Subgraph, others: Sequence[TensorValue]) -> None:
    """Raises Break where results differ in number, type, shape, strides or place."""
    ours, theirs = ([_layout(v.fake) for v in values] for values in (graph.results, others))
    if ours != theirs:
        raise Break(CONTROL_FLOW, "results that differ in number, shape, strides, type or device")


def _layout(fake: torch.Tensor) -> tuple[Any, ...]:
    return tuple(fake.shape), tuple(fake.stride()), fake.dtype, fake.device


def _requires_grad(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.fake.requires_grad


def _tensors(trace: Trace, given: Value) -> list[TensorValue]:
    """The operands. Raises Break for those that are no tensors, or containers of them."""
    items = [trace.look(item) for item in items_of(trace, given)]
    tensors = [item for item in items if isinstance(item, TensorValue)]
    if len(tensors) != len(items):
        raise Break(CONTROL_FLOW, "operands that are not all tensors")
    return tensors


# ---------------------------------------------------------------------------------- the operator


def _carried(trace: Trace, tensors: list[TensorValue]) -> tuple[list[TensorValue], Subgraph]:
    """New tensors like these, as placeholders of a new graph."""
    sub = Subgraph()
    with trace.builder.fake_mode:
        fakes = [_like(value.fake) for value in tensors]
    nodes = [sub.graph.placeholder(f"carried_{i}") for i in range(len(fakes))]
    for node, fake in zip(nodes, fakes):
        node.meta["val"] = fake
    sub.carried = tuple(nodes)
    return [TensorValue(node, fake) for node, fake in zip(nodes, fakes)], sub


def _like(fake: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)


def _operator(
    trace: Trace, target: Any, kinds: Sequence[str], graphs: Sequence[Subgraph],
    first: list[Value], last: Sequence[Value] = (),
) -> Value:  # fmt: skip
    """The node with its graphs, operands and sizes; it comes from their lines too."""
    values = {outer: value for g in graphs for outer, (value, _) in g.operands.items()}
    tensors = {n: v for n, v in values.items() if isinstance(v, TensorValue)}
    sizes = {n: v for n, v in values.items() if n not in tensors}
    modules = [assemble(graph, [*tensors, *sizes]) for graph in graphs]
    names: list[Value] = [Constant(keep_graph(k, m)) for k, m in zip(kinds, modules)]
    operands: list[Value] = [ListValue(list(tensors.values())), ListValue(list(sizes.values()))]
    made = trace.builder.call("call_function", target, [*first, *names, *last, *operands], {})
    assert isinstance(made, ListValue)
    results = [item for item in made.items if isinstance(item, TensorValue)]
    node: Any = results[0].node.args[0]
    node.meta["origins"] = union(node.meta["origins"], *(graph.origins for graph in graphs))
    return TupleValue(tuple(results)) if graphs[-1].is_tuple else results[0]
