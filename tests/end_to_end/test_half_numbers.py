"""Half types and Python numbers in compiled functions: the numbers of eager, bit by bit."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from agreement import STRICT, compiling

import compiler_core as cc

FUNCTIONS = {
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "celu": lambda x: F.celu(x, 0.7),
    "remainder": lambda x: x % 0.7,
    "power of a number": lambda x: 1.3**x,
    "sum": lambda x: (x + 0.1) - 0.3,
    "comparison": lambda x: torch.where(x > 0.1, x, 0.1),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_of_half_types(name, dtype):
    fn = FUNCTIONS[name]
    compiled = cc.compile(fn, options=STRICT)
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), -0.0, 0.0, 0.3])
    with compiling(fallbacks=0):
        for size in (250, 64):
            x = torch.cat([special, torch.randn(size) * 3]).to(dtype)
            ours, eager = compiled(x), fn(x)
            assert torch.equal(ours.nan_to_num(9.0), eager.nan_to_num(9.0))
            assert torch.equal(ours.isnan(), eager.isnan())
