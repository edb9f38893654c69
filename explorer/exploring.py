"""`explore(fn, *args)`: compile a function afresh, run it once, return what happened as a `Report`.

In: a callable and example arguments. Out: a report with live stage values and the kept inputs.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

import compiler_core as cc
from compiler_core.arguments import check_callable, check_switch
from compiler_core.errors import BAD_VALUE, OptionError, closest
from compiler_core.interception import SESSION, original_of
from compiler_core.recording import Recorder
from explorer.cells import renamed_cells
from explorer.report import Report
from explorer.views.linked import STAGES

__all__ = ["explore"]


def explore(
    fn: Callable[..., Any],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    targets: Sequence[str] = (),
    backend: str | Callable[..., Any] = "cutaway",
    fullgraph: bool = False,
    grad: bool = False,
    options: Mapping[str, Any] | None = None,
    name: str = "",
    show: Sequence[str] = (),
) -> Report:
    """Compile `fn` and call it with `args` and `kwargs`; everything about it is recorded.

    targets: further targets to compile for, such as ("cuda:90",); no GPU is needed.
    backend, fullgraph, options: as in `compiler_core.compile`.
    grad: floating-point arguments get a gradient (on copies), and the backward pass runs too.
    show: stages whose panes are open at first.
    Raises what `fn` raises, and what `compile` raises for bad arguments; OptionError for a stage in
    `show` that there is not.
    """
    check_callable("explore", fn)
    check_switch("grad", grad)
    check_shown(show)
    given = {**(options or {}), "explore": True}
    if targets:
        given["also"] = targets if isinstance(targets, str) else tuple(targets)  # a str is refused
    recorder = Recorder(explore=True, keeps_text=True, keeps_inputs=True)
    with SESSION.recording(recorder):
        compiled = cc.compile(_afresh(fn), backend=backend, fullgraph=fullgraph, options=given)
        call_args, call_kwargs = (args, dict(kwargs or {}))
        if grad:
            call_args, call_kwargs = tree_map(_leaf, (call_args, call_kwargs))
        result = compiled(*call_args, **call_kwargs)
        if grad:
            _differentiate(result, fn, (call_args, call_kwargs))
    return Report(
        renamed_cells(recorder.recording),
        name or getattr(fn, "__name__", type(fn).__name__),
        live=recorder.compilations,
        inputs=recorder.inputs,
        result=result,
        show=show,
    )


def check_shown(show: Sequence[str]) -> None:
    """Only names of stages, in a sequence."""
    if isinstance(show, str) or not isinstance(show, Sequence):
        raise OptionError(BAD_VALUE, f"show takes a sequence of stages, not {show!r}")
    for stage in show:
        if stage not in STAGES:
            raise OptionError(BAD_VALUE, f"show names no stage {stage!r}{closest(stage, STAGES)}")


def _leaf(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach().clone().requires_grad_()
    return value


def _differentiate(result: Any, fn: Any, arguments: Any) -> None:
    """Run the backward pass; nobody's `.grad` is touched."""
    heads = [v for v in tree_leaves(result) if isinstance(v, torch.Tensor) and v.requires_grad]
    leaves = [v for v in tree_leaves(arguments) if isinstance(v, torch.Tensor) and v.requires_grad]
    if isinstance(fn, torch.nn.Module):
        leaves += [p for p in fn.parameters() if p.requires_grad]
    if heads and leaves:
        ones = [torch.ones_like(h) for h in heads]
        torch.autograd.grad(heads, leaves, ones, allow_unused=True)


def _afresh(fn: Any) -> Any:
    """The function under a code object of its own, about which nothing was decided at earlier calls."""
    fn = original_of(fn)
    if isinstance(fn, types.MethodType):
        return types.MethodType(_afresh(fn.__func__), fn.__self__)
    if not isinstance(fn, types.FunctionType):
        return fn
    twin = types.FunctionType(
        fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    twin.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
    return functools.update_wrapper(twin, fn)
