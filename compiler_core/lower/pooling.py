"""Average pooling and its derivative: the few elements of a window, added where they lie.

In: `avg_pool2d` (…, H, W) or its backward. Out: one element-wise nest. The window is written out, an
element a load, so that it fuses like any other formula; a large window is a library call. The
derivative reads the results whose windows hold a position: nothing is scattered, no two positions meet.
Sources: the documented formula of torch.nn.AvgPool2d (`ceil_mode`, `count_include_pad`, `divisor_override`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import Index, index, maximum, minimum
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, indices_of
from compiler_core.lower.reductions import accumulator
from compiler_core.lower.scalars import I64, Scalar, cast

__all__ = ["TABLE", "Window"]

aten = torch.ops.aten

# more elements than this, and a loop of the library is as fast
_WINDOW_LIMIT = 25


@dataclass(frozen=True, slots=True)
class Window:
    """How a window moves over one dimension: `kernel` elements from `position * stride - padding` on."""

    kernel: int
    stride: int
    padding: int
    size: Index  # of the input
    results: Index  # how many windows there are
    is_ceiling: bool  # the last window may reach past the padding

    def start(self, position: Index) -> Index:
        return position * self.stride - self.padding

    def covers(self, position: Index, counts_padding: bool) -> Index:
        """How many elements of a window count."""
        start = self.start(position)
        if counts_padding:
            return minimum(start + self.kernel, self.size + self.padding) - start
        return minimum(start + self.kernel, self.size) - maximum(start, index(0))

    def is_regular(self, counts_padding: bool) -> bool:
        """Whether every window counts the same number of elements."""
        return not self.is_ceiling and (counts_padding or self.padding == 0)

    def elements(self, nest: NestBuilder, position: Index) -> Iterator[tuple[Index, list[Scalar]]]:
        """Each element of a window, with the conditions under which it exists."""
        for number in range(self.kernel):
            at = self.start(position) + number
            bounds = [nest.position(at, I64) >= 0] if number < self.padding else []
            if self.padding or self.is_ceiling:
                bounds.append(nest.position(at - self.size, I64) < 0)
            yield at, bounds

    def holders(self, nest: NestBuilder, place: Index) -> Iterator[tuple[Index, list[Scalar]]]:
        """Each window that holds an element, in ascending order, with its conditions."""
        last = (place + self.padding) // self.stride
        for back in reversed(range(-(-self.kernel // self.stride))):
            at = last - back
            bounds = [nest.position(at - self.results, I64) < 0]
            bounds += [nest.position(at, I64) >= 0] if back else []
            if (back + 1) * self.stride > self.kernel:
                bounds.append(nest.position(place - self.start(at) - self.kernel, I64) < 0)
            yield at, bounds


@dataclass(frozen=True, slots=True)
class Average:
    """The windows of the two pooled dimensions, and what their sums are divided by."""

    windows: tuple[Window, Window]
    counts_padding: bool
    divisor: int | None

    def over_count(self, total: Scalar, positions: Sequence[Index]) -> Scalar:
        """A sum, or one gradient, over the count of the window at `positions`."""
        if self.divisor:
            return total / self.divisor
        down, across = self.windows
        if all(w.is_regular(self.counts_padding) for w in self.windows):
            return total / (down.kernel * across.kernel)
        counts = [w.covers(p, self.counts_padding) for w, p in zip(self.windows, positions)]
        count = maximum(
            counts[0] * counts[1], index(1)
        )  # 1 beyond the last window, which is masked
        return total / total.nest.position(count, total.dtype)


def _average(given: dict[str, Any], source: Sequence[Index], results: Sequence[Index]) -> Average:
    """The arguments of an operator. Raises Refusal for a large window, or one of symbolic padding."""
    kernel, padding = _pair(given["kernel_size"]), _pair(given["padding"])
    stride = _pair(given["stride"] or kernel)
    if kernel[0] * kernel[1] > _WINDOW_LIMIT:
        raise Refusal(f"a window of {kernel[0]} by {kernel[1]} is a loop of the library")
    down, across = (
        Window(*numbers, source[d], results[d], given["ceil_mode"])
        for d, numbers in zip((-2, -1), zip(kernel, stride, padding))
    )
    return Average((down, across), given["count_include_pad"], given["divisor_override"])


def _pair(numbers: Any) -> tuple[int, int]:
    listed = [
        index(n).constant for n in (numbers if isinstance(numbers, (list, tuple)) else [numbers])
    ]
    if None in listed:
        raise Refusal("a window whose sizes are symbols")
    first, last = listed[0], listed[-1]
    assert first is not None and last is not None
    return first, last


def _computed_in(operand: Operand) -> DType:
    if operand.dtype.name not in DTYPES or not operand.dtype.is_float:
        raise Refusal(f"no kernel averages {operand.dtype}")
    return accumulator(operand.dtype)


def _sum(
    nest: NestBuilder, source: Operand, dtype: DType, places: Sequence[Any], average: Average | None
) -> Scalar:
    """Elements at every pair of places, added; each over the count of its window if one is given."""
    total: Scalar | None = None
    for (row, above), (column, beside) in product(*places):
        mask: Scalar | None = None
        for bound in (*above, *beside):
            mask = bound if mask is None else mask & bound
        x = cast(nest.load(source, [*nest.positions[:-2], row, column], mask), dtype)
        x = average.over_count(x, (row, column)) if average else x
        total = x if total is None else total + x
    assert total is not None
    return total


def lower_avg_pool(env: Environment, node: fx.Node) -> Operand:
    """The sum of each window over its count."""
    given = env.arguments(node)
    source: Operand = given["self"]
    dtype, shape = _computed_in(source), indices_of(node.meta["val"].shape)
    average = _average(given, source.shape, shape)
    with env.nest(node, shape) as nest:
        at = nest.positions[-2:]
        places = [list(w.elements(nest, p)) for w, p in zip(average.windows, at)]
        total = _sum(nest, source, dtype, places, None)
        return env.store(nest, node, average.over_count(total, at))


def lower_avg_pool_backward(env: Environment, node: fx.Node) -> Operand:
    """For each element the gradients of the windows that hold it, each over its window's count."""
    given = env.arguments(node)
    grad: Operand = given["grad_output"]
    dtype, shape = _computed_in(grad), indices_of(node.meta["val"].shape)
    average = _average(given, shape, grad.shape)
    with env.nest(node, shape) as nest:
        at = nest.positions[-2:]
        places = [list(w.holders(nest, p)) for w, p in zip(average.windows, at)]
        return env.store(nest, node, _sum(nest, grad, dtype, places, average))


TABLE: dict[Any, Any] = {
    aten.avg_pool2d.default: lower_avg_pool,
    aten.avg_pool2d_backward.default: lower_avg_pool_backward,
}
