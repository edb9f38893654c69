"""Tensors of the graph as the lowering sees them: a place in a buffer, not data.

In: fake tensors, whose sizes and strides are integers or SymInts. Out: `Operand`s over index
expressions. A view operator makes a new `Operand` on the same buffer and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from compiler_core.ir.dtypes import DType, stored_as
from compiler_core.ir.index import Index, from_sympy, index
from compiler_core.ir.loop import View
from compiler_core.provenance import NOWHERE, Origins

__all__ = [
    "LoweredValue", "Operand", "Refusal", "contiguous", "count", "index_of", "indices_of", "place_of", "type_of",
]  # fmt: skip


class Refusal(Exception):
    """A rule does not apply to this case; the operator becomes a library call with this reason."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor: `view` says where its elements lie, `through` which view operators led here.

    `number` is the value of every element, where that is known: nobody needs to read it then.
    """

    view: View
    dtype: DType
    device: str
    through: Origins = NOWHERE
    number: float | int | bool | None = None

    @property
    def shape(self) -> tuple[Index, ...]:
        return self.view.shape

    def seen_through(self, nodes: Origins) -> Operand:
        """The same place, reached through more nodes."""
        return replace(self, through=self.through | nodes)

    def selected(self, dim: int, place: Index) -> Operand:
        """The part at one place of a dimension, without that dimension."""
        view = self.view
        shape = (*view.shape[:dim], *view.shape[dim + 1 :])
        strides = (*view.strides[:dim], *view.strides[dim + 1 :])
        offset = view.offset + place * view.strides[dim]
        return replace(self, view=View(view.buffer, shape, strides, offset))

    def offset_at(self, positions: Sequence[Index]) -> Index:
        """The element offset at `positions`; sizes of 1 and missing leading dimensions broadcast."""
        aligned = positions[len(positions) - len(self.shape) :]
        offset = self.view.offset
        for size, stride, position in zip(self.shape, self.view.strides, aligned, strict=True):
            if size.constant != 1:
                offset = offset + position * stride
        return offset


# What a node of the graph is during the lowering: a tensor, a size, a number, or several of these.
LoweredValue: TypeAlias = Any


def index_of(size: int | torch.SymInt) -> Index:
    """A size of a fake tensor as an index expression."""
    return from_sympy(size.node.expr) if isinstance(size, torch.SymInt) else index(int(size))


def indices_of(sizes: Iterable[int | torch.SymInt]) -> tuple[Index, ...]:
    return tuple(index_of(size) for size in sizes)


def type_of(fake: torch.Tensor) -> DType:
    """The IR type of a fake tensor's elements."""
    return stored_as(fake.dtype)


def place_of(fake: torch.Tensor, buffer: str, offset: Index) -> View:
    """The layout that a fake tensor has, in `buffer` from `offset`."""
    return View(buffer, indices_of(fake.shape), indices_of(fake.stride()), offset)


def contiguous(shape: Sequence[Index]) -> tuple[Index, ...]:
    """Row-major strides."""
    strides: list[Index] = []
    step = index(1)
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def count(shape: Iterable[Index]) -> Index:
    """The number of positions in a space of this shape."""
    total = index(1)
    for size in shape:
        total = total * size
    return total
