"""Which sizes are symbolic: marks on tensors, and what changed between versions; guards on sizes.

In: a tensor and its source. Out: the dimensions that get a symbol. After the capture, the ShapeEnv's
guards become `shape` rows: readable conditions over `L['x'].size(0)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.sources import Source
from compiler_core.capture.symbolic import NoForm, text_of

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["SYMBOLIC_INT", "Hints", "guard_shapes"]

SYMBOLIC_INT = "it is a symbolic int"  # the reason of such a type guard
_MARKS = ("_cutaway_dynamic", "_dynamo_dynamic_indices")


@dataclass(slots=True)
class Hints:
    """Dimensions that differed from an earlier version: guard text of the source → dimensions."""

    changed: dict[str, frozenset[int]] = field(default_factory=dict)
    versions: int = 0  # of this frame, kept so far
    ints: frozenset[str] = frozenset()  # guard texts of ints that differed

    def is_symbolic(self, source: Source) -> bool:
        """Whether an int had another value in an earlier version."""
        return bool(self.ints) and source.guard() in self.ints

    def of(self, real: torch.Tensor, source: Source) -> tuple[int, ...]:
        """The symbolic dimensions of a tensor. Sizes 0 and 1 stay plain unless marked."""
        marked = frozenset[int]().union(*(getattr(real, mark, ()) for mark in _MARKS))
        changed = {d for d in self.changed.get(source.guard(), ()) if real.shape[d] >= 2}
        wanted = {dim % real.dim() for dim in marked if real.dim() and real.shape[dim] >= 2}
        return tuple(sorted(wanted | changed))


def guard_shapes(trace: Trace) -> None:
    """Add a `shape` guard for each condition that the ShapeEnv recorded."""
    places, numbers = trace.builder.sizes.places, trace.builder.sizes.numbers
    inputs = {entry.first_node: entry for entry in trace.builder.inputs}

    def size(symbol: Any) -> str:
        if symbol in numbers:
            return numbers[symbol][0].guard()
        node, dim, _ = places[symbol]
        return inputs[node].source.size(dim).guard()

    for guard in trace.builder.shape_env.guards:
        _add(trace, guard.expr, size, "a symbolic size was compared")


def _add(trace: Trace, expr: Any, size: Any, reason: str) -> None:
    from compiler_core.capture.breaks import CannotCapture

    try:
        text = text_of(expr, size)
    except (NoForm, KeyError) as error:
        raise CannotCapture(f"a condition on sizes that cannot be guarded: {error}") from None
    if text == "True":
        return
    trace.guards.add("shape", None, True, line=trace.where(), reason=reason, text=text)
