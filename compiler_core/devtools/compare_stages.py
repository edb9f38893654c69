"""Run every stage of a version on real inputs and measure each against float64.

In: a `Compilation` and the inputs of its graph. Out: one `StageCheck` per runnable stage. The bound
is DESIGN.md's promise 3: error ≤ max(2 × eager's own error, 4 ulp of the output's scale), where
eager is the captured graph run by torch and the truth is the same graph run in float64. Every run starts
from the same seed, and the truth is given the numbers that eager drew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from compiler_core.devtools.copies import copies_of, copy_of
from compiler_core.devtools.replay import Draws, seeded
from compiler_core.pipeline import Compilation, PartCode

__all__ = ["StageCheck", "bounded_error", "check_stages"]

Values = list[Any]


@dataclass(frozen=True, slots=True)
class StageCheck:
    """The worst output of one stage: absolute error against float64, and the bound for that output."""

    name: str
    part: str
    target: str
    max_error: float
    tolerance: float
    outputs: int
    version: str = ""  # of which frame, where several are checked together

    @property
    def ok(self) -> bool:
        return self.max_error <= self.tolerance


@dataclass(frozen=True, slots=True)
class _Bound:
    """Truth and tolerance of one output."""

    truth: Any
    tolerance: float


def check_stages(
    compilation: Compilation, inputs: Sequence[Any], seed: int = 0
) -> tuple[StageCheck, ...]:
    """Check capture, joint, partition, lower, fuse and kernels, forward and backward, for every target.

    inputs: the captured graph's inputs (tensors, ints); they are copied, never written.
    """
    with seeded(seed):
        return _check_stages(compilation, inputs, seed)


def _check_stages(
    compilation: Compilation, inputs: Sequence[Any], seed: int
) -> tuple[StageCheck, ...]:
    joint, drawn = compilation.joint, Draws()
    with drawn:
        outputs, gradients = _eager(compilation, inputs, None, seed)
    with Draws(drawn.results):
        truth = _eager(compilation, inputs, torch.float64, seed)
    tangents = _tangents([outputs[i] for i in joint.diff_outputs], seed)
    bounds = _bounds(outputs, truth[0]), _bounds(gradients, truth[1])
    both = [*bounds[0], *bounds[1]]
    checks = [
        _check("capture", "", "", bounds[0], _fresh_run(compilation.captured.graph, inputs, seed))
    ]
    checks.append(_check("joint", "", "", both, _joint_run(compilation, inputs, tangents, seed)))
    checks += _pair(
        "partition", "", both, compilation, inputs, tangents, seed, _graph_runner(compilation)
    )
    for target, parts in compilation.targets.items():
        for stage, runner in _RUNNERS.items():
            checks += _pair(
                stage,
                target,
                both,
                compilation,
                inputs,
                tangents,
                seed,
                _part_runner(parts, runner),
            )
    return tuple(checks)


_RUNNERS: dict[str, Callable[[PartCode], Callable[..., Any]]] = {
    "lower": lambda code: code.lowered.run,
    "fuse": lambda code: code.fused.run,
    "kernels": lambda code: code.built.run,
}

Runner = Callable[[str, Values], Sequence[Any]]


def _graph_runner(compilation: Compilation) -> Runner:
    graphs = {
        "forward": compilation.partitioned.forward,
        "backward": compilation.partitioned.backward,
    }
    return lambda part, values: graphs[part](*values)  # type: ignore[misc]


def _part_runner(
    parts: dict[str, PartCode], run: Callable[[PartCode], Callable[..., Any]]
) -> Runner:
    def on_target(part: str, values: Values) -> Sequence[Any]:
        code = parts[part]
        is_real = code.lowered.target.device == "cuda" and not code.built.evaluates
        given = [_on_gpu(v) for v in values] if is_real else values
        results: Sequence[Any] = run(code)(*given)
        return results

    return on_target


def _on_gpu(value: Any) -> Any:
    """The value where a GPU target's kernels read it, its strides kept."""
    if not isinstance(value, torch.Tensor) or value.is_cuda:
        return value
    return torch.empty_like(value, device="cuda").copy_(value)


def _pair(
    stage: str, target: str, bounds: list[_Bound], compilation: Compilation,
    inputs: Sequence[Any], tangents: Values, seed: int, run: Runner,
) -> list[StageCheck]:  # fmt: skip
    """Forward, then backward on what forward saved: both against the same truth."""
    joint = compilation.joint
    count = joint.outputs
    torch.manual_seed(seed)
    results = list(run("forward", copies_of(inputs)))
    checks = [_check(stage, "forward", target, bounds[:count], results[:count])]
    if compilation.partitioned.backward is not None:
        saved = results[count + len(joint.mutated) :]
        gradients = run("backward", [*saved, *copies_of(tangents)])
        checks.append(_check(stage, "backward", target, bounds[count:], gradients))
    return checks


