"""Sizes that are symbols, zero or one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

D = torch.float64

PROGRAMS: dict[str, tuple[Any, list[str]]] = {
    "softmax": (lambda x: F.softmax(x, -1), ["row"]),
    "layer norm and gelu": (lambda x: F.gelu(F.layer_norm(x, (4,))), ["row"]),
    "flat and back": (lambda x: torch.exp((x * 2).reshape(-1)).reshape(-1, 4) + x, ["pointwise"]),
    "column sums": (lambda x: ((x * 2).sum(0), x.sum(0)), ["column"]),
    "sum of all": (lambda x: (x * x).sum(), ["row"]),
    "row sums": (lambda x: x - x.sum(1, keepdim=True), ["row"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dynamic", [True, False])
def test_sizes(fusing: SimpleNamespace, name: str, dynamic: bool) -> None:
    call, strategies = PROGRAMS[name]
    case = fusing.call(call, torch.randn(6, 4, dtype=D), dynamic=dynamic)
    assert case.kernels == strategies
    for rows in (6, 2, 1, 31, 0) if dynamic else (6,):
        case.check(torch.randn(rows, 4, dtype=D))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 4), (4, 1), (1, 1)])
def test_small_static_sizes(fusing: SimpleNamespace, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=D)
    call = lambda x: ((x * 2 + 1).sum(1), torch.exp(x).sum(0), x - x.sum(1, keepdim=True))  # noqa: E731
    fusing.call(call, x).check(x)


def test_a_kernel_names_the_sizes_that_it_needs(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: x.sum(1), torch.randn(6, 4), dynamic=True)
    (kernel,) = case.fused.kernels.values()
    assert kernel.symbols == tuple(case.fused.program.symbols)
    assert len(kernel.symbols) == 1
