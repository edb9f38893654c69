"""An ATen graph in the loop IR: a nest per operator, library calls for the rest.

In: a functional ATen graph (forward or backward) with fake tensors in `meta["val"]`. Out: `Lowered`.
The idea: one walk, one table (`table.py`): each node becomes nests or a call, and a value that says
where its result lies.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from compiler_core.lower.environment import Environment
from compiler_core.lower.interface import Interface
from compiler_core.lower.operands import LoweredValue, Operand, index_of
from compiler_core.lower.sizes import SizeNumber
from compiler_core.lower.table import TABLE, lower_operator
from compiler_core.options import Context, Target
from compiler_core.provenance import at
from compiler_core.stages import Lowered

__all__ = ["TABLE", "lower"]


def lower(graph: fx.GraphModule, part: str, target: Target, context: Context) -> Lowered:
    """The graph in the loop IR, for a target. `part` is "forward" or "backward".

    `graph.meta["mutated"]`, pairs (input, output), names results that overwrite an argument.
    Raises InternalError: CC301 for a size that no argument tells, CC302 for an operator that is not
    functional, CC303 for a large tensor constant, CC304 for an argument of another kind.
    """
    env = Environment(graph, part, target, context)
    interface = Interface(env)
    for node in graph.graph.nodes:
        with at({env.handle(node)}):
            if node.op == "output":
                return Lowered(interface.finish(node), target, part)
            env.values[node] = _value(env, interface, node)
    raise ValueError("the graph has no output node")


def _value(env: Environment, interface: Interface, node: fx.Node) -> LoweredValue:
    if node.op == "placeholder":
        return interface.placeholder(node)
    if node.op == "get_attr":
        return interface.constant(node)
    if isinstance(node.meta.get("val"), (int, torch.SymInt)):
        env.absorb(node)
        return index_of(node.meta["val"])
    if isinstance(node.meta.get("val"), (float, torch.SymFloat)):
        env.absorb(node)
        return _number(env, node.meta["val"])
    if node.target is operator.getitem:
        return _element(env, node)
    return lower_operator(env, node)


def _number(env: Environment, value: float | torch.SymFloat) -> float | SizeNumber:
    if isinstance(value, torch.SymFloat):
        return SizeNumber(value.node.expr, env.floats)
    return value


def _element(env: Environment, node: fx.Node) -> LoweredValue:
    """One of an operator's several results; its readers carry the handle of the `getitem`."""
    source, number = node.args
    value = env.values[source][number]  # type: ignore[index]
    through = env.absorb(node)
    return value.seen_through(through) if isinstance(value, Operand) else value
