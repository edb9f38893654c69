"""What kind of operator a node calls, read from torch's own schemas and tags.

In: an FX node. Out: yes or no. Nothing here is a list of names that could grow stale, except where
a schema says less than the truth.
"""

from __future__ import annotations

import operator

import torch
from torch import fx

from compiler_core.randomness import draws_numbers

__all__ = ["is_fraction", "is_pointwise", "is_random", "is_size", "is_view"]

_aten = torch.ops.aten
# Shares memory, though its schema does not say so.
_UNDECLARED_VIEWS = {_aten._unsafe_view.default, _aten._reshape_alias.default}


def is_view(node: fx.Node) -> bool:
    """Whether the result is (a list of) views of the first operand."""
    if node.target is operator.getitem:
        source = node.args[0]
        return isinstance(source, fx.Node) and is_view(source)
    if node.target in _UNDECLARED_VIEWS:
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    returns = node.target._schema.returns
    return bool(returns) and all(r.alias_info is not None for r in returns)


def is_pointwise(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and (
        torch.Tag.pointwise in node.target.tags
    )


def is_size(node: fx.Node) -> bool:
    """Whether the node computes a symbolic size (or another number), not a tensor."""
    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int)


def is_fraction(node: fx.Node) -> bool:
    """A number that is no integer, made from sizes: written out where it is used, never handed over."""
    return isinstance(node.meta.get("val"), torch.SymFloat | torch.SymBool)


def is_random(node: fx.Node) -> bool:
    """Draws random numbers."""
    return node.op == "call_function" and draws_numbers(node.target, node.args, node.kwargs)
