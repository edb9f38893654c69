"""How each type is read, written and rounded: one row per type, names of functions of `vhalf.h`.

In: an IR type and C text. Out: C text. A variable of a small float holds a `float` whose value is
one of the type's, so a store only drops bits and a value rounds once, at its end.
"""

from __future__ import annotations

from functools import cache

import torch

from compiler_core.ir.dtypes import DType

__all__ = ["is_small_float", "loaded", "rounded", "stored"]

_SMALL = ("f16", "bf16", "f8e4m3", "f8e5m2")


def is_small_float(dtype: DType) -> bool:
    """Is it a float type that computes in `float` and rounds after each statement?"""
    return dtype.name in _SMALL


def loaded(element: str, dtype: DType) -> str:
    """The value of a stored element."""
    return f"v_from_{dtype}({element})" if is_small_float(dtype) else element


def stored(value: str, dtype: DType) -> str:
    """The element that stores a value."""
    return f"v_to_{dtype}({value})" if is_small_float(dtype) else value


def rounded(value: str, dtype: DType) -> str:
    """A `float` rounded to the type, where that is not `float`."""
    if not is_small_float(dtype):
        return value
    saturates = dtype.name == "f8e4m3" and _e4m3_saturates()
    return f"v_round_{dtype}{'_saturating' if saturates else ''}({value})"


@cache
def _e4m3_saturates() -> bool:
    """Does this version of torch make values beyond the type 448? Others make them NaN."""
    return not torch.tensor(1e9).to(torch.float8_e4m3fn).float().isnan().item()
