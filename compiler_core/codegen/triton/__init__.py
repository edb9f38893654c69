"""Triton kernels from fused nests: `generate_kernels`."""

from __future__ import annotations

from compiler_core.codegen.triton.kernel import generate_kernel
from compiler_core.ir.loop import Nest
from compiler_core.options import Context
from compiler_core.stages import Fused, KernelSource

__all__ = ["generate_kernels"]


def generate_kernels(fused: Fused, context: Context) -> tuple[KernelSource, ...]:
    """One kernel for each nest, in the order of the program.

    Raises InternalError (CC511) for an operation on a type that the table has no text for.
    """
    with context.recorder.phase("triton"):
        return tuple(
            generate_kernel(nest, fused) for nest in fused.program.body if isinstance(nest, Nest)
        )
