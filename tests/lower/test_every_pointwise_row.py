"""Every row of the element-wise table, over types, layouts and special values, against eager."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from row_cases import call_of, cases

from compiler_core.lower.pointwise import ROWS

aten = torch.ops.aten

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
TYPES = (*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool)
LAYOUTS = ("rows", "transposed", "expanded", "scalar", "empty", "strided", "special")

# Eager's scalar and vector loops disagree where these meet NaN.
FINITE_ONLY = {aten.hardtanh_backward.default}


def values(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if dtype.is_floating_point:
        return (torch.randn(shape, generator=generator) * 2).to(dtype)
    low, high = (0, 6) if dtype == torch.uint8 else (-5, 6)
    return torch.randint(low, high, shape, generator=generator, dtype=dtype)


def special(dtype: torch.dtype, seed: int) -> torch.Tensor:
    if not dtype.is_floating_point:
        return values((3, 4), dtype, seed)
    found = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -2.5, 20.0, -20.0, 3.0]
    return torch.tensor(found, dtype=dtype).roll(seed * 5).view(3, 4)


def laid_out(layout: str, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """A tensor of shape (3, 4) (or broadcast to it), in some layout."""
    match layout:
        case "transposed":
            return values((4, 3), dtype, seed).t()
        case "expanded":
            return (
                values((3, 1), dtype, seed).expand(3, 4) if seed % 2 else values((4,), dtype, seed)
            )
        case "scalar":
            return values((), dtype, seed)
        case "empty":
            return values((0, 4), dtype, seed)
        case "strided":
            return values((3, 8), dtype, seed)[:, 1::2]
        case "special":
            return special(dtype, seed)
    return values((3, 4), dtype, seed)


def tensors_of(
    op: Any, case: dict[str, Any], layout: str, dtype: torch.dtype, seed: int
) -> dict[str, Any]:
    """The tensor arguments of an operator that a case does not give."""
    found = {}
    for number, argument in enumerate(op._schema.arguments):
        kind = str(argument.type)
        if argument.name in case or "Tensor" not in kind:
            continue
        own = torch.bool if argument.name in ("condition", "mask") else dtype
        is_single = argument.name == "value"  # masked_fill's value has no dimensions
        found[argument.name] = laid_out("scalar" if is_single else layout, own, seed + number)
    return found


def accepts(kit: Any, call: Any, tensors: list[torch.Tensor]) -> bool:
    """Whether eager takes these types, on real and on fake tensors."""
    try:
        call(*tensors)
        kit.trace(call, *tensors)
    except (RuntimeError, NotImplementedError, TypeError):
        return False
    return True


@pytest.mark.parametrize("op", ROWS, ids=str)
def test_row_equals_eager(kit: Any, op: Any) -> None:
    generated = 0
    for case in cases(op):
        for dtype in TYPES:
            for layout in LAYOUTS if dtype == torch.float32 else ("rows", "special"):
                if layout == "special" and op in FINITE_ONLY:
                    continue
                first = tensors_of(op, case, layout, dtype, seed=1)
                call = call_of(op, list(first), case)
                tensors = list(first.values())
                if not accepts(kit, call, tensors):
                    continue
                second = list(tensors_of(op, case, layout, dtype, seed=5).values())
                others = [second] if accepts(kit, call, second) else []
                made = kit.check(call, *tensors, again=others)
                generated += not kit.calls(made)
    assert generated, "no case was generated"
