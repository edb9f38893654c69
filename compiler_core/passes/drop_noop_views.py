"""Leave out views that show what they look at, and shorten chains of views.

Requires: fake tensors in `meta["val"]`. Establishes: no view has the layout of a tensor that it
looks at, directly or through other views (a double transpose, `view` to the same size, `expand` by
nothing), and no `view` looks at a `view` that it could do without. Keeps: views that are returned.

>>> import torch
>>> from torch.fx.experimental.proxy_tensor import make_fx
>>> from compiler_core.options import Context, Options
>>> from compiler_core.recording import Recorder
>>> before = make_fx(lambda x: x.t().t().sin(), tracing_mode="fake")(torch.ones(2, 3))
>>> [node.name for node in before.graph.nodes]
['x_1', 't', 't_1', 'sin', 'output']
>>> after = drop_noop_views(before, Context(Options(), Recorder()))
>>> [(node.name, node.args) for node in after.graph.nodes]
[('x_1', ()), ('t', (x_1,)), ('sin', (x_1,)), ('output', (sin,))]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import fx

from compiler_core.options import Context
from compiler_core.passes.rewriting import Rewriter, same_layout

__all__ = ["drop_noop_views"]

aten = torch.ops.aten

_RESIZING = (aten.view.default, aten._unsafe_view.default)


def drop_noop_views(graph: fx.GraphModule, context: Context) -> fx.GraphModule:
    """The graph in which every view changes something."""
    rewriter = Rewriter(graph, context, "drop_noop_views")
    for node in graph.graph.nodes:
        if not _is_view(node) or any(user.op == "output" for user in node.users):
            rewriter.keep(node)
        elif (same := _shown_already(node)) is not None:
            rewriter.stand_in(node, rewriter.copies[same], "the same layout", _between(node, same))
        elif (base := _skipped(node)) is not None:
            args = (rewriter.copies[base], *node.args[1:])
            rewriter.replace(node, node.target, args, "view of a view", _between(node, base))
        else:
            rewriter.keep(node)
    return rewriter.build()


def _is_view(node: fx.Node) -> bool:
    """Whether a node's one result aliases its first argument."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or len(schema.returns) != 1 or not isinstance(node.args[0], fx.Node):
        return False
    alias = schema.returns[0].alias_info
    return alias is not None and not alias.is_write


def _looked_at(node: fx.Node) -> Iterator[fx.Node]:
    """What a view looks at: its argument, that one's argument, as long as these are views."""
    while _is_view(node):
        base = node.args[0]
        assert isinstance(base, fx.Node)
        yield base
        node = base


def _between(node: fx.Node, base: fx.Node) -> tuple[fx.Node, ...]:
    """The views that a view looks through to see `base`."""
    return tuple(itertools.takewhile(lambda x: x is not base, _looked_at(node)))


def _shown_already(node: fx.Node) -> fx.Node | None:
    """The first tensor of the chain with the view's own layout."""
    shown = node.meta.get("val")
    return next(
        (base for base in _looked_at(node) if same_layout(base.meta.get("val"), shown)), None
    )


def _skipped(node: fx.Node) -> fx.Node | None:
    """For a `view` of a `view` of static size: the inner one's argument, if its layout allows."""
    inner = node.args[0]
    assert isinstance(inner, fx.Node)
    if node.target not in _RESIZING or inner.target not in _RESIZING:
        return None
    base = inner.args[0]
    assert isinstance(base, fx.Node)
    fakes = [x.meta["val"] for x in (base, inner, node)]
    if any(isinstance(n, torch.SymInt) for fake in fakes for n in fake.shape):
        return None
    try:
        direct = fakes[0].view(fakes[2].shape)
    except RuntimeError:
        return None
    return base if same_layout(direct, fakes[2]) else None
