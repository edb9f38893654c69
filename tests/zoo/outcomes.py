"""One call of a model as comparable values, and how far a compiled one is from eager.

In: a model, keyword arguments, a mode. Out: `Outcome`, named tensors and plain values; `difference`
gives the first value that is not equal within max(2 x eager's error against float64, a few ulp).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler_core.devtools.compare_stages import bounded_error

__all__ = ["MODES", "Outcome", "difference", "outcome", "wide"]

MODES = ("eval", "train")
FEW_ULP = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output's class, and its values and (in train mode) all gradients by name."""

    kind: str
    values: dict[str, Any]


def outcome(called: Any, model: torch.nn.Module, given: Mapping[str, Any], mode: str) -> Outcome:
    """Run `called` (`model`, or `model` compiled) on copies of `given`; in train mode also backward."""
    model.zero_grad()
    torch.manual_seed(7)
    with torch.set_grad_enabled(mode == "train"):
        result = called(**copy.deepcopy(dict(given)))
    if mode == "train":
        _loss(result).backward()
    values = dict(_named(result))
    gradients = {f"grad of {n}": p.grad for n, p in model.named_parameters()}
    return Outcome(type(result).__name__, {**values, **gradients})


def _loss(result: Any) -> torch.Tensor:
    loss = getattr(result, "loss", None)
    if loss is not None:
        return loss
    heads = [v for v in pytree.tree_leaves(dict(result)) if _is_float(v)]
    return torch.stack([head.square().mean() for head in heads]).sum()


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.requires_grad


def _named(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Tensors and plain values in containers and in objects with attributes (caches)."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _named(item, f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _named(item, f"{name}[{number}]")
    elif type(value).__module__.startswith("transformers"):
        yield from _named(vars(value), name)
    elif value is None or isinstance(value, (torch.Tensor, bool, int, float, str)):
        yield name, value


def wide(value: Any) -> Any:
    """A float64 copy of a module or of keyword arguments."""
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).double()
    return {name: _widened(item) for name, item in value.items()}


def _widened(item: Any) -> Any:
    return item.double() if isinstance(item, torch.Tensor) and item.is_floating_point() else item


def difference(ours: Outcome, eager: Outcome, truth: Outcome | None) -> str:
    """What is not equal first, or an empty string. truth None: eager itself, within a few ulp."""
    if (ours.kind, list(ours.values)) != (eager.kind, list(eager.values)):
        return f"{ours.kind} {list(ours.values)} instead of {eager.kind} {list(eager.values)}"
    for name, value in eager.values.items():
        exact = truth.values.get(name) if truth else value
        if wrong := _value_difference(ours.values[name], value, exact):
            return f"{name}: {wrong}"
    return ""


def _value_difference(ours: Any, eager: Any, exact: Any) -> str:
    if not isinstance(eager, torch.Tensor):
        return "" if type(ours) is type(eager) and ours == eager else f"{ours!r}, not {eager!r}"
    if not isinstance(ours, torch.Tensor):
        return f"{ours!r}, not a tensor"
    facts = [(t.shape, t.dtype, t.requires_grad) for t in (ours, eager)]
    if facts[0] != facts[1]:
        return f"{facts[0]}, not {facts[1]}"
    error, tolerance = bounded_error(ours, eager, exact)
    tolerance *= FEW_ULP / 4 if eager.is_floating_point() else 1
    return "" if error <= tolerance else f"error {error:.3g} > {tolerance:.3g}"
