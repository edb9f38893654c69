"""Constants: real objects that are immutable and compared by value or are singletons."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.capture.guard_predicates import NUMPY_NUMBERS
from compiler_core.capture.values.base import Value

__all__ = ["CONSTANT_TYPES", "NONE", "Constant", "is_constant", "is_none"]

CONSTANT_TYPES: tuple[type, ...] = (
    int, float, str, bool, type(None), bytes, complex, slice, range, type(...), type(NotImplemented),
    torch.dtype, torch.device, torch.layout, torch.memory_format, types.CodeType,
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Constant(Value):
    """A real immutable object."""

    real: Any

    def python_type(self) -> type:
        return type(self.real)

    def describe(self) -> str:
        text = repr(self.real)
        return text if len(text) < 40 else f"{text[:37]}..."


NONE = Constant(None)


def is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.real is None


def is_constant(real: Any) -> bool:
    """Whether the object may be held as a Constant. Subclasses of int, str … may not: they have state."""
    if type(real) is slice:
        return all(map(is_constant, (real.start, real.stop, real.step)))
    return type(real) in CONSTANT_TYPES or isinstance(real, NUMPY_NUMBERS)
