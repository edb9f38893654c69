"""The table of contents: the stages in order, from a captured graph to code that runs.

In: a `Captured` and a context. Out: a `Compilation`, which holds every stage's value and the
callable that replaces the graph. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import fx

from compiler_core.autodiff import attach, partition, trace_joint
from compiler_core.codegen import generate
from compiler_core.extra_target import extra_target
from compiler_core.fuse import fuse
from compiler_core.lower import lower
from compiler_core.options import Context, Target
from compiler_core.passes import tidy
from compiler_core.runtime import build
from compiler_core.stages import Built, Captured, Fused, Generated, Joint, Lowered, Partitioned

__all__ = ["Compilation", "PartCode", "compile_captured", "compile_part"]


@dataclass(frozen=True, slots=True)
class PartCode:
    """One graph (`part` is "forward" or "backward") for one target, stage by stage."""

    lowered: Lowered
    fused: Fused
    generated: Generated
    built: Built


@dataclass(frozen=True, slots=True)
class Compilation:
    """Every stage's value of one version. `targets["cpu"]["forward"]` is a PartCode; the first target is called."""

    captured: Captured
    joint: Joint
    partitioned: Partitioned
    targets: dict[str, dict[str, PartCode]]
    call: Callable[..., tuple[Any, ...]]

    def part(self, part: str = "forward", target: str | None = None) -> PartCode:
        """The code of a part for a target (the one that is called, if none is named)."""
        parts = {t: list(code) for t, code in self.targets.items()}
        name = target or next(iter(self.targets))
        if name not in parts or part not in parts[name]:
            raise LookupError(f"no part {part!r} for target {name!r}; there are: {parts}")
        return self.targets[name][part]

    def __str__(self) -> str:
        """The names of what is held."""
        held = [f"{target}: {', '.join(parts)}" for target, parts in self.targets.items()]
        return f"compilation of {self.captured.name} for " + "; ".join(held)


def compile_captured(
    captured: Captured, targets: Sequence[Target], context: Context
) -> Compilation:
    """Run every stage after the capture, for each target; the first is the one that runs."""
    phase = context.recorder.phase
    with phase("joint"):
        joint = trace_joint(captured, context)  # forward and backward in one functional graph
        joint = replace(joint, graph=tidy(joint.graph, context))  # no shared or dead work goes on
    with phase("partition"):
        partitioned = partition(joint, context)  # what crosses to the backward: saved or recomputed
    first = compile_pair(partitioned, targets[0], context)  # the code that runs
    codes = {str(targets[0]): first}
    for target in targets[1:]:  # what is only looked at; when that fails, the first still runs
        with extra_target(str(target), context):
            codes[str(target)] = compile_pair(partitioned, target, context)
    backward = first["backward"].built.call if "backward" in first else None
    call = attach(partitioned, first["forward"].built.call, backward)
    return Compilation(captured, joint, partitioned, codes, call)


def compile_pair(partitioned: Partitioned, target: Target, context: Context) -> dict[str, PartCode]:
    """The forward graph, and the backward graph if there is one, for one target."""
    parts = parts_of(partitioned)
    return {part: compile_part(graph, part, target, context) for part, graph in parts}


def compile_part(graph: fx.GraphModule, part: str, target: Target, context: Context) -> PartCode:
    """An ATen graph to running code."""
    phase = context.recorder.phase
    with phase(f"lower {part} {target}"):
        lowered = lower(graph, part, target, context)  # a loop nest per operator, or a library call
    with phase(f"fuse {part} {target}"):
        fused = fuse(lowered, context)  # nests to kernels, buffers to memory
    with phase(f"codegen {part} {target}"):
        generated = generate(fused, context)  # kernels and host program as text
    with phase(f"build {part} {target}"):
        built = build(generated, context)  # text to machine code
    return PartCode(lowered, fused, generated, built)


def parts_of(partitioned: Partitioned) -> list[tuple[str, fx.GraphModule]]:
    """The graphs of a partitioned pair by name."""
    pair = [("forward", partitioned.forward), ("backward", partitioned.backward)]
    return [(name, graph) for name, graph in pair if graph is not None]
