"""Fused kernels as C: one function each, in the subset of C that is also C++ but for `restrict`.

In: a `Fused` for a CPU. Out: a `KernelSource` per kernel. The text includes `vmath.h` and its kin, which
lie beside this file, and nothing else but C's own headers.
"""

from __future__ import annotations

from compiler_core.codegen.cpp.kernel import write_kernel
from compiler_core.ir.loop import Nest
from compiler_core.options import Context
from compiler_core.stages import Fused, KernelSource

__all__ = ["generate_kernels"]


def generate_kernels(fused: Fused, context: Context) -> tuple[KernelSource, ...]:
    """The kernels of a program, in the order in which it launches them."""
    threads = context.options.threads
    return tuple(
        write_kernel(item, fused, threads) for item in fused.program.body if isinstance(item, Nest)
    )
