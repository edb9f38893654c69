"""Library calls: what becomes of an operator that no nest is generated for.

In: an operator node. Out: a `Call` whose arguments are views, and its reason as a decision of kind
"library". Operators that would return an alias of an argument are replaced by their `_copy` twin, since a call's
outputs are memory of their own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from compiler_core.errors import InternalError, register
from compiler_core.ir.index import Index, index
from compiler_core.ir.loop import Call, View
from compiler_core.lower.environment import Environment, is_view
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import LoweredValue, Operand
from compiler_core.lower.scalars import F64
from compiler_core.lower.sizes import SizeNumber
from compiler_core.provenance import current, union

__all__ = ["NO_CALL", "REASONS", "call_library", "reason_for"]

NO_CALL = register(
    "CC302",
    "an operator cannot be lowered",
    "The loop IR calls functional ATen operators; this one writes into its arguments, takes a "
    "subgraph, or is no ATen operator.",
    "Functionalise the graph before lowering it; or leave the operator outside the compiled region.",
)

_MEET = "where two positions meet, the last one wins"
_RANDOM = "the library keeps eager's random number stream"
_SORT = "sorting is a library algorithm"
_SCAN = "a scan: each element needs the one before it"
_SPECIAL = "the loop IR has no operation for this special function"
_BRANCHES = "the branch that is chosen runs as a graph of torch calls"
_CONVOLUTION = "the library's window kernels are faster than generated loops"

# operator name (without overload) → why it is a library call
REASONS: dict[str, str] = {
    "scatter_reduce": "where positions meet, other folds than sums are the library's",
    "cond": _BRANCHES,
    "cond_backward": f"{_BRANCHES}, differentiated by torch",
    "while_loop": "condition and body run as graphs of torch calls",
    "take": "the library counts positions in the flattened tensor",
    **dict.fromkeys(
        ("scatter", "index_copy", "index_fill", "put", "masked_scatter"),
        _MEET,
    ),
    **dict.fromkeys(
        ("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "bernoulli", "native_dropout",
         "uniform", "normal", "randperm", "multinomial", "exponential", "poisson"),
        _RANDOM,
    ),
    **dict.fromkeys(("sort", "topk", "argsort", "kthvalue", "median", "mode", "unique"), _SORT),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), _SCAN),
    **dict.fromkeys(
        ("erfc", "erfinv", "lgamma", "digamma", "polygamma", "i0", "asinh", "acosh", "atanh", "nextafter",
         "hypot", "igamma", "special_i1", "special_ndtri"),
        _SPECIAL,
    ),
    **dict.fromkeys(
        ("max_pool2d_with_indices", "max_pool2d_with_indices_backward", "_adaptive_avg_pool2d",
         "_adaptive_avg_pool2d_backward", "upsample_nearest2d", "upsample_bilinear2d", "native_batch_norm", "native_group_norm"),
        _CONVOLUTION,
    ),
}  # fmt: skip

# keyword arguments that say nothing at these values
_SILENT = {
    "layout": (None, torch.strided),
    "pin_memory": (None, False),
    "memory_format": (None, torch.preserve_format),
}


def reason_for(target: Any) -> str:
    """Why an operator without a rule is a library call."""
    packet = getattr(target, "overloadpacket", target)
    return REASONS.get(packet.__name__, "no row in the lowering tables")


def call_library(env: Environment, node: fx.Node, reason: str) -> LoweredValue:
    """Append a `Call` of a node's operator and record why.

    Returns an Operand, or a tuple of them (None where an output is unused). Raises InternalError
    (CC302) for an operator that is not functional.
    """
    target = _functional(node)
    outputs = _outputs(env, node)
    call = Call(
        node.name,
        str(target),
        tuple(_argument(env, x) for x in env.evaluate(node.args)),
        tuple(
            (name, _argument(env, value))
            for name, value in env.evaluate(node.kwargs).items()
            if value not in _SILENT.get(name, ())
        ),
        tuple(x.view.buffer if x else None for x in outputs),
        reason,
        union(current(), env.origins(node)),
    )
    env.body.append(call)
    env.context.recorder.decide("library", {env.handle(node)}, str(target), reason)
    is_single = isinstance(node.meta["val"], torch.Tensor)
    return outputs[0] if is_single else outputs


def _functional(node: fx.Node) -> Any:
    """The operator to call: itself, or its `_copy` twin if it returns a view."""
    target: Any = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        raise InternalError(NO_CALL, f"{target} ({node.name})")
    if not is_view(node):
        return target
    twin = getattr(torch.ops.aten, f"{target.overloadpacket.__name__}_copy", None)
    overload = getattr(twin, target._overloadname, None)
    if overload is None:
        raise InternalError(NO_CALL, f"{target} ({node.name}) returns a view")
    return overload


def _outputs(env: Environment, node: fx.Node) -> tuple[Operand | None, ...]:
    fakes = node.meta["val"]
    if isinstance(fakes, torch.Tensor):
        return (env.fresh(node),)
    if not isinstance(fakes, (tuple, list)):
        raise InternalError(NO_CALL, f"{node.target} ({node.name}) returns no tensor")
    return tuple(
        env.fresh(node, k) if isinstance(fake, torch.Tensor) and env.is_used(node, k) else None
        for k, fake in enumerate(fakes)
    )


def _number(env: Environment, value: SizeNumber) -> Operand:
    """Memory that holds the number; the call reads it where its schema asks for a number."""
    if value.argument is not None:
        return value.argument
    name = env.names.fresh("buf_number")
    place = View(name, (), (), index(0))
    target = env.add_buffer(place, F64, env.main_device)
    builder = NestBuilder(env.names, env.names.fresh("number"), ())
    builder.store(target, value.emit(builder, F64), readers=current())
    env.body.append(builder.build(current()))
    return target


def _argument(env: Environment, value: Any) -> Any:
    """A value as `Call` wants it: views, plain integers where constant, devices of the target."""
    match value:
        case Operand():
            return value.view
        case SizeNumber():
            return _number(env, value).view
        case Index():
            return value if value.constant is None else value.constant
        case torch.device():
            return torch.device(env.device_text(value))
        case tuple() | list():
            return tuple(_argument(env, x) for x in value)
    return value
