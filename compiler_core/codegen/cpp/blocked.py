"""Pointwise kernels that read along one axis and write along another, in blocks.

In: a nest and the axis across. Out: loops over square blocks of that axis and the last one, and loops
inside a block. A block's lines stay in the first-level cache until all of their elements are used.

Before: for i: for j: y[n*i + j] = x[m*j + i].   After: for blocks of i and j: for i, j in the block: the same.
"""

from __future__ import annotations

from contextlib import ExitStack

from compiler_core.codegen.cpp.blocks import write_block
from compiler_core.codegen.cpp.kernel_text import KernelText
from compiler_core.codegen.cpp.loops import extent_of, loops, parallel, work_of
from compiler_core.ir.loop import Axis

__all__ = ["BLOCK", "write_blocked"]

BLOCK = 32  # 32 lines of 32 floats from either side: 8 KiB


def write_blocked(k: KernelText, across: Axis) -> None:
    """The whole nest."""
    last = k.nest.axes[-1]
    others = [axis for axis in k.nest.axes if axis not in (across, last)]
    heads = parallel(k, extent_of(k.nest.axes) * work_of(k.nest.body), collapse=len(k.nest.axes))
    with ExitStack() as stack:
        if others:
            stack.enter_context(loops(k, others, *heads))
        starts = []
        for number, axis in enumerate((across, last)):
            start = k.names.fresh(f"{k.names[axis.name]}_block")
            header = f"for (int64_t {start} = 0; {start} < {k.index(axis.extent)}; {start} += {BLOCK}) {{"
            first = heads if number == 0 and not others else ()
            stack.enter_context(k.writer.block(*first, header))
            starts.append(start)
        for axis, start in zip((across, last), starts):
            end = f"v_min_i64({start} + {BLOCK}, {k.index(axis.extent)})"
            simd = ["#pragma omp simd"] if axis is last else []
            name = k.names[axis.name]
            header = f"for (int64_t {name} = {start}; {name} < {end}; ++{name}) {{"
            stack.enter_context(k.writer.block(*simd, header))
        write_block(k, k.nest.body)
