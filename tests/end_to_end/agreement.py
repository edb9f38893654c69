"""A program run in eager, in float64 and compiled, call by call, and everything that can be seen compared.

`agree(fn, *calls)` runs `fn` on each call's arguments three ways, each on its own copies: outputs (values within
the bound of `bounded_error`, dtypes, strides, structure, requires_grad), gradients of the arguments (also which
are None) and the arguments afterwards. It fails when nothing was compiled or when something fell back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

import compiler_core as cc
from compiler_core.counters import Counters
from compiler_core.devtools.compare_stages import bounded_error
from compiler_core.devtools.copies import copy_of

STRICT = {"strict": True}


@dataclass
class Outcome:
    """What one call gave: output leaves, the arguments afterwards, their gradients."""

    outputs: list[Any]
    structure: Any
    arguments: list[Any]
    gradients: list[Any]


@contextmanager
def compiling(
    graphs: int | None = None, fallbacks: int = 0, **counts: int
) -> Iterator[Callable[[], Counters]]:
    """Graphs are built and run inside (exactly `graphs`, if given), none falls back; other counters as named."""
    before = cc.stats()
    yield lambda: since(before)
    delta = since(before)
    assert delta.fallbacks == fallbacks, delta
    assert delta.graphs > 0 if graphs is None else delta.graphs == graphs, delta
    for name, count in counts.items():
        assert getattr(delta, name) == count, (name, count, delta)


def since(before: Counters) -> Counters:
    now = cc.stats()
    return Counters(
        **{name: getattr(now, name) - getattr(before, name) for name in Counters.__slots__}
    )


def agree(
    fn: Callable[..., Any],
    *calls: Sequence[Any],
    graphs: int | None = None,
    backward: bool = True,
    options: dict[str, Any] | None = None,
    strides: bool = True,
    **counts: int,
) -> None:
    """`fn` compiled gives on every call what eager gives. Each call is a tuple of arguments.

    graphs: how many graphs may be built in all; None for any number but zero.
    counts: exact differences of other counters, such as `breaks=0`.
    """
    compiled = cc.compile(fn, options={**STRICT, **(options or {})})
    with compiling(graphs, **counts):
        for number, arguments in enumerate(calls):
            eager = outcome(fn, copied(arguments), backward)
            truth = outcome(fn, copied(arguments, torch.float64), backward)
            ours = outcome(compiled, copied(arguments), backward)
            same_outcome(ours, eager, truth, f"call {number}", strides)


def outcome(fn: Callable[..., Any], arguments: Sequence[Any], backward: bool) -> Outcome:
    """Call `fn`, then backward from all outputs that have a gradient, with tangents that depend on shapes only."""
    outputs, structure = pytree.tree_flatten(fn(*arguments))
    leaves = pytree.tree_leaves(list(arguments))
    heads = [o for o in outputs if isinstance(o, torch.Tensor) and o.grad_fn is not None]
    if backward and heads:
        torch.autograd.backward(heads, [_tangent(h, k) for k, h in enumerate(heads)])
    gradients = [v.grad if isinstance(v, torch.Tensor) and v.is_leaf else None for v in leaves]
    return Outcome(outputs, structure, leaves, gradients)


def _tangent(head: torch.Tensor, number: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(number)
    drawn = torch.randn(head.shape, generator=generator, dtype=torch.float32)
    return drawn.to(head.dtype)


def copied(arguments: Sequence[Any], dtype: torch.dtype | None = None) -> list[Any]:
    """Copies with the same strides and requires_grad; one object given twice stays one object."""
    made: dict[int, Any] = {}

    def one(value: Any) -> Any:
        if isinstance(value, torch.nn.Module):
            twin = copy.deepcopy(value)
            return twin if dtype is None else twin.to(dtype)
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in made:
            made[id(value)] = _in_dtype(copy_of(value), dtype)
        return made[id(value)]

    return [pytree.tree_map(one, value) for value in arguments]


def _in_dtype(value: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    if dtype is None or not (value.is_floating_point() or value.is_complex()):
        return value
    wide = torch.complex128 if value.is_complex() else dtype
    return value.detach().to(wide).requires_grad_(value.requires_grad)


def same_outcome(
    ours: Outcome, eager: Outcome, truth: Outcome, where: str, strides: bool = True
) -> None:
    assert ours.structure == eager.structure, f"{where}: {ours.structure} {eager.structure}"
    for kind in ("outputs", "arguments", "gradients"):
        rows = zip(*(getattr(o, kind) for o in (ours, eager, truth)), strict=True)
        for number, (a, b, c) in enumerate(rows):
            same_value(a, b, c, f"{where}, {kind} {number}", strides)


def same_value(ours: Any, eager: Any, truth: Any, where: str, strides: bool = True) -> None:
    """One value: facts equal, numbers within the bound that eager's own error allows."""
    assert type(ours) is type(eager), f"{where}: {ours!r} instead of {eager!r}"
    if not isinstance(eager, torch.Tensor):
        assert ours == eager or ours != ours, f"{where}: {ours!r} instead of {eager!r}"
        return
    assert facts(ours, strides) == facts(eager, strides), where
    error, tolerance = bounded_error(ours, eager, truth)
    assert error <= tolerance, f"{where}: error {error:.3g} > {tolerance:.3g}"


def facts(value: torch.Tensor, strides: bool) -> dict[str, Any]:
    """What must be equal besides the numbers. Strides count where there is more than one element."""
    known = {
        "dtype": value.dtype,
        "shape": value.shape,
        "requires_grad": value.requires_grad,
        "is_leaf": value.is_leaf,
    }
    if strides and value.numel():
        known["strides"] = [s for s, size in zip(value.stride(), value.shape) if size > 1]
    return known


def agree_module(
    module: torch.nn.Module, *calls: Sequence[Any], graphs: int | None = None, **counts: int
) -> None:
    """As `agree`, for a module that is trained: also the gradients of its parameters, and its state at the end."""
    eager, wide = copy.deepcopy(module), copy.deepcopy(module).double()
    compiled = cc.compile(module, options=STRICT)
    with compiling(graphs, **counts):
        for number, arguments in enumerate(calls):
            runs = [
                _module_outcome(model, copied(arguments, dtype))
                for model, dtype in ((compiled, None), (eager, None), (wide, torch.float64))
            ]
            same_outcome(*runs, f"call {number}")
    names = compiled.state_dict()
    for name, *values in zip(names, *(m.state_dict().values() for m in (compiled, eager, wide))):
        same_value(*values, name)


def _module_outcome(module: torch.nn.Module, arguments: Sequence[Any]) -> Outcome:
    module.zero_grad()
    result = outcome(module, arguments, backward=True)
    result.gradients += [p.grad for p in module.parameters()]
    return result
