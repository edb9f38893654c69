"""Results that would share memory at run time, though in eager they do not, are copied.

In: a forward graph. Out: the same graph, with clones before its output where they are needed.

A functional graph writes a copy as the value itself (`y.copy_(x)`, or `x.clone()` once a pass has seen
that nobody writes to it). At run time a value is memory, and each of these must have its own: an
output beside an input or another result; a new value of an input that is computed from one that is
overwritten too; a saved input that is overwritten after it was saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from compiler_core.autodiff.vocabulary import is_view

__all__ = ["give_own_memory"]


def give_own_memory(module: fx.GraphModule, outputs: int, results: int) -> fx.GraphModule:
    """Insert the clones. Of the graph's results, the first `outputs` are outputs, those before
    `results` new values of inputs, the rest saved values. Changes `module`, which nobody else has yet.
    """
    result = next(iter(reversed(module.graph.nodes)))
    values = list(result.args[0])
    copies = _positions(values, outputs, results)
    for position in copies:
        with module.graph.inserting_before(result):
            copy = module.graph.call_function(torch.ops.aten.clone.default, (values[position],))
        copy.meta = {k: v for k, v in values[position].meta.items() if k != "is_mutated"}
        values[position] = copy
    if copies:
        result.args = (tuple(values),)
        module.recompile()
    return module


def _positions(values: list[Any], outputs: int, results: int) -> list[int]:
    """Which results to copy. New values claim their memory first: they may be written in place."""
    copies: list[int] = []
    taken: set[fx.Node] = set()
    for position in (*range(outputs, results), *range(outputs)):
        if not _is_tensor(values[position]):
            continue
        memory = _memory(values[position])
        is_output = position < outputs
        is_input = memory.op == "placeholder" and (is_output or memory.meta.get("is_mutated"))
        if is_input or memory in taken:
            copies.append(position)
        taken.add(memory)
    overwritten = [
        position
        for position, value in enumerate(values)
        if position >= results and value.meta.get("is_mutated")
    ]
    return copies + overwritten


def _is_tensor(node: Any) -> bool:
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def _memory(node: fx.Node) -> fx.Node:
    """The node whose memory a view reads; the node itself if it is no view."""
    while node.op == "call_function" and is_view(node):
        node = node.all_input_nodes[0]
    return node
