"""Results without elements: nothing to compute, whatever the operator.

In: a node all of whose results have a dimension of size 0. Out: a nest over that empty space per
result, so that every buffer has a maker and every node a statement.
"""

from __future__ import annotations

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, stored_as
from compiler_core.lower.environment import Environment
from compiler_core.lower.operands import LoweredValue, Operand, indices_of

__all__ = ["is_empty", "lower_empty"]


def is_empty(node: fx.Node) -> bool:
    """Whether a node has results, all without elements, of types that a nest can store."""
    fakes = node.meta["val"]
    results = (fakes,) if isinstance(fakes, torch.Tensor) else fakes
    return all(
        isinstance(fake, torch.Tensor)
        and any(isinstance(size, int) and size == 0 for size in fake.shape)
        and stored_as(fake.dtype).name in DTYPES
        for fake in results
    )


def lower_empty(env: Environment, node: fx.Node) -> LoweredValue:
    """A nest over no positions for each result."""
    fakes = node.meta["val"]
    if isinstance(fakes, torch.Tensor):
        return _nothing(env, node, fakes, None)
    return tuple(_nothing(env, node, fake, k) for k, fake in enumerate(fakes))


def _nothing(env: Environment, node: fx.Node, fake: torch.Tensor, element: int | None) -> Operand:
    suffix = f"{element}" if element else ""
    with env.nest(node, indices_of(fake.shape), suffix) as nest:
        return env.store(nest, node, nest.constant(0, stored_as(fake.dtype)), element)
