"""`F.interpolate` by whole factors, from views and element-wise operators.

In: the arguments of `F.interpolate`. Out: the same values. Torch traces it as a gather, whose derivative
is a scatter. By a whole factor neither is needed: output `k * y + p` reads input `y` and at most one
neighbour, with a weight that only the phase `p` decides: the result is a stack of phases seen as one axis.
Other cases go to torch's own function.
Sources: the documented formula of torch.nn.Upsample; aten/src/ATen/native/UpSample.h (how indices round).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from torch.nn import functional as F

__all__ = ["interpolate"]

Tensor = torch.Tensor

_NEAREST = ("nearest", "nearest-exact")
_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """`F.interpolate`: (N, C, …) to `size`, or by `scale_factor`, in any of its modes."""
    factors = _whole_factors(input, size, scale_factor)
    if factors is None or antialias or not input.is_contiguous():
        return F.interpolate(
            input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
        )
    if mode in _NEAREST and all(map(_is_repeated, [mode] * len(factors), input.shape[2:], factors)):
        return _repeated(input, factors)
    is_linear = mode == _LINEAR.get(input.ndim) and not align_corners
    if is_linear and input.is_floating_point() and all(map(_is_power_of_two, factors)):
        return _blended(input, factors)
    return F.interpolate(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
    )


def _whole_factors(input: Tensor, size: Any, scale_factor: Any) -> list[int] | None:
    """How often each axis is repeated; None unless all are whole numbers known now."""
    given = scale_factor if size is None else size
    listed = list(given) if isinstance(given, (list, tuple)) else [given] * (input.ndim - 2)
    if len(listed) != input.ndim - 2 or not all(isinstance(x, (int, float)) for x in listed):
        return None
    if size is not None:
        lengths = input.shape[2:]
        if not all(isinstance(n, int) and n and new % n == 0 for n, new in zip(lengths, listed)):
            return None
        listed = [new // n for n, new in zip(lengths, listed)]
    return [int(k) for k in listed] if all(k >= 1 and int(k) == k for k in listed) else None


def _is_power_of_two(factor: int) -> bool:
    """Then the weights of eager, `scale * (i + 0.5) - 0.5` less its floor, are exact."""
    return factor & (factor - 1) == 0


def _is_repeated(mode: str, length: Any, factor: int) -> bool:
    """Whether eager reads element `i // factor` at every `i`.

    "nearest" multiplies by 1 / factor in float32, which may round below a whole number.
    """
    if mode == "nearest-exact" or _is_power_of_two(factor):
        return True
    if not isinstance(length, int):
        return False
    places = numpy.arange(length * factor)
    found = numpy.floor(places.astype(numpy.float32) * numpy.float32(1 / factor))
    return bool((found == places // factor).all())


def _repeated(x: Tensor, factors: Sequence[int]) -> Tensor:
    """Every element `factor` times along each axis."""
    apart, wide = list(x.shape[:2]), list(x.shape[:2])
    for length, factor in zip(x.shape[2:], factors):
        apart += [length, 1]
        wide += [length, factor]
    whole = [length * factor for length, factor in zip(x.shape[2:], factors)]
    return x.reshape(apart).expand(wide).reshape([*x.shape[:2], *whole])


def _blended(x: Tensor, factors: Sequence[int]) -> Tensor:
    """Linear along each axis, the last first as in eager; half types compute in float32 and round once."""
    wide = x.to(torch.float32) if x.element_size() < 4 else x
    for axis in reversed(range(2, x.ndim)):
        if factors[axis - 2] > 1:
            wide = _blended_along(wide, axis, factors[axis - 2])
    return wide.to(x.dtype)


def _blended_along(x: Tensor, axis: int, factor: int) -> Tensor:
    """Phase `p` lies `(p + 0.5) / factor - 0.5` beyond its element, on the way to one neighbour."""
    length = x.shape[axis]
    ends = x.narrow(axis, 0, 1), x.narrow(axis, length - 1, 1)
    before = torch.cat([ends[0], x.narrow(axis, 0, length - 1)], axis)
    after = torch.cat([x.narrow(axis, 1, length - 1), ends[1]], axis)
    phases = []
    for phase in range(factor):
        beyond = (phase + 0.5) / factor - 0.5
        neighbour = before if beyond < 0 else after
        phases.append(x * (1 - abs(beyond)) + neighbour * abs(beyond) if beyond else x)
    blended = torch.stack(phases, axis + 1)
    return blended.reshape([*x.shape[:axis], length * factor, *x.shape[axis + 1 :]])
