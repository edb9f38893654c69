"""Tangents as the backward graph expects them.

In: what autograd passes to backward: None, expanded, of any strides, lazily conjugated. Out: a dense tensor with the
strides that the tangent had when the joint graph was traced: those of its output, if dense.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler_core.stages import Joint

__all__ = ["tangent_layouts"]

Make = Callable[[torch.Tensor | None], torch.Tensor]


def tangent_layouts(joint: Joint) -> Callable[[Sequence[Any]], Sequence[Make]]:
    """A function from the results of one forward call to one function per tangent.

    With fixed sizes the functions are made once; with symbolic ones each call's outputs tell.
    """
    inputs = [n for n in joint.graph.graph.nodes if n.op == "placeholder"]
    fakes = [node.meta["val"] for node in inputs[joint.primals :]]
    numbers = [n for f in fakes for n in (*f.shape, *f.stride())]
    if all(isinstance(n, int) for n in numbers):
        fixed = [
            _layout(tuple(f.shape), f.stride(), f.dtype, torch.device(f.device)) for f in fakes
        ]
        return lambda results: fixed

    def layouts(results: Sequence[Any]) -> Sequence[Make]:
        of = [results[number] for number in joint.diff_outputs]
        return [_layout(tuple(o.shape), _dense_strides(o), o.dtype, o.device) for o in of]

    return layouts


def _layout(
    shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Make:
    def make(tangent: torch.Tensor | None) -> torch.Tensor:
        if tangent is not None and tangent.stride() == stride and tangent.dtype == dtype:
            return tangent.resolve_conj().resolve_neg()
        fresh = torch.empty_strided(shape, stride, dtype=dtype, device=device)
        return fresh.zero_() if tangent is None else fresh.copy_(tangent)

    return make


def _dense_strides(output: torch.Tensor) -> tuple[int, ...]:
    """The strides of `torch.empty_like(output)`: its own if dense."""
    return torch.empty_like(output, device="meta").stride()
