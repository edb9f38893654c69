"""Facts: what a trace relied on, before it is turned into conditions.

In: a value, where it was found, and what about it mattered. Out: a `Fact`. `STATES` lists the facts
that have no source because torch itself holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler_core.capture.guard_predicates import (
    active_request,
    autocast_state,
    forward_ad_level,
    matmul_precision,
    torch_function_state,
)
from compiler_core.capture.sources import Source

__all__ = ["STATES", "Fact"]


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Something that the trace relied on: what was found at `source` when it was made."""

    kind: str
    source: Source | None
    value: Any
    line: str = ""
    reason: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    made: dict[Callable[[Any], Any], Any] = field(default_factory=dict)

    def once(self, make: Callable[[Any], Any]) -> Any:
        """`make(value)`, the same object each time, so that it is injected under one name."""
        if make not in self.made:
            self.made[make] = make(self.value)
        return self.made[make]

    @property
    def place(self) -> str:
        """The guarded expression as text, with its whole path."""
        if self.kind in STATES:
            return STATES[self.kind][0]
        if self.kind == "distinct":
            return f"({', '.join(source.guard() for source in self.value)})"
        return self.source.guard() if self.source is not None else str(self.data["text"])

    @property
    def dynamic(self) -> tuple[int, ...]:
        return tuple(self.data.get("dynamic", ()))


# kind: (the state as text, the state now, why it matters)
STATES: dict[str, tuple[str, Callable[[], Any], str]] = {
    "request": (
        "active_request()", active_request, "a version belongs to the options it was compiled with",
    ),
    "grad_mode": (
        "torch.is_grad_enabled()", torch.is_grad_enabled, "the graph was traced in this grad mode",
    ),
    "inference_mode": (
        "torch.is_inference_mode_enabled()", torch.is_inference_mode_enabled,
        "tensors made in inference mode have no autograd",
    ),
    "autocast": ("autocast_state()", autocast_state, "autocast changes the dtypes of operators"),
    "determinism": (
        "torch.are_deterministic_algorithms_enabled()", torch.are_deterministic_algorithms_enabled,
        "some operators are chosen by the determinism flag",
    ),
    "matmul_precision": (
        "matmul_precision()", matmul_precision, "the precision of matrix products was fixed at capture",
    ),
    "default_dtype": (
        "torch.get_default_dtype()", torch.get_default_dtype, "new tensors take the default dtype",
    ),
    "torch_function": (
        "torch_function_state()", torch_function_state,
        "a torch function mode sees every call of torch",
    ),
    "dispatch_modes": (
        "torch._C._len_torch_dispatch_stack()", torch._C._len_torch_dispatch_stack,
        "a dispatch mode sees every operator",
    ),
    "forward_ad": (
        "torch.autograd.forward_ad._current_level", forward_ad_level,
        "tensors may carry tangents of forward mode, which the graph does not compute",
    ),
}  # fmt: skip
