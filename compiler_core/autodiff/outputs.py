"""What each output of the captured graph is: fresh, an input itself, or a view of something.

In: the outputs of the traced forward pass (functional tensors) and its inputs. Out: an
`OutputPlan`. The idea: a tensor that shares memory with an input, or with another output, must do
so at run time too, so it is not computed but rebuilt from its base (`rebuild.py`). Several views of
one intermediate value make that value a *hidden* output, from which they are rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from compiler_core.autodiff.borrowed import symbol_text
from compiler_core.autodiff.refusals import OUTPUT_ALIAS, refuse
from compiler_core.autodiff.sizes import Sizes

__all__ = ["OutputPlan", "View", "plan_outputs"]


@dataclass(frozen=True, slots=True)
class View:
    """An output that is rebuilt from a base: input number `base`, or output number `base`.

    `size`, `stride` and `offset` (elements after the base's own first one) are integers or
    expressions over symbols. `same`: it is the base itself, the same object. `detached`: it carries
    no gradient, whatever the base does, and autograd does not know its base.
    """

    output: int
    base: int
    of_input: bool
    size: Sizes = ()
    stride: Sizes = ()
    offset: int | str = 0
    same: bool = False
    detached: bool = False


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """`aliases` are (output, input) pairs; `hidden` the values returned only as bases of views."""

    aliases: tuple[tuple[int, int], ...]
    views: tuple[View, ...]
    hidden: tuple[torch.Tensor, ...]

    @property
    def rebuilt(self) -> frozenset[int]:
        """Outputs that the graph does not have to compute."""
        return frozenset({o for o, _ in self.aliases} | {view.output for view in self.views})

    def with_gradients_of(self, captured: Sequence[Any]) -> OutputPlan:
        """Views say `requires_grad` as captured: in inference mode they do as their base, but record nothing."""
        views = (
            replace(v, detached=not getattr(captured[v.output], "requires_grad", False))
            for v in self.views
        )
        return replace(self, views=tuple(views))


def plan_outputs(outputs: Sequence[Any], inputs: Sequence[Any]) -> OutputPlan:
    """Sort outputs into fresh ones, aliases and views. Raises InternalError CC205 for other sharing."""
    aliases: list[tuple[int, int]] = []
    views: list[View] = []
    groups: dict[int, list[int]] = {}
    owner = {_storage(t): i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor)}
    for number, output in enumerate(outputs):
        if not isinstance(output, torch.Tensor):
            continue
        itself = next((i for i, given in enumerate(inputs) if given is output), None)
        if itself is not None:
            aliases.append((number, itself))
        elif (source := owner.get(_storage(output))) is not None:
            views.append(_view(number, output, source, inputs[source], of_input=True))
        else:
            groups.setdefault(_storage(output), []).append(number)
    hidden: list[torch.Tensor] = []
    for members in groups.values():
        if len(members) > 1:
            views += _views_of_intermediate(members, outputs, hidden)
    return OutputPlan(tuple(aliases), tuple(views), tuple(hidden))


def _views_of_intermediate(
    members: list[int], outputs: Sequence[Any], hidden: list[torch.Tensor]
) -> list[View]:
    base = _base_of([outputs[m] for m in members])
    number = next((m for m in members if outputs[m] is base), None)
    if number is None:
        number = len(outputs) + len(hidden)
        hidden.append(base)
    return [
        _view(m, outputs[m], number, base, of_input=False) for m in members if m != number
    ]  # fmt: skip


def _base_of(tensors: list[torch.Tensor]) -> torch.Tensor:
    """A tensor that all of these are views of, with the gradient of those that have one."""
    differentiable = [t for t in tensors if t.requires_grad]
    bases = [t if t._base is None else t._base for t in differentiable or tensors]
    if differentiable and any(other is not bases[0] for other in bases):
        raise refuse(OUTPUT_ALIAS, f"{len(tensors)} outputs have gradients by more than one base")
    for base in bases:
        if all(_covers(base, tensor) for tensor in tensors):
            return base
    raise refuse(OUTPUT_ALIAS, "an output reaches beyond the memory of its base")


def _covers(base: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether the memory that `tensor` reads is memory that `base` reads; True for symbolic sizes."""
    numbers = [n for t in (base, tensor) for n in (*t.shape, *t.stride(), t.storage_offset())]
    if any(isinstance(n, torch.SymInt) for n in numbers) or tensor.numel() == 0:
        return True
    (first, last), (low, high) = _span(base), _span(tensor)
    return first <= low and high <= last


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """First and last element of the memory that the tensor reads; static sizes only."""
    first = int(tensor.storage_offset())
    return first, first + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))


def refuse_lazy_views(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """An output that is conjugated or negated lazily is returned as numbers, unless eager's shares memory.

    outputs, inputs: the fake tensors of the captured graph. Raises InternalError CC205.
    """
    tensors = [t for t in (*outputs, *inputs) if isinstance(t, torch.Tensor)]
    places = [_storage(t) for t in tensors]
    for tensor, place in zip(tensors, places):
        if (tensor.is_conj() or tensor.is_neg()) and places.count(place) > 1:
            raise refuse(OUTPUT_ALIAS, "an output is a lazily conjugated or negated view")


def _view(number: int, output: torch.Tensor, base: int, of: torch.Tensor, of_input: bool) -> View:
    if output is of:
        return View(number, base, of_input, same=True)
    if output.dtype != of.dtype or output.is_complex() or output.is_conj() or output.is_neg():
        raise refuse(OUTPUT_ALIAS, f"output {number} views its base as another dtype")
    offset = symbol_text(output.storage_offset() - of.storage_offset())
    return View(
        number, base, of_input, tuple(map(symbol_text, output.shape)), tuple(map(symbol_text, output.stride())),
        offset, detached=_is_detached(output, of),
    )  # fmt: skip


def _is_detached(output: torch.Tensor, base: torch.Tensor) -> bool:
    """Without a gradient, unlike the base, or by way of `detach()`: then the base is not its `_base`."""
    return not output.requires_grad and (base.requires_grad or output._base is not base)


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
