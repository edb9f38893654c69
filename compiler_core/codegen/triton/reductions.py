"""One row per reduction of the loop IR: how it starts, how it combines, in which type.

In: kind and dtypes. Out: the accumulator's type, its start, the combine function. All of them fold with
`tl.reduce` and a helper: `tl.max` and `tl.argmax` lose NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from compiler_core.codegen.triton.casts import held
from compiler_core.ir.dtypes import DTYPES, DType

__all__ = ["FOLDS", "Fold", "fold_of"]


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction of one type: `combine` is a helper, `start` the text of its neutral element."""

    combine: str
    start: str
    dtype: DType  # of the accumulator
    has_index: bool = False

    @property
    def is_compensated(self) -> bool:
        """Whether a loop keeps what its additions round away. f64 has digits to spare."""
        return self.combine == "add" and held(self.dtype) == "tl.float32"


FOLDS = {
    "sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum",
    "argmax": "argmax", "argmin": "argmin", "any": "bit_or", "all": "bit_and",
}  # fmt: skip

_OF_BOOL = {"maximum": "bit_or", "minimum": "bit_and"}


def fold_of(kind: str, value: DType, result: DType) -> Fold:
    """How to fold values of type `value`. sum and prod accumulate in `result`, others in `value`.

    Types narrower than 32 bits, bool too, fold in i32: warp shuffles move 32 bits.
    """
    combine = FOLDS[kind]
    dtype = result if kind in ("sum", "prod") else value
    if dtype.name == "bool":
        combine = _OF_BOOL.get(combine, combine)
    narrow = not dtype.is_float and dtype.bytes < 4
    dtype = DTYPES["i32"] if narrow else dtype
    return Fold(combine, _start(combine, dtype), dtype, kind.startswith("arg"))


def _start(combine: str, dtype: DType) -> str:
    if combine in ("add", "bit_or"):
        return "0.0" if dtype.is_float else "0"
    if combine in ("multiply", "bit_and"):
        return "1.0" if dtype.is_float else "1"
    lowest = combine.endswith("max") or combine == "maximum"
    if dtype.is_float:
        return f'float("{"-inf" if lowest else "inf"}")'
    info = torch.iinfo(getattr(torch, held(dtype).removeprefix("tl.")))
    return str(info.min if lowest else info.max)
