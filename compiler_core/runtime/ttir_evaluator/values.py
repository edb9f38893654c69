"""What an SSA value is: a tensor with a leading axis for programs, or a pointer.

A value of TTIR type `tensor<128x64xf32>` is a torch tensor of shape [P or 1, 128 or 1, 64 or 1]: the first
axis runs over the programs of the chunk. Sizes of 1 are never expanded, so masks and offsets, which vary
along one axis, cost almost nothing. Integers are signless in MLIR; they are held as torch's signed types
and i1 as bool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "TYPES", "Pointer", "Results", "Value", "as_tensor", "expanded", "from_unsigned", "poison", "reshaped", "together", "unsigned",
    "where",
]  # fmt: skip

TYPES: dict[str, torch.dtype] = {
    "i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2,
}  # fmt: skip

_UNSIGNED = {
    torch.bool: np.uint8, torch.int8: np.uint8, torch.int16: np.uint16, torch.int32: np.uint32,
    torch.int64: np.uint64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pointer:
    """Element offsets into the memory of one argument. `element`: the type it points to."""

    base: str
    offset: Tensor
    element: str


Value: TypeAlias = Tensor | Pointer
Results: TypeAlias = Value | Sequence[Value]


def as_tensor(value: Value) -> Tensor:
    """A number; a pointer where one is not expected is an error of the evaluator."""
    if isinstance(value, Pointer):
        raise TypeError(f"a pointer into {value.base} where a number is expected")
    return value


def reshaped(value: Value, change: Callable[[Tensor], Tensor]) -> Value:
    """A change of shape, on numbers and pointers alike."""
    if isinstance(value, Pointer):
        return replace(value, offset=change(value.offset))
    return change(value)


def expanded(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """All axes of the TTIR type at their full size; the program axis stays."""
    return value.expand((value.shape[0], *shape))


def unsigned(value: Tensor) -> NDArray[Any]:
    """The bits of an integer as a numpy unsigned integer."""
    return value.contiguous().numpy().view(_UNSIGNED[value.dtype])


def from_unsigned(array: NDArray[Any], dtype: torch.dtype) -> Tensor:
    """The inverse of `unsigned`; bits that do not fit are dropped."""
    bits = np.ascontiguousarray(array.astype(_UNSIGNED[dtype]))
    return torch.from_numpy(bits.view(f"i{bits.dtype.itemsize}")).to(dtype)


def poison(dtype: torch.dtype) -> Tensor:
    """What a masked-off load without `other` gives: a value that shows when it is used."""
    if dtype.is_floating_point:
        return torch.tensor(float("nan")).to(dtype)
    return torch.tensor(True) if dtype is torch.bool else torch.tensor(-0x5B, dtype=dtype)


def where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """torch.where, on fp8 too."""
    if a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        bits = torch.where(condition, a.view(torch.int8), b.view(torch.int8))
        return bits.view(a.dtype)
    return torch.where(condition, a, b)


def together(*values: Tensor) -> tuple[Tensor, ...]:
    """All at the shape that they have together."""
    wide: tuple[Tensor, ...] = tuple(torch.broadcast_tensors(*values))  # type: ignore[no-untyped-call]
    return wide
