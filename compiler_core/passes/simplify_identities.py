"""Replace operators by their operand where that changes no bit.

Requires: a functional graph with fake tensors in `meta["val"]`. Establishes: no x * 1, x / 1, x - 0,
x ** 1, integer x + 0, -(-x), copy into the same type and layout, or round trip through a wider type.
Keeps: NaN, -0.0 (so a float x + 0 stays: -0.0 + 0 is 0.0), and copies that the caller gets.

>>> import torch
>>> from torch.fx.experimental.proxy_tensor import make_fx
>>> from compiler_core.options import Context, Options
>>> from compiler_core.recording import Recorder
>>> before = make_fx(lambda x: (x * 1).clone() + 0, tracing_mode="fake")(torch.ones(2))
>>> [node.name for node in before.graph.nodes]
['x_1', 'mul', 'clone', 'add', 'output']
>>> after = simplify_identities(before, Context(Options(), Recorder()))
>>> [node.name for node in after.graph.nodes]
['x_1', 'add', 'output']
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from compiler_core.options import Context
from compiler_core.passes.rewriting import Rewriter, escapes, same_layout

__all__ = ["RULES", "simplify_identities"]

aten = torch.ops.aten

# which types hold every value of a type
_WIDER: dict[torch.dtype, tuple[torch.dtype, ...]] = {
    torch.bfloat16: (torch.float32, torch.float64),
    torch.float16: (torch.float32, torch.float64),
    torch.float32: (torch.float64,),
    torch.uint8: (torch.int16, torch.int32, torch.int64),
    torch.int8: (torch.int16, torch.int32, torch.int64),
    torch.int16: (torch.int32, torch.int64),
    torch.int32: (torch.int64,),
}


def simplify_identities(graph: fx.GraphModule, context: Context) -> fx.GraphModule:
    """The graph without operators that return an operand as it is."""
    rewriter = Rewriter(graph, context, "simplify_identities")
    escaping = escapes(graph)
    for node in graph.graph.nodes:
        same = None if node in escaping else _identical(node)
        if same is None:
            rewriter.keep(node)
        else:
            between = [x for x in node.all_input_nodes if x is not same]
            rewriter.stand_in(
                node, rewriter.copies[same], f"{node.target} changes nothing", between
            )
    return rewriter.build()


def _identical(node: fx.Node) -> fx.Node | None:
    """The node whose value and layout a node repeats."""
    rule = RULES.get(node.target)
    same = rule(node) if rule else None
    if same is None or not same_layout(same.meta.get("val"), node.meta.get("val")):
        return None
    return same


def _operand(node: fx.Node) -> fx.Node | None:
    first = node.args[0]
    return first if isinstance(first, fx.Node) else None


def _is_number(value: Any, number: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == number


def _times_one(node: fx.Node) -> fx.Node | None:
    return _operand(node) if _is_number(node.args[1], 1) else None


def _divided_by_one(node: fx.Node) -> fx.Node | None:
    plain = node.kwargs.get("rounding_mode") is None
    return _operand(node) if plain and _is_number(node.args[1], 1) else None


def _plus_zero(node: fx.Node) -> fx.Node | None:
    if not _is_number(node.args[1], 0) or node.kwargs.get("alpha", 1) != 1:
        return None
    exact = _is_integral(node) or _is_negative_zero(node.args[1])
    return _operand(node) if exact else None


def _minus_zero(node: fx.Node) -> fx.Node | None:
    if not _is_number(node.args[1], 0) or node.kwargs.get("alpha", 1) != 1:
        return None
    exact = _is_integral(node) or not _is_negative_zero(node.args[1])
    return _operand(node) if exact else None


def _is_integral(node: fx.Node) -> bool:
    fake = node.meta["val"]
    return not fake.dtype.is_floating_point and not fake.dtype.is_complex


def _is_negative_zero(number: Any) -> bool:
    return isinstance(number, float) and math.copysign(1, number) < 0


def _twice(node: fx.Node) -> fx.Node | None:
    inner = _operand(node)
    return _operand(inner) if inner is not None and inner.target is node.target else None


def _copied(node: fx.Node) -> fx.Node | None:
    return _operand(node)


def _cast(node: fx.Node) -> fx.Node | None:
    """A cast to the same type, or back from a wider one."""
    inner = _operand(node)
    if inner is None or inner.target is not aten._to_copy.default:
        return inner
    source = _operand(inner)
    if source is None or source.meta["val"].dtype not in _WIDER:
        return inner
    wider = inner.meta["val"].dtype in _WIDER[source.meta["val"].dtype]
    is_back = source.meta["val"].dtype == node.meta["val"].dtype
    return source if wider and is_back else inner


RULES: dict[Any, Callable[[fx.Node], fx.Node | None]] = {
    aten.mul.Tensor: _times_one,
    aten.mul.Scalar: _times_one,
    aten.div.Tensor: _divided_by_one,
    aten.div.Scalar: _divided_by_one,
    aten.pow.Tensor_Scalar: _times_one,
    aten.add.Tensor: _plus_zero,
    aten.add.Scalar: _plus_zero,
    aten.sub.Tensor: _minus_zero,
    aten.sub.Scalar: _minus_zero,
    aten.neg.default: _twice,
    aten.clone.default: _copied,
    aten._to_copy.default: _cast,
}
