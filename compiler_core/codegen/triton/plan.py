"""The shape of one kernel, decided before a line is written.

In: a nest of `Fused`, its strategy, the buffers. Out: a `Plan`: which positions a program has, how inner
loops are covered (a tile at once, a loop over tiles, one position after another), whether offsets need
64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler_core.codegen.statement_handles import statements_of
from compiler_core.codegen.triton.configs import (
    Config,
    column_config,
    next_power_of_2,
    pointwise_config,
    row_config,
)
from compiler_core.ir.index import Index, index
from compiler_core.ir.loop import Axis, Block, Buffer, Load, Loop, Nest, Reduce, Store
from compiler_core.stages import Kernel

__all__ = ["InnerGroup", "Plan", "long_axes", "plan_kernel", "product"]

_LIMIT = 2**31


@dataclass(frozen=True, slots=True)
class InnerGroup:
    """All inner loops of one length. `persistent`: one tile covers the length, and is kept."""

    number: int
    numel: Index
    size: int
    persistent: bool
    is_wide: bool  # positions need 64 bits

    @property
    def suffix(self) -> str:
        return str(self.number) if self.number else ""

    @property
    def dim(self) -> str:
        return f"r{self.number}"

    @property
    def block(self) -> str:
        return f"RBLOCK{self.suffix}"

    @property
    def is_exact(self) -> bool:
        """Does a tile never reach beyond the length?"""
        length = self.numel.constant
        return length is not None and length % self.size == 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions. `xblock` 0: a program has one position. No groups: inner loops run one by one."""

    axes: tuple[Axis, ...]  # of the nest, those longer than 1
    xnumel: Index
    xblock: int
    groups: tuple[InnerGroup, ...]
    num_warps: int
    is_wide: bool

    @property
    def is_x_exact(self) -> bool:
        n = self.xnumel.constant
        return n is not None and n % max(self.xblock, 1) == 0

    @property
    def constants(self) -> dict[str, int]:
        blocks = {"XBLOCK": self.xblock} if self.xblock else {}
        return {**blocks, **{group.block: group.size for group in self.groups}}

    @property
    def grid(self) -> str:
        """The number of programs, an expression over the size symbols."""
        n, block = self.xnumel, max(self.xblock, 1)
        if n.constant is not None:
            return str(-(-n.constant // block))
        return str(n) if block == 1 else f"({n} + {block - 1}) // {block}"

    def group_of(self, axes: tuple[Axis, ...]) -> InnerGroup | None:
        """The group that covers a loop over these axes."""
        length = product(axes)
        return next((group for group in self.groups if group.numel is length), None)


def plan_kernel(nest: Nest, kernel: Kernel, buffers: Mapping[str, Buffer]) -> Plan:
    """The plan of a nest, by its strategy and sizes."""
    axes = long_axes(nest.axes)
    xnumel = product(nest.axes)
    lengths = _inner_lengths(nest.body) if kernel.strategy != "pointwise" else []
    configs = [_config(nest.body, kernel.strategy, xnumel, length) for length in lengths]
    if not configs:
        config = pointwise_config(xnumel.constant)
        return Plan(
            axes, xnumel, config.xblock, (), config.num_warps, _is_wide(nest, kernel, buffers)
        )
    xblock = min(config.xblock for config in configs)
    is_wide = _is_wide(nest, kernel, buffers)
    largest = _largest_factor(nest.body) if is_wide else 1
    groups = tuple(
        InnerGroup(
            n, length, config.rblock, config.persistent, is_wide and _is_long(length, largest)
        )
        for n, (length, config) in enumerate(zip(lengths, configs))
    )
    warps = max(config.num_warps for config in configs)
    return Plan(axes, xnumel, xblock, groups, warps, is_wide)


def product(axes: tuple[Axis, ...]) -> Index:
    """The number of positions of axes."""
    total = index(1)
    for axis in axes:
        total = total * axis.extent
    return total


def long_axes(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes that have more than one position, or may have."""
    return tuple(axis for axis in axes if axis.extent.constant != 1)


def _inner_lengths(body: Block) -> list[Index]:
    lengths = [product(s.axes) for s in body if isinstance(s, Reduce | Loop)]
    return list(dict.fromkeys(lengths))


def _config(body: Block, strategy: str, xnumel: Index, length: Index) -> Config:
    if strategy != "column":
        return row_config(xnumel.constant, length.constant)
    reductions = sum(isinstance(s, Reduce) and product(s.axes) is length for s in body)
    return column_config(xnumel.constant, length.constant, reductions)


def _is_wide(nest: Nest, kernel: Kernel, buffers: Mapping[str, Buffer]) -> bool:
    """Symbolic sizes are always 64 bits wide: a version compiled once must hold for any size."""
    used = [buffers[name] for name in {*kernel.reads, *kernel.writes}]
    spans = [_span(buffer) for buffer in used]
    sizes = [product(nest.axes), *_inner_lengths(nest.body)]
    padded = [None if n.constant is None else 2 * next_power_of_2(n.constant) for n in sizes]
    return any(n is None or n >= _LIMIT for n in [*spans, *padded])


def _is_long(length: Index, factor: int) -> bool:
    """Can a position along this length, times a number of an offset, leave 32 bits?"""
    n = length.constant
    return n is None or 2 * next_power_of_2(n) * factor >= _LIMIT


def _largest_factor(body: Block) -> int:
    """The largest number in any offset. Other factors are symbols, which are 64 bits wide anyway."""
    offsets = [s.offset for s in statements_of(body) if isinstance(s, Load | Store)]
    return max((_largest_number(e) for e in offsets), default=1)


def _largest_number(e: Index) -> int:
    own = abs(e.constant) if e.constant is not None else 1
    return max([own, *(_largest_number(child) for child in e.children)])


def _span(buffer: Buffer) -> int | None:
    """Elements from the first to the last one, None if symbolic."""
    last = 0
    for size, stride in zip(buffer.shape, buffer.strides):
        if size.constant is None or stride.constant is None:
            return None
        last += max(size.constant - 1, 0) * stride.constant
    return last + 1
