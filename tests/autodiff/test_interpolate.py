"""`F.interpolate` by whole factors: eager's values, dtypes and strides, without gather or scatter; the rest is torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler_core.autodiff.functionalise import SUBSTITUTES
from compiler_core.autodiff.interpolate import interpolate

SHAPES = {
    (2, 3, 7): ("nearest", "nearest-exact", "linear"),
    (2, 3, 5, 4): ("nearest", "nearest-exact", "bilinear", "bicubic"),
    (2, 3, 1, 4): ("nearest", "bilinear"),
    (1, 2, 3, 4, 2): ("nearest", "trilinear"),
}
CASES = [(shape, mode) for shape, modes in SHAPES.items() for mode in modes]


def draw(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def error(value: torch.Tensor, truth: torch.Tensor) -> float:
    return (value.double() - truth).abs().max().item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("shape", "mode"), CASES, ids=str)
def test_values_dtypes_and_strides(shape: Any, mode: str, dtype: torch.dtype) -> None:
    x = draw(shape, dtype)
    for factor in (1, 2, 3, 4):
        sizes = [n * factor for n in shape[2:]]
        for given in ({"scale_factor": factor}, {"scale_factor": float(factor)}, {"size": sizes}):
            ours, eager = (f(x, mode=mode, **given) for f in (interpolate, F.interpolate))
            truth = F.interpolate(x.double(), mode=mode, **given)
            assert (ours.dtype, ours.shape, ours.stride()) == (
                eager.dtype, eager.shape, eager.stride(),
            )  # fmt: skip
            ulp = 4 * torch.finfo(dtype).eps * truth.abs().max().item()
            assert error(ours, truth) <= max(2 * error(eager, truth), ulp)


@pytest.mark.parametrize("factor", range(2, 60))
def test_nearest_reads_what_eager_reads(factor: int) -> None:
    """At 41, 47 and 55, 1 / factor rounds so that eager reads one element twice: torch's own function then."""
    x = torch.arange(50.0).reshape(1, 1, 50)
    assert torch.equal(interpolate(x, scale_factor=factor), F.interpolate(x, scale_factor=factor))


@pytest.mark.parametrize(
    "given",
    [
        {"scale_factor": 2, "mode": "bilinear", "align_corners": True},
        {"scale_factor": 2, "mode": "bilinear", "antialias": True},
        {"scale_factor": 1.5}, {"size": (7, 9), "mode": "bilinear"}, {"size": (2, 2)}, {"scale_factor": 2, "mode": "area"},
    ],
    ids=str,
)  # fmt: skip
def test_other_cases_are_torchs_own(given: Any) -> None:
    x = draw((2, 3, 5, 4))
    assert torch.equal(interpolate(x, **given), F.interpolate(x, **given))


def test_channels_last_stays_channels_last() -> None:
    x = draw((2, 3, 5, 4)).contiguous(memory_format=torch.channels_last)
    ours, eager = interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=2)
    assert torch.equal(ours, eager) and ours.stride() == eager.stride()


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_joint_graph_gathers_and_scatters_nothing(mode: str, staged: Any, monkeypatch: Any) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x.sin(), scale_factor=2, mode=mode)

    def operators() -> set[str]:
        joint = staged(fn, draw((2, 3, 5, 4)).requires_grad_()).joint
        return {str(n.target) for n in joint.graph.graph.nodes}

    assert not [op for op in operators() if "index" in op or "upsample" in op]
    monkeypatch.delitem(SUBSTITUTES, F.interpolate)
    assert "aten._unsafe_index.Tensor" in operators()
