"""Control flow as operators of a library of our own: `cutaway::cond` and `cutaway::while_loop`.

In: graphs of torch calls, kept here under names made from their text. Out: operators that every
stage treats as it treats a library's. A graph is an argument by its name, and everything that it
reads is an operand, so tracers, partitioner and generated text need to know nothing of branches.

What the operators promise: only the chosen branch runs; results are memory of their own, as torch's
`cond` wants it; a gradient is that of the chosen branch, which is run again for it. The operands
that the branch does not read have the gradient zero, as torch's have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

__all__ = ["COND", "WHILE_LOOP", "graph_named", "keep_graph"]

_GRAPHS: dict[str, fx.GraphModule] = {}

_LIBRARY: Any = torch.library.Library("cutaway", "FRAGMENT")  # type: ignore[no-untyped-call]
_LIBRARY.define(
    "cond(Tensor predicate, str true_graph, str false_graph, Tensor[] operands, SymInt[] sizes) -> Tensor[]"
)
_LIBRARY.define(
    "cond_backward(Tensor predicate, str true_graph, str false_graph, Tensor[] operands, SymInt[] sizes, "
    "Tensor[] tangents, int[] wanted) -> Tensor[]"
)
_LIBRARY.define(
    "while_loop(str cond_graph, str body_graph, Tensor[] carried, Tensor[] operands, SymInt[] sizes) -> Tensor[]"
)
COND: Any = torch.ops.cutaway.cond.default
_COND_BACKWARD: Any = torch.ops.cutaway.cond_backward.default
WHILE_LOOP: Any = torch.ops.cutaway.while_loop.default


def keep_graph(kind: str, graph: fx.GraphModule) -> str:
    """The name under which a graph of torch calls is kept: the same for the same text.

    kind: `true_graph`, `false_graph`, `cond_graph` or `body_graph`. The graph holds no tensors; its
    placeholders are operands and then sizes, its output is a tuple of tensors.
    """
    code = graph.graph.python_code("self")
    names = sorted((name, _full_name(value)) for name, value in code.globals.items())
    digest = hashlib.sha256(f"{code.src}{names}".encode()).hexdigest()[:12]
    _GRAPHS.setdefault(f"{kind}_{digest}", graph)
    return f"{kind}_{digest}"


def graph_named(name: str) -> fx.GraphModule | None:
    """The graph of a name; None for any other text."""
    return _GRAPHS.get(name)


def _full_name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or str(value)
    return f"{getattr(value, '__module__', '')}.{name}"


# ---------------------------------------------------------------------------------- forward


def _run(name: str, operands: Sequence[Any], sizes: Sequence[Any]) -> list[torch.Tensor]:
    """What a graph computes, each result in memory of its own."""
    return _apart(list(_GRAPHS[name](*operands, *sizes)), operands)


def _apart(tensors: list[torch.Tensor], others: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors, those copied whose memory is another's: an operator's results alias nothing."""
    taken = {_memory(other) for other in others}
    for position, tensor in enumerate(tensors):
        if _memory(tensor) in taken:
            tensors[position] = tensor.clone()
        taken.add(_memory(tensors[position]))
    return tensors


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _cond(predicate: Any, true: str, false: str, operands: Any, sizes: Any) -> list[torch.Tensor]:
    return _run(true if predicate.item() else false, operands, sizes)


def _fake_cond(predicate: Any, true: str, false: str, operands: Any, sizes: Any) -> list[Any]:
    """Both branches have the same results: the capture saw to it."""
    return _run(true, operands, sizes)


def _while_loop(
    condition: str, body: str, carried: Any, operands: Any, sizes: Any
) -> list[torch.Tensor]:
    values = [value.clone() for value in carried]
    while _GRAPHS[condition](*values, *operands, *sizes)[0].item():
        values = _run(body, [*values, *operands], sizes)
    return values


def _fake_while_loop(condition: str, body: str, carried: Any, *_: Any) -> list[Any]:
    return [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype, device=v.device) for v in carried]  # fmt: skip


# ---------------------------------------------------------------------------------- backward


class _Cond(torch.autograd.Function):
    """The gradient of `cond`: once more an operator, or Python where it is differentiated again."""

    @staticmethod
    def forward(ctx: Any, predicate: Any, true: str, false: str, sizes: Any, *operands: Any) -> Any:
        ctx.graphs, ctx.sizes = (true, false), sizes
        ctx.save_for_backward(predicate, *operands)
        with torch._C._AutoDispatchBelowAutograd():
            return tuple(COND(predicate, true, false, list(operands), sizes))

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        predicate, *operands = ctx.saved_tensors
        wanted = [i for i in range(len(operands)) if ctx.needs_input_grad[4 + i]]
        given = [t for t in tangents if t is not None and _is_continuous(t)]
        if torch.is_grad_enabled():
            name = ctx.graphs[0] if predicate.item() else ctx.graphs[1]
            made = _gradients(name, operands, ctx.sizes, given, wanted, create_graph=True)
        else:
            made = _COND_BACKWARD(predicate, *ctx.graphs, operands, ctx.sizes, given, wanted)
        found = dict(zip(wanted, made, strict=True))
        return None, None, None, None, *(found.get(i) for i in range(len(operands)))


def _differentiable_cond(
    predicate: Any, true: str, false: str, operands: Any, sizes: Any
) -> list[torch.Tensor]:
    if torch.is_grad_enabled() and any(operand.requires_grad for operand in operands):
        return list(_Cond.apply(predicate, true, false, sizes, *operands))  # type: ignore[no-untyped-call]
    with torch._C._AutoDispatchBelowAutograd():
        made: list[torch.Tensor] = COND(predicate, true, false, operands, sizes)
        return made


def _cond_backward(
    predicate: Any, true: str, false: str, operands: Any, sizes: Any, tangents: Any, wanted: Any
) -> list[torch.Tensor]:
    leaves = [o.detach().requires_grad_(i in wanted) for i, o in enumerate(operands)]
    name = true if predicate.item() else false
    with torch.enable_grad():
        return _gradients(name, leaves, sizes, tangents, wanted, create_graph=False)


def _gradients(
    name: str, operands: Any, sizes: Any, tangents: Any, wanted: Any, create_graph: bool
) -> list[torch.Tensor]:
    """Gradients of the operands `wanted`, through one run of a graph; zeros where there is no way."""
    results = [r for r in _GRAPHS[name](*operands, *sizes) if _is_continuous(r)]
    pairs = [(r, t) for r, t in zip(results, tangents, strict=True) if r.requires_grad]
    leaves = [operands[i] for i in wanted]
    made: Sequence[Any] = [None] * len(leaves)
    if pairs:
        roots, given = zip(*pairs, strict=True)
        made = torch.autograd.grad(roots, leaves, given, create_graph=create_graph, allow_unused=True)  # fmt: skip
    found = [torch.zeros_like(o) if g is None else g for o, g in zip(leaves, made, strict=True)]
    return found if create_graph else _apart(found, tangents)


def _is_continuous(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _fake_cond_backward(
    predicate: Any, true: str, false: str, operands: Any, sizes: Any, tangents: Any, wanted: Any
) -> list[torch.Tensor]:
    return [torch.empty_like(operands[i]) for i in wanted]


for _name, _real, _fake in (
    ("cond", _cond, _fake_cond),
    ("cond_backward", _cond_backward, _fake_cond_backward),
    ("while_loop", _while_loop, _fake_while_loop),
):
    _LIBRARY.impl(_name, _real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"cutaway::{_name}", _fake, lib=_LIBRARY)
_LIBRARY.impl("cond", _differentiable_cond, "Autograd")
