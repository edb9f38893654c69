"""`F.softshrink` as eager computes it: half types in f32, rounded once; NaN stays; 0 is positive.

torch takes the function apart above autograd into a sign, a product and a difference, each of which
rounds half types, and whose product turns an infinity inside the band to NaN.
"""

from __future__ import annotations

import torch

__all__ = ["softshrink"]


def softshrink(input: torch.Tensor, lambd: float = 0.5) -> torch.Tensor:
    """Towards 0 by `lambd`, and 0 within it. `input`: floats of any shape; so is the result."""
    is_half = input.dtype in (torch.float16, torch.bfloat16)
    x = input.float() if is_half else input
    shrunk = torch.where(x > lambd, x - lambd, torch.where(x < -lambd, x + lambd, 0.0))
    return torch.where(x.isnan(), x, shrunk).to(input.dtype)
