"""Outputs that are not computed: the input itself, or a view of an input or of another output.

In: a Joint. Out: a function from (inputs, computed outputs) to the tuple that the user gets. It runs
after the graph, under the user's own grad mode, so that autograd records the views as in eager.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler_core.autodiff.outputs import View
from compiler_core.autodiff.refusals import OUTPUT_ALIAS, refuse
from compiler_core.autodiff.sizes import compile_sizes
from compiler_core.stages import Joint

__all__ = ["rebuilder"]

Rebuild = Callable[[Sequence[Any], list[Any]], tuple[Any, ...]]


def rebuilder(joint: Joint) -> Rebuild | None:
    """The function that completes the outputs, in place; None if there is nothing to rebuild.

    Raises InternalError CC205 when a size of a view cannot be computed from the inputs.
    """
    if not joint.aliases and not joint.views:
        return None
    fakes = [n.meta["val"] for n in joint.graph.graph.nodes if n.op == "placeholder"]
    steps = [_step(view, fakes[: joint.primals]) for view in joint.views]
    visible = joint.outputs - joint.hidden

    def rebuild(inputs: Sequence[Any], outputs: list[Any]) -> tuple[Any, ...]:
        for number, given in joint.aliases:
            outputs[number] = inputs[given]
        for view, step in zip(joint.views, steps):
            base = inputs[view.base] if view.of_input else outputs[view.base]
            outputs[view.output] = step(base, inputs)
        return tuple(outputs[:visible])

    return rebuild


def _step(view: View, fakes: Sequence[Any]) -> Callable[[torch.Tensor, Sequence[Any]], Any]:
    if view.same:
        return lambda base, inputs: base
    rank = len(view.size)
    try:
        numbers = compile_sizes((*view.size, *view.stride, view.offset), fakes)
    except ValueError as cause:
        raise refuse(OUTPUT_ALIAS, f"output {view.output}: {cause}") from cause

    def step(base: torch.Tensor, inputs: Sequence[Any]) -> torch.Tensor:
        values = numbers(inputs)
        offset = base.storage_offset() + values[-1]
        source = base.detach() if view.detached else base
        return source.as_strided(values[:rank], values[rank:-1], offset)

    return step
