"""Batch norm over a batch, and its gradient, from sums and element-wise operators.

In: (N, C, …) and the parameters of each channel. Out: what torch's operators give. The elements are computed in
float32 (float64 for its own), the sums over a channel in eager's accumulator: float64 on CPU, float32 elsewhere;
a channel has so many elements that the difference is seen.
Sources: Ioffe and Szegedy 2015; aten/src/ATen/native/Normalization.cpp (accumulators, dtypes of the statistics).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.autodiff.borrowed import decomposition_table

__all__ = ["batch_norm", "batch_norm_backward", "batch_norm_without_running"]

Tensor = torch.Tensor

_aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class _Channels:
    """How (N, C, …) is folded to one number per channel."""

    like: Tensor

    @property
    def count(self) -> Any:
        """Elements of a channel."""
        return self.like.numel() // self.like.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """What elements are computed in."""
        return torch.float32 if self.like.element_size() < 4 else self.like.dtype

    def total(self, x: Tensor) -> Tensor:
        """The sum over each channel, (C,), in eager's accumulator."""
        is_wide = self.like.device.type == "cpu" and self.like.dtype == torch.float32
        axes = [axis for axis in range(x.ndim) if axis != 1]
        return x.sum(axes, dtype=torch.float64 if is_wide else x.dtype)

    def spread(self, statistic: Tensor) -> Tensor:
        """(C,) as (C, 1, …), in the elements' type."""
        return statistic.to(self.dtype).reshape([-1] + [1] * (self.like.ndim - 2))


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """(result, mean, 1 / deviation, new running mean, new running variance) of `_native_batch_norm_legit_functional`."""
    if not training:
        whole = decomposition_table[_aten._native_batch_norm_legit_functional.default]
        given = (input, weight, bias, running_mean, running_var, training, momentum, eps)
        outputs: tuple[Tensor | None, ...] = whole(*given)
        return outputs
    channels = _Channels(input)
    count, x = channels.count, input.to(channels.dtype)
    mean = channels.total(x) / count
    centred = x - channels.spread(mean)
    var = channels.total(centred * centred) / count
    rstd = torch.rsqrt(var + eps)
    y = centred * channels.spread(rstd)
    y = y if weight is None else y * channels.spread(weight)
    y = y if bias is None else y + channels.spread(bias)
    saved = input.dtype if input.device.type == "cpu" else channels.dtype
    return (
        y.to(input.dtype), mean.to(saved), rstd.to(saved),
        _moved(running_mean, mean, momentum),
        _moved(running_var, var * (count / (count - 1)), momentum),
    )  # fmt: skip


def batch_norm_without_running(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """(result, mean, 1 / deviation) of `_native_batch_norm_legit.no_stats`."""
    return batch_norm(input, weight, bias, None, None, training, momentum, eps)[:3]


def _moved(running: Tensor | None, statistic: Tensor, momentum: float) -> Tensor | None:
    if running is None:
        return None
    return (momentum * statistic + (1 - momentum) * running).to(running.dtype)


def batch_norm_backward(
    grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, save_mean: Tensor | None, save_invstd: Tensor | None, train: bool,
    eps: float, output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Gradients of input, weight and bias, those that the mask asks for."""
    if not train:
        whole = decomposition_table[_aten.native_batch_norm_backward.default]
        outputs: tuple[Tensor | None, ...] = whole(
            grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
        )  # fmt: skip
        return outputs
    assert save_mean is not None and save_invstd is not None
    channels = _Channels(input)
    grad, rstd = grad_out.to(channels.dtype), save_invstd.to(channels.dtype)
    centred = input.to(channels.dtype) - channels.spread(save_mean)
    total, along = channels.total(grad), channels.total(grad * centred)
    scale = rstd if weight is None else rstd * weight.to(channels.dtype)
    count, parameter = channels.count, input.dtype if weight is None else weight.dtype
    shared = channels.spread(total / count)
    tilt = channels.spread(along / count * rstd * rstd)
    made = (
        ((grad - centred * tilt - shared) * channels.spread(scale)).to(input.dtype),
        (along * rstd).to(parameter),
        total.to(parameter),
    )
    return tuple(value if wanted else None for value, wanted in zip(made, output_mask))
