"""Compute now what depends on numbers alone.

Requires: fake tensors in `meta["val"]`. Establishes: no element-wise operator has only uniform
operands (`full`, `zeros`, `ones`, `scalar_tensor`) of static size; it is a `full` of the number
that eager computes. Keeps: symbolic sizes, complex types, results that are not row-major.

>>> import torch
>>> from torch.fx.experimental.proxy_tensor import make_fx
>>> from compiler_core.options import Context, Options
>>> from compiler_core.recording import Recorder
>>> before = make_fx(lambda x: x + (torch.full((2,), 3.0) * 2).exp(), tracing_mode="fake")(torch.ones(2))
>>> [node.name for node in before.graph.nodes]
['x_1', 'full', 'mul', 'exp', 'add', 'output']
>>> after = fold_constants(before, Context(Options(), Recorder()))
>>> next(node for node in after.graph.nodes if node.name == "mul").args
([2], 6.0)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate

from compiler_core.options import Context
from compiler_core.passes.rewriting import Rewriter, is_random

__all__ = ["fold_constants"]

aten = torch.ops.aten

# operator → position of the number that fills its result, or the number itself
_FILLED: dict[Any, int] = {
    aten.full.default: 1,
    aten.full_like.default: 1,
    aten.new_full.default: 2,
    aten.scalar_tensor.default: 0,
}
_FIXED: dict[Any, int] = {
    aten.zeros.default: 0,
    aten.zeros_like.default: 0,
    aten.new_zeros.default: 0,
    aten.ones.default: 1,
    aten.ones_like.default: 1,
    aten.new_ones.default: 1,
}


def fold_constants(graph: fx.GraphModule, context: Context) -> fx.GraphModule:
    """The graph with uniform values computed."""
    rewriter = Rewriter(graph, context, "fold_constants")
    known: dict[fx.Node, torch.Tensor] = {}  # node → its one value, of its rank and type
    for node in graph.graph.nodes:
        value = _filled(node)
        folded = None if value is not None else _computed(node, known)
        if folded is not None:
            fake, value = node.meta["val"], folded
            rewriter.replace(
                node, aten.full.default, (list(fake.shape), folded.item()), "uniform operands",
                node.all_input_nodes,
                dtype=fake.dtype, device=fake.device,
            )  # fmt: skip
        else:
            rewriter.keep(node)
        if value is not None:
            known[node] = value
    return rewriter.build()


def _filled(node: fx.Node) -> torch.Tensor | None:
    """The value of an operator that fills its result with one number."""
    number = node.args[_FILLED[node.target]] if node.target in _FILLED else _FIXED.get(node.target)
    if not isinstance(number, (int, float)) or not _is_plain(node.meta.get("val")):
        return None
    return _single(node, number)


def _single(node: fx.Node, number: float) -> torch.Tensor:
    fake = node.meta["val"]
    return torch.full([1] * fake.dim(), number, dtype=fake.dtype)


def _is_plain(fake: Any) -> bool:
    """Whether `full` would make this layout: static, row-major, a real type."""
    return (
        isinstance(fake, torch.Tensor)
        and all(isinstance(n, int) for n in fake.shape)
        and fake.is_contiguous()
        and not fake.dtype.is_complex
    )


def _computed(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> torch.Tensor | None:
    """The one value of an element-wise operator on uniform operands, in eager."""
    operands = node.all_input_nodes
    is_pointwise = torch.Tag.pointwise in getattr(node.target, "tags", ())
    if is_random(node) or not is_pointwise or not operands or not all(x in known for x in operands):
        return None
    if not _is_plain(node.meta.get("val")):
        return None
    args, kwargs = map_aggregate(
        (node.args, node.kwargs), lambda x: known[x] if isinstance(x, fx.Node) else x
    )
    value: torch.Tensor = node.target(*args, **kwargs)  # type: ignore[operator]
    return value if value.dtype == node.meta["val"].dtype and value.numel() == 1 else None
