"""View operators: another way to index the same buffer. No statement, no data movement.

In: a node whose fake tensor shares its operand's storage. Out: an `Operand` on the operand's
buffer. The fake tensor already knows sizes and strides; the offset moves by as much as its storage
offset did. Every reader of the view carries the view's handle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import fx

from compiler_core.ir.index import index
from compiler_core.ir.loop import View
from compiler_core.lower.environment import Environment
from compiler_core.lower.operands import (
    LoweredValue,
    Operand,
    Refusal,
    contiguous,
    index_of,
    indices_of,
    place_of,
)  # fmt: skip

__all__ = ["TABLE", "VIEWS", "lower_reshape", "lower_view"]

aten = torch.ops.aten

VIEWS = (
    aten.view.default,
    aten._unsafe_view.default,
    aten._reshape_alias.default,
    aten.permute.default,
    aten.transpose.int,
    aten.t.default,
    aten.numpy_T.default,
    aten.expand.default,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.slice.Tensor,
    aten.select.int,
    aten.narrow.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
    aten.alias.default,
    aten.detach.default,
    aten.as_strided.default,
    aten.diagonal.default,
    aten.unfold.default,
)


def lower_view(env: Environment, node: fx.Node) -> LoweredValue:
    """The operand's buffer, laid out as the node's fake tensor (or each of them)."""
    base = node.args[0]
    assert isinstance(base, fx.Node)
    source: Operand = env.values[base]
    before = env.fake(base)
    through = env.absorb(node)

    def seen_as(fake: torch.Tensor) -> Operand:
        moved = index_of(fake.storage_offset()) - index_of(before.storage_offset())
        view = place_of(fake, source.view.buffer, source.view.offset + moved)
        return replace(source, view=view, through=source.through | through)

    fakes = node.meta["val"]
    return (
        seen_as(fakes)
        if isinstance(fakes, torch.Tensor)
        else tuple(seen_as(fake) for fake in fakes)
    )


def lower_reshape(env: Environment, node: fx.Node) -> LoweredValue:
    """A view where the operand's layout allows it, else a row-major copy seen in the new shape."""
    base = node.args[0]
    assert isinstance(base, fx.Node)
    source: Operand = env.values[base]
    before, after = env.fake(base), node.meta["val"]
    try:
        before.view(after.shape)
    except RuntimeError:
        return _copied(env, node, source)
    through = source.through | env.absorb(node)
    return replace(
        source, view=place_of(after, source.view.buffer, source.view.offset), through=through
    )


def _copied(env: Environment, node: fx.Node, source: Operand) -> Operand:
    if source.dtype.kind == "opaque":
        raise Refusal(f"no kernel copies {source.dtype}")
    target = env.temporary(node, "rows", source.shape, source.dtype, source)
    with env.nest(node, source.shape) as nest:
        nest.store(target, nest.load(source, nest.positions), readers=env.readers(node))
    shape = indices_of(node.meta["val"].shape)
    view = View(target.view.buffer, shape, contiguous(shape), index(0))
    return replace(target, view=view)


TABLE: dict[Any, Any] = {
    **dict.fromkeys(VIEWS, lower_view),
    aten.reshape.default: lower_reshape,
}
