"""The measure of every float result: as good as eager, seen from more exact arithmetic."""

from __future__ import annotations

import torch

__all__ = ["assert_as_good_as_eager", "ulp"]


def ulp(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The distance of neighbouring numbers of a type at each value (denormal numbers included)."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(reference.abs().clamp(max=info.max))[1].double() - 1
    return torch.pow(2.0, exponent).clamp(min=info.smallest_normal) * info.eps


def assert_as_good_as_eager(
    got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor, of_scale: bool = False
) -> None:
    """Each element: error <= max(2 * eager's error, 4 ulp of the element), NaN where exact has it.

    `of_scale`: ulp of the largest element instead, for operators whose elements depend on each other.
    """
    assert got.dtype == eager.dtype and got.shape == eager.shape
    wide, rounded = got.double(), exact.to(got.dtype)
    assert torch.equal(wide.isnan(), rounded.isnan()), _where(
        wide.isnan() ^ rounded.isnan(), got, exact
    )
    finite = exact.nan_to_num(0.0, 0.0, 0.0) if of_scale else exact.nan_to_num()
    scale = finite.abs().max().expand_as(finite) if of_scale and finite.numel() else finite
    eager_error = (eager.double() - exact).abs().nan_to_num(0.0, 0.0)
    allowed = torch.maximum(2 * eager_error, 4 * ulp(scale, got.dtype))
    special = rounded.isnan() | (rounded.isinf() & (wide == rounded.double()))
    if got.dtype == torch.float64:  # `exact` is torch's own, whose sinh and cosh overflow early
        special |= exact.isinf() & (wide.abs() > 1e308) & (wide.sign() == exact.sign())
    wrong = ~special & ~((wide - exact).abs() <= allowed)
    assert not wrong.any(), _where(wrong, got, exact)


def _where(wrong: torch.Tensor, got: torch.Tensor, exact: torch.Tensor) -> str:
    at = wrong.flatten().nonzero().flatten()[:5]
    rows = [
        f"[{k}] {got.flatten()[k].item()!r} for {exact.flatten()[k].item()!r}" for k in at.tolist()
    ]
    return f"{int(wrong.sum())} wrong: {'; '.join(rows)}"
