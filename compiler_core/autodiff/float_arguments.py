"""Operations that are given a float argument of the graph where torch's own interface takes a plain one.

In: a captured node, one of whose arguments is a symbolic float. Out: a formula of operators that keep
the symbol (`FORMULAS`), or the call on the float as it is now, whose nodes then take the symbol instead
(`PATCHED`). Whatever has no row reads the float as a number, which torch records as a guard.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional
from torch.utils import _pytree as pytree

from compiler_core.autodiff.borrowed import tracer_graph

__all__ = ["FORMULAS", "PATCHED", "formula_for", "patched_call"]


def _power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` with the float as a tensor: its derivative asks for no number."""
    kind = torch.result_type(_plain(base), _plain(exponent))
    pair = (torch.full((), x, dtype=kind) if _is_float(x) else x for x in (base, exponent))
    return torch.pow(*pair)


def _rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """Root mean square norm; half types are widened and rounded once, as in eager."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    dims = list(range(-len(normalized_shape), 0))
    y = wide * torch.rsqrt(wide.pow(2).mean(dims, keepdim=True) + eps)
    return (y if weight is None else y * weight).to(x.dtype)


def _tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return torch.full((), data, dtype=dtype or torch.get_default_dtype(), device=device)


FORMULAS: dict[Any, Callable[..., Any]] = {
    operator.pow: _power,
    torch.pow: _power,
    "pow": _power,
    functional.rms_norm: _rms_norm,
    torch.tensor: _tensor,
}

# function → the operator that it becomes, whose floats are the function's own
PATCHED: dict[Any, Any] = {
    functional.layer_norm: torch.ops.aten.native_layer_norm.default,
}


def formula_for(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The formula of a call on a symbolic float, None where there is none."""
    given = [*args, *kwargs.values()]
    if target not in FORMULAS or not any(map(_is_float, given)):
        return None
    is_half = any(isinstance(x, torch.Tensor) and x.dtype.itemsize < 4 for x in given)
    return None if FORMULAS[target] is _power and is_half else FORMULAS[target]


def patched_call(
    call: Callable[..., Any], target: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """`call(*args)` on the floats as they are now; the operator's nodes take the symbols."""
    floats = {x.node.hint: x for x in pytree.tree_leaves((args, kwargs)) if _is_float(x)}
    known = set(tracer_graph().nodes)
    result = call(*pytree.tree_map(_plain, tuple(args)), **pytree.tree_map(_plain, kwargs))
    places = {n.meta["val"].node.expr: n for n in known if _is_float(n.meta.get("val"))}
    made = [n for n in tracer_graph().nodes if n not in known and n.target is PATCHED[target]]
    for node in made:
        node.args = tuple(
            places[floats[x].node.expr] if isinstance(x, float) and x in floats else x
            for x in node.args
        )
    if not made:  # taken apart: the floats are what they are now
        list(map(float, floats.values()))
    return result


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.SymFloat)


def _plain(value: Any) -> Any:
    return value.node.hint if _is_float(value) else value
