"""A gradient that is itself differentiated (`create_graph=True`), or of a batch (`is_grads_batched=True`).

In: the joint, the inputs of the call, the tangents. Out: gradients that are torch's own.
The compiled backward pass is a black box to autograd, and treating it as constant would give wrong
numbers; its kernels read memory, which a batch of tangents does not have. So the captured graph
runs again in eager, and its gradient is taken by torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from compiler_core.autodiff.refusals import DOUBLE_BACKWARD
from compiler_core.errors import NotSupportedYet
from compiler_core.randomness import Generators
from compiler_core.stages import Joint

__all__ = ["differentiate_again", "version_of"]


def differentiate_again(
    joint: Joint, inputs: Sequence[Any], versions: Sequence[int], drawn: Generators | None,
    tangents: Sequence[Any],
) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of `joint.diff_inputs`, with a graph if grad mode is on. `inputs` are weak references to the call's own.

    drawn: where the generators stood when the graph ran, if it draws: the same numbers are drawn again.

    Raises NotSupportedYet CC207 when the inputs are gone or changed, or the graph writes to one.
    """
    alive = [ref() if callable(ref) else ref for ref in inputs]
    _check(joint, inputs, alive, versions)
    assert joint.captured is not None
    is_on_inside = joint.graph.meta.get("differentiates_without_grad", False)
    with torch.set_grad_enabled(not is_on_inside), drawn.restored() if drawn else nullcontext():
        outputs = joint.captured(*alive)
    chosen = [(outputs[n], t) for n, t in zip(joint.diff_outputs, tangents) if t is not None]
    leaves = [alive[number] for number in joint.diff_inputs]
    return torch.autograd.grad(
        [o for o, _ in chosen], leaves, [t for _, t in chosen],
        create_graph=torch.is_grad_enabled(), allow_unused=True,
    )  # fmt: skip


def version_of(value: Any) -> int:
    """How often a tensor was written; 0 for inference tensors, which do not count it, and numbers."""
    is_counted = isinstance(value, torch.Tensor) and not value.is_inference()
    return value._version if is_counted else 0


def _check(
    joint: Joint, inputs: Sequence[Any], alive: Sequence[Any], versions: Sequence[int]
) -> None:
    if joint.graph.meta["autocast"]:
        raise NotSupportedYet(DOUBLE_BACKWARD, "the graph was captured under autocast")
    if joint.mutated:
        raise NotSupportedYet(DOUBLE_BACKWARD, "the graph writes to an input")
    if joint.hidden:
        raise NotSupportedYet(
            DOUBLE_BACKWARD, "the graph returns views of a value it does not return"
        )
    for given, tensor, version in zip(inputs, alive, versions):
        if not callable(given):
            continue
        if tensor is None:
            raise NotSupportedYet(DOUBLE_BACKWARD, "an input is no longer alive")
        if version_of(tensor) != version:
            raise NotSupportedYet(DOUBLE_BACKWARD, "an input was written since")
