"""Fused programs as source text: C for CPUs, Triton for GPUs, and one host program in Python.

In: a `Fused`. Out: a `Generated`. Which language follows from the target; nothing else does.
"""

from __future__ import annotations

from compiler_core.codegen.host import host_program
from compiler_core.codegen.replacement import apply_replacements
from compiler_core.codegen.standalone import standalone
from compiler_core.options import Context
from compiler_core.stages import Fused, Generated, KernelSource

__all__ = ["generate", "standalone"]


def generate(fused: Fused, context: Context) -> Generated:
    """Kernels and host program. Raises OptionError where `options.replace` is not right."""
    kernels = _kernels(fused, context)
    kernels = apply_replacements(kernels, fused.part, context)
    host = host_program(fused, kernels)
    return Generated(kernels, host, fused.target, fused.part, fused.program)


def _kernels(fused: Fused, context: Context) -> tuple[KernelSource, ...]:
    """The generator of the target's language, imported when it is needed."""
    if fused.target.language == "cpp":
        from compiler_core.codegen import cpp

        return cpp.generate_kernels(fused, context)
    from compiler_core.codegen import triton

    return triton.generate_kernels(fused, context)
