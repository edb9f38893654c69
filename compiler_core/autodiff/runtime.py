"""The partitioned pair as one differentiable callable.

In: a Partitioned and the built forward and backward calls. Out: a function from the captured inputs
to the captured outputs that behaves as eager does for autograd: same `requires_grad`, same `.grad`
(None included), inputs written in place with their version counted, outputs that alias inputs as
the same objects. The idea: one `autograd.Function` holds what the backward graph reads; writes that have
a gradient, and views, are made outside it, where autograd records them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler_core.autodiff import borrowed
from compiler_core.autodiff.differentiate_again import Again
from compiler_core.autodiff.rebuild import Rebuild, rebuilder
from compiler_core.autodiff.tangents import tangent_layouts
from compiler_core.stages import Partitioned

__all__ = ["attach"]

Call = Callable[[list[Any]], Sequence[Any]]
Run = Callable[..., tuple[Any, ...]]


def attach(partitioned: Partitioned, forward_call: Call, backward_call: Call | None) -> Run:
    """A callable from the graph's inputs to the tuple of its outputs.

    forward_call: list of primals → (outputs, new values, saved …). backward_call: list of (saved …,
    tangents) → gradients; it is not called before the first backward, so it may build itself then.
    Both may empty the list. When nothing needs a gradient, at compile time or at the call, there
    is no autograd.Function: the cost is that of `forward_call` and of the checks around it.
    Raises ValueError when a backward call is needed and not given.
    """
    if partitioned.joint.graph.meta.get("autocast"):
        forward_call = _without_autocast(forward_call)
    rebuild = rebuilder(partitioned.joint)
    plain = _plain(partitioned, forward_call, rebuild)
    facts = partitioned.joint.graph.meta
    if facts.get("backward_error"):
        backward_call = _raising(facts["backward_error"])
    elif partitioned.backward is None:
        return plain
    if backward_call is None:
        raise ValueError("the graph has a backward part, so `backward_call` cannot be None")
    differentiable = _differentiable(partitioned, forward_call, backward_call, rebuild)

    def run(*inputs: Any) -> tuple[Any, ...]:
        return differentiable(*inputs) if torch.is_grad_enabled() else plain(*inputs)

    return _with_grad(differentiable) if facts.get("differentiates_without_grad") else run


def _with_grad(call: Run) -> Run:
    """A graph that switches grad mode on inside, called with it off."""

    def run(*inputs: Any) -> tuple[Any, ...]:
        with torch.enable_grad():
            return call(*inputs)

    return run


def _raising(message: str) -> Call:
    """The backward of a graph that overwrites what it needs: eager raises there and not before."""

    def call(_: list[Any]) -> Sequence[Any]:
        raise RuntimeError(message)

    return call


def _without_autocast(call: Call) -> Call:
    """The casts of autocast are in the graph already."""

    def run(inputs: list[Any]) -> Sequence[Any]:
        with borrowed.autocast_off():
            return call(inputs)

    return run


def _plain(partitioned: Partitioned, call: Call, rebuild: Rebuild | None) -> Run:
    """The forward pass alone."""
    joint = partitioned.joint
    count, written = joint.outputs, joint.mutated
    if rebuild is None and not written and len(partitioned.saved) == 0 and joint.hidden == 0:
        return lambda *inputs: tuple(call(list(inputs)))

    def run(*inputs: Any) -> tuple[Any, ...]:
        results = call(list(inputs))
        if written:
            with torch.no_grad():
                _write(inputs, written, results[count:])
        outputs = list(results[:count])
        return tuple(outputs) if rebuild is None else rebuild(inputs, outputs)

    return run


def _write(inputs: Sequence[Any], written: Sequence[int], values: Sequence[Any]) -> None:
    """Put new values into inputs. A graph that wrote in place returns the input itself."""
    for number, value in zip(written, values):
        if value is inputs[number]:
            if not value.is_inference():  # such a tensor has no version
                torch.autograd.graph.increment_version(value)
        else:
            inputs[number].copy_(value)


def _differentiable(
    partitioned: Partitioned, forward_call: Call, backward_call: Call, rebuild: Rebuild | None
) -> Run:
    joint = partitioned.joint
    function = _function(partitioned, forward_call, backward_call)
    # New values with a gradient are copied in outside the function, so that autograd sees it.
    late = [n for n in joint.diff_outputs if n >= joint.outputs]
    targets = [joint.mutated[n - joint.outputs] for n in late]

    def run(*inputs: Any) -> tuple[Any, ...]:
        results = function.apply(*inputs)
        if targets:
            _write(inputs, targets, [results[n] for n in late])
        if rebuild is not None:
            return rebuild(inputs, list(results[: joint.outputs]))
        return tuple(results[: joint.outputs]) if targets else results

    return run


def _function(partitioned: Partitioned, forward_call: Call, backward_call: Call) -> Any:
    """The autograd.Function of one pair."""
    joint = partitioned.joint
    outputs, primals = joint.outputs, joint.primals
    first_saved = outputs + len(joint.mutated)
    diff_outputs, diff_inputs, reaches = joint.diff_outputs, joint.diff_inputs, joint.reaches
    has_late = any(n >= outputs for n in diff_outputs)
    early = [
        (i, outputs + k) for k, i in enumerate(joint.mutated) if outputs + k not in diff_outputs
    ]
    early_inputs, early_values = [i for i, _ in early], [v for _, v in early]
    is_size, as_input, as_output = _where_saved(partitioned)
    sizes = sum(is_size)
    without = [n for n in range(first_saved if has_late else outputs) if n not in diff_outputs]
    layouts = tangent_layouts(joint)
    again = Again(joint)

    class Compiled(torch.autograd.Function):
        """Forward and backward of one captured graph."""

        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
            ctx.kept = again.keep(inputs)
            results = _no_views(forward_call(list(inputs)), outputs)
            _write(inputs, early_inputs, [results[n] for n in early_values])
            saved = results[first_saved:]
            for position, number in as_input:  # the very object, so that autograd knows it
                saved[position] = inputs[number]
            for position, number in as_output:
                saved[position] = results[number]
            ctx.sizes = saved[:sizes]
            ctx.save_for_backward(*saved[sizes:])
            ctx.layouts = layouts(results)
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(
                *[results[n] for n in without if isinstance(results[n], torch.Tensor)]
            )
            return tuple(results[: first_saved if has_late else outputs])

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
            given = [gradients[n] for n in diff_outputs]
            found: Sequence[Any]
            if torch.is_grad_enabled() or any(map(borrowed.is_wrapped, given)):
                found = again.gradients(ctx.kept, given)
            else:
                tangents = [make(t) for make, t in zip(ctx.layouts, given)]
                found = backward_call([*ctx.sizes, *ctx.saved_tensors, *tangents])
            result: list[Any] = [None] * primals
            for number, reach, gradient in zip(diff_inputs, reaches, found):
                if any(given[k] is not None for k in reach):
                    result[number] = gradient
            return tuple(result)

    return Compiled


def _no_views(results: Sequence[Any], outputs: int) -> list[Any]:
    """The results, an output that is a view of a value nobody else sees as a plain tensor.

    Autograd forbids to write in place to a view that a custom function returns; eager allows it.
    """
    made = list(results)
    for number, output in enumerate(results[:outputs]):
        if isinstance(output, torch.Tensor) and output._is_view():
            made[number] = output.detach()
    return made


def _where_saved(
    partitioned: Partitioned,
) -> tuple[list[bool], list[tuple[int, int]], list[tuple[int, int]]]:
    """Per saved value: is it a number; (position, input) and (position, output) where it is one."""
    nodes = list(partitioned.forward.graph.nodes)
    results = nodes[-1].args[0]
    inputs = {n: i for i, n in enumerate(n for n in nodes if n.op == "placeholder")}
    outputs = {n: i for i, n in reversed(list(enumerate(results[: partitioned.joint.outputs])))}
    saved = results[len(results) - len(partitioned.saved) :]
    return (
        [not isinstance(n.meta["val"], torch.Tensor) for n in saved],
        [(k, inputs[n]) for k, n in enumerate(saved) if n in inputs],
        [(k, outputs[n]) for k, n in enumerate(saved) if n in outputs],
    )
