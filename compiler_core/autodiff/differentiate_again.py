"""A gradient that is itself differentiated (`create_graph=True`), or of a batch (`is_grads_batched=True`).

In: the joint, what was kept of the call, the tangents. Out: gradients that are torch's own.
The compiled backward pass is a black box to autograd, and treating it as constant would give wrong
numbers; its kernels read memory, which a batch of tangents does not have. So the captured graph
runs again in eager, and its gradient is taken by torch: on the inputs of the call, as they were, drawing the
random numbers that it drew, under its autocast.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.autodiff import borrowed
from compiler_core.autodiff.costs import bytes_of
from compiler_core.autodiff.refusals import DOUBLE_BACKWARD
from compiler_core.autodiff.vocabulary import is_random
from compiler_core.errors import NotSupportedYet
from compiler_core.randomness import Generators
from compiler_core.stages import Joint

__all__ = ["Again", "Kept"]

# A smaller input is held until the backward pass is over: a program may make one (scaled weights, say) and
# drop it, and nothing that is saved needs it. Larger ones live only as long as somebody else has them.
_HELD = 1 << 16


@dataclass(frozen=True, slots=True)
class Kept:
    """What a call leaves for a second gradient: inputs (large ones as weak references), their versions,
    values that the graph overwrote, and where the generators stood.
    """

    inputs: tuple[Any, ...]
    versions: tuple[int, ...]
    before: dict[int, torch.Tensor]
    drawn: Generators | None


class Again:
    """Second gradients of one joint graph."""

    def __init__(self, joint: Joint):
        nodes = list(joint.graph.graph.nodes)
        self._joint = joint
        self._draws = any(map(is_random, nodes))
        values = [node.meta.get("val") for node in nodes]
        self._devices = frozenset(v.device for v in values if isinstance(v, torch.Tensor))
        self._written = frozenset(joint.mutated)
        self._held = _held(nodes[: joint.primals]) - self._written
        self._read = _read_before_written(joint) if joint.diff_inputs else ()

    def keep(self, inputs: Sequence[Any]) -> Kept:
        """Note the inputs of a call, before the graph writes to any."""
        with torch.no_grad():
            before = {number: inputs[number].clone() for number in self._read}
        return Kept(
            tuple(self._reference(n, value) for n, value in enumerate(inputs)),
            tuple(map(_version_of, inputs)), before,
            Generators.of(self._devices) if self._draws else None,
        )  # fmt: skip

    def _reference(self, number: int, value: Any) -> Any:
        is_held = number in self._held or not isinstance(value, torch.Tensor)
        return value if is_held else weakref.ref(value)

    def gradients(self, kept: Kept, tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients of `joint.diff_inputs`, with a graph if grad mode is on.

        Raises NotSupportedYet CC207 when an input is gone or was changed by somebody else, or when the
        graph overwrites a value that has a gradient.
        """
        joint = self._joint
        assert joint.captured is not None
        inputs = self._inputs_of_call(kept)
        with self._as_it_was(kept):
            outputs = joint.captured(*inputs)
        given = [(n, t) for n, t in zip(joint.diff_outputs, tangents) if t is not None]
        roots = [self._root(outputs, number) for number, _ in given]
        return torch.autograd.grad(
            roots, [inputs[number] for number in joint.diff_inputs], [t for _, t in given],
            create_graph=torch.is_grad_enabled(), allow_unused=True,
        )  # fmt: skip

    def _as_it_was(self, kept: Kept) -> ExitStack:
        stack, meta = ExitStack(), self._joint.graph.meta
        stack.enter_context(borrowed.autocast_off())
        for device, dtype in meta.get("autocast", ()):
            stack.enter_context(torch.autocast(device, dtype, cache_enabled=False))
        is_on_inside = meta.get("differentiates_without_grad", False)
        stack.enter_context(torch.set_grad_enabled(not is_on_inside))
        if kept.drawn is not None:
            stack.enter_context(kept.drawn.restored())
        return stack

    def _inputs_of_call(self, kept: Kept) -> list[Any]:
        """Aliases of the inputs: hooks on an input run when its gradient arrives, not in here as well."""
        if not self._written.isdisjoint(self._joint.diff_inputs):
            raise NotSupportedYet(DOUBLE_BACKWARD, "the graph writes to an input with a gradient")
        inputs = []
        for number, (given, version) in enumerate(zip(kept.inputs, kept.versions)):
            value = given() if isinstance(given, weakref.ref) else given
            if number in self._written:
                inputs.append(self._overwritten(number, kept, value))
                continue
            if isinstance(given, weakref.ref) and value is None:
                raise NotSupportedYet(DOUBLE_BACKWARD, "an input is no longer alive")
            if _version_of(value) != version:
                raise NotSupportedYet(DOUBLE_BACKWARD, "an input was written since")
            inputs.append(_alias(value))
        return inputs

    def _overwritten(self, number: int, kept: Kept, value: torch.Tensor | None) -> torch.Tensor:
        """What the graph may write to again; its elements count only if they were kept."""
        if number in kept.before:
            return kept.before[number].clone()
        if value is None:
            raise NotSupportedYet(DOUBLE_BACKWARD, "an input is no longer alive")
        return value.detach().clone()

    def _root(self, outputs: Sequence[Any], number: int) -> torch.Tensor:
        """Output `number`; a hidden one is the base of a view that the graph returns."""
        joint = self._joint
        if number < len(outputs):
            root: torch.Tensor = outputs[number]
            return root
        views = [v for v in joint.views if not v.of_input and v.base == number]
        base = outputs[views[0].output]._base if views else None
        if base is None:
            raise NotSupportedYet(DOUBLE_BACKWARD, "the graph overwrites a value with a gradient")
        found: torch.Tensor = base
        return found


def _alias(value: Any) -> Any:
    is_differentiable = isinstance(value, torch.Tensor) and value.requires_grad
    if not is_differentiable:
        return value
    with torch.enable_grad():
        return value.view_as(value)


def _held(inputs: Sequence[torch.fx.Node]) -> frozenset[int]:
    """Small inputs; parameters live anyway."""
    sizes = [0 if n.meta.get("is_parameter") else bytes_of(n) for n in inputs]
    return frozenset(number for number, size in enumerate(sizes) if size and size <= _HELD)


def _read_before_written(joint: Joint) -> tuple[int, ...]:
    """Overwritten inputs whose old elements an output or a gradient is computed from."""
    nodes = list(joint.graph.graph.nodes)
    results = list(nodes[-1].args[0])
    end = joint.outputs + len(joint.mutated)
    wanted = [results[n] for n in joint.diff_outputs if n < joint.outputs] + results[end:]
    stack, seen = list(wanted), set()
    while stack:
        node = stack.pop()
        if isinstance(node, torch.fx.Node) and node not in seen:
            seen.add(node)
            stack += node.all_input_nodes
    inputs = [node for node in nodes if node.op == "placeholder"]
    return tuple(number for number in joint.mutated if inputs[number] in seen)


def _version_of(value: Any) -> int:
    """How often a tensor was written; 0 for inference tensors, which do not count it, and numbers."""
    is_counted = isinstance(value, torch.Tensor) and not value.is_inference()
    return value._version if is_counted else 0
