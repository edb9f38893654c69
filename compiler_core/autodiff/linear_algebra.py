"""`torch.linalg` functions that check their result, as operators that check it themselves.

In: a function of torch. Out: what the trace calls instead. torch makes each of these of two operators,
one that computes and one that only raises; a graph of values has no place for the second. The first one
can check too, so the error comes when the graph runs, as in eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["CHECKED"]

Tensor = torch.Tensor


def _inverse(input: Tensor) -> Tensor:
    result: Tensor = torch.linalg.inv_ex(input, check_errors=True)[0]
    return result


def _inv(A: Tensor) -> Tensor:
    return _inverse(A)


def _solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    result: Tensor = torch.linalg.solve_ex(A, B, left=left, check_errors=True)[0]
    return result


def _cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    result: Tensor = torch.linalg.cholesky_ex(input, upper=upper, check_errors=True)[0]
    return result


CHECKED: dict[Any, Callable[..., Tensor]] = {
    torch.linalg.inv: _inv,
    torch.inverse: _inverse,
    torch.linalg.solve: _solve,
    torch.linalg.cholesky: _cholesky,
}
