"""Tensors and symbolic numbers: what the graph computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from compiler_core.capture.values.base import Value

__all__ = ["SymbolicNumber", "TensorValue"]


@dataclass(slots=True, eq=False)
class TensorValue(Value):
    """A tensor: the graph node that makes it and the fake tensor that describes it.

    An operation in place changes `node` to the newest version. `real` is the tensor itself for a
    graph input: only its metadata and Python attributes may be read.
    """

    node: fx.Node
    fake: torch.Tensor
    real: torch.Tensor | None = None

    def python_type(self) -> type:
        return type(self.real) if self.real is not None else torch.Tensor

    def describe(self) -> str:
        dtype = str(self.fake.dtype).removeprefix("torch.")
        shape = ", ".join(map(str, self.fake.shape))
        return f"{self.node.name}: {dtype}[{shape}]"


@dataclass(slots=True, eq=False)
class SymbolicNumber(Value):
    """An int, float or bool computed from symbolic sizes; `real` is a SymInt, SymFloat or SymBool.

    Or a float that changes between calls: `real` is a SymbolicFloat (`symbolic_floats.py`).
    """

    real: Any

    def python_type(self) -> type:
        return {torch.SymInt: int, torch.SymBool: bool}.get(type(self.real), float)

    def describe(self) -> str:
        return str(self.real)