def _fresh_run(graph: fx.GraphModule, inputs: Sequence[Any], seed: int) -> Values:
    torch.manual_seed(seed)
    return list(graph(*copies_of(inputs)))


def _joint_run(
    compilation: Compilation, inputs: Sequence[Any], tangents: Values, seed: int
) -> Values:
    joint = compilation.joint
    torch.manual_seed(seed)
    with torch.no_grad():
        results = list(joint.graph(*copies_of(inputs), *copies_of(tangents)))
    return results[: joint.outputs] + results[joint.outputs + len(joint.mutated) :]


def _eager(
    compilation: Compilation, inputs: Sequence[Any], dtype: torch.dtype | None, seed: int
) -> tuple[Values, Values]:
    """Outputs and gradients of the captured graph run by torch, in its own types or in `dtype`."""
    joint = compilation.joint
    leaves = [_leaf(value, dtype) for value in inputs]
    primals = [_not_leaf(v) if i in joint.mutated else v for i, v in enumerate(leaves)]
    torch.manual_seed(seed)
    with torch.enable_grad() if joint.diff_inputs else torch.no_grad():
        outputs = list(compilation.captured.graph(*primals))
    if not joint.diff_outputs:
        return outputs, []
    heads = [outputs[i] for i in joint.diff_outputs]
    tangents = [t.to(h.dtype) for t, h in zip(_tangents(heads, seed), heads)]
    wanted = [leaves[i] for i in joint.diff_inputs]
    return outputs, list(torch.autograd.grad(heads, wanted, tangents, allow_unused=True))


def _leaf(value: Any, dtype: torch.dtype | None) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copy = copy_of(value)
    if dtype is not None and copy.is_floating_point():
        copy = copy.to(dtype)
    return copy.requires_grad_(value.requires_grad)


def _not_leaf(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _tangents(heads: Values, seed: int) -> Values:
    """Random tangents, the same for every dtype: drawn in float32."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(h.shape, generator=generator) for h in heads]
    return [
        torch.empty_strided(h.shape, h.stride(), dtype=h.dtype, device=h.device).copy_(t)
        for t, h in zip(drawn, heads)
    ]


def bounded_error(value: Any, eager: Any, truth: Any) -> tuple[float, float]:
    """(largest absolute error of `value` against `truth`, the tolerance that eager's own error allows)."""
    return _error(value, truth), _tolerance(eager, truth)


def _bounds(eager: Values, truth: Values) -> list[_Bound]:
    return [_Bound(t, _tolerance(e, t)) for e, t in zip(eager, truth)]


def _tolerance(eager: Any, truth: Any) -> float:
    if not isinstance(eager, torch.Tensor) or not eager.numel():
        return 0.0
    if not (eager.is_floating_point() or eager.is_complex()):
        return 0.0
    scale = _reals(truth).abs().nan_to_num(0, 0, 0).max().item()
    ulp = torch.finfo(eager.dtype).eps * max(scale, torch.finfo(eager.dtype).tiny)
    return max(2 * _error(eager, truth), 4 * ulp)


def _error(value: Any, truth: Any) -> float:
    """Largest absolute difference; inf where one is NaN or infinite and the other is not the same."""
    if not isinstance(truth, torch.Tensor):
        return 0.0 if value == truth or (value is None and truth is None) else float("inf")
    if not isinstance(value, torch.Tensor) or value.shape != truth.shape:
        return float("inf")
    a, b = _reals(value), _reals(truth)
    same = (a == b) | (a.isnan() & b.isnan())
    apart = (a.double() - b.double()).abs().clamp_min(torch.finfo(torch.float64).tiny)
    difference = torch.where(same, 0.0, apart).nan_to_num(float("inf"), float("inf"))
    return difference.max().item() if difference.numel() else 0.0


def _reals(value: torch.Tensor) -> torch.Tensor:
    """The numbers to compare: floats in float64, complex ones as pairs; integers keep all their digits."""
    plain = value.detach().cpu()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    return plain.double() if plain.is_floating_point() else plain


def _check(
    name: str, part: str, target: str, bounds: list[_Bound], results: Sequence[Any]
) -> StageCheck:
    """The output that is worst in proportion to its bound."""
    errors = [(_error(r, b.truth), b.tolerance) for r, b in zip(results, bounds, strict=True)]
    worst = max(errors, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
    return StageCheck(name, part, target, worst[0], worst[1], len(errors))
