"""Generated text to running code.

In: a `Generated`. Out: a `Built`. Which builder follows from the target's language.
"""

from __future__ import annotations

from compiler_core.options import Context
from compiler_core.stages import Built, Generated

__all__ = ["build"]


def build(generated: Generated, context: Context) -> Built:
    """Build all kernels of a graph. Raises ToolMissing where the compiler for them is missing."""
    if generated.target.language == "cpp":
        from compiler_core.runtime.built_cpp import build_cpp

        return build_cpp(generated, context)
    from compiler_core.runtime.build_triton import build_triton

    return build_triton(generated, context)
