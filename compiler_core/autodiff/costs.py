"""What it costs to save a value, and which values may be computed again instead.

In: a node of the joint graph. Out: bytes, a price, a yes or no. The idea: the price of saving is
memory traffic. A value that is in memory anyway (an input, an output, what a library call reads or
writes) costs one later read; one that fusion would have kept in registers costs a write as well.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Container

import torch
from torch import fx

from compiler_core.autodiff.mincut import UNLIMITED
from compiler_core.autodiff.sizes import hint_of
from compiler_core.autodiff.vocabulary import is_fraction, is_pointwise, is_random, is_size, is_view

__all__ = ["bytes_of", "can_recompute", "price"]

_aten = torch.ops.aten

# Torch tags reductions from 2.12 on; before, they count as library calls.
_REDUCTION = getattr(torch.Tag, "reduction", None)

# Cheap, though their schema does not call them pointwise: creation, data movement, one read each.
_CHEAP = {
    _aten.full.default, _aten.full_like.default, _aten.zeros.default, _aten.zeros_like.default,
    _aten.ones.default, _aten.ones_like.default, _aten.new_zeros.default, _aten.new_ones.default,
    _aten.new_full.default, _aten.arange.default, _aten.arange.start, _aten.arange.start_step,
    _aten.scalar_tensor.default, _aten.empty.memory_format, _aten.clone.default,
    _aten._to_copy.default, _aten.cat.default, _aten.constant_pad_nd.default,
    _aten.select_scatter.default, _aten.slice_scatter.default,
}  # fmt: skip


def can_recompute(node: fx.Node) -> bool:
    """Whether the backward pass may compute the value again: pointwise, a view, cheap, a size.

    Never what draws random numbers: it would draw others.
    """
    return not is_random(node) and (
        node.target is operator.getitem
        or node.target in _CHEAP
        or is_pointwise(node)
        or is_view(node)
        or is_size(node)
    )


def bytes_of(node: fx.Node) -> int | None:
    """Bytes of memory that saving the node's value holds; None if symbolic, 0 for a number."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return 0
    count = value.untyped_storage().nbytes() if node.op == "placeholder" else _dense_bytes(value)
    return int(count) if isinstance(count, int) else None


def price(node: fx.Node, outputs: frozenset[fx.Node], remade: Container[fx.Node] = ()) -> int:
    """What saving the node costs, in bytes of traffic; UNLIMITED if it cannot be saved, or is `remade`.

    A view is not saved but what it is a view of, nor a fraction of sizes but the sizes. An input that is overwritten is saved as a copy. A
    parameter lives anyway. A value that only the backward pass uses is computed there if that costs no more.
    """
    if node.op == "placeholder":
        return _price_of_input(node)
    if is_fraction(node):
        return UNLIMITED
    if is_size(node):
        return 1
    if not isinstance(node.meta.get("val"), torch.Tensor) or is_view(node) or node in remade:
        return UNLIMITED
    traffic = _traffic(node) * (1 if _is_in_memory(node, outputs) else 2)
    return 1 + traffic + (1 if node.meta.get("phase") == "backward" else 0)


def _price_of_input(node: fx.Node) -> int:
    if node.meta.get("is_mutated"):
        return 2 + 2 * _traffic(node)
    return 1 if node.meta.get("is_parameter") or is_size(node) else 1 + _traffic(node)


def _is_in_memory(node: fx.Node, outputs: frozenset[fx.Node]) -> bool:
    return node in outputs or not can_recompute(node) or any(map(_is_library, node.users))


def _is_library(node: fx.Node) -> bool:
    """A call that reads its operands from memory: everything that no kernel of ours fuses."""
    tags = getattr(node.target, "tags", ())
    return node.op == "call_function" and not can_recompute(node) and _REDUCTION not in tags


def _dense_bytes(value: torch.Tensor) -> int | torch.SymInt:
    return value.numel() * value.element_size()


def _traffic(node: fx.Node) -> int:
    """Bytes with symbolic sizes replaced by the sizes they had when the frame was compiled."""
    value = node.meta["val"]
    return int(value.element_size() * math.prod(map(hint_of, value.shape)))
