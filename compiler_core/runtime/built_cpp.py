"""A CPU graph, built: the callable, and the machine code of its kernels when asked for.

In: a `Generated` for a CPU. Out: a `Built`.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler_core.errors import closest
from compiler_core.options import Context
from compiler_core.runtime.assembly import assembly_of
from compiler_core.runtime.build_cpp import build_library
from compiler_core.runtime.launch_cpp import bind_host, load_kernels
from compiler_core.stages import Artifact, Built, Generated

__all__ = ["build_cpp"]


def build_cpp(generated: Generated, context: Context) -> Built:
    """Raises ToolMissing where there is no C compiler, InternalError where it refuses a kernel."""
    functions = _functions(generated, context) if generated.kernels else {}
    call = bind_host(generated.host, functions, f"cutaway {generated.part} {generated.target}")
    return Built(generated, call, _forms(generated))


def _functions(generated: Generated, context: Context) -> dict[str, object]:
    """The kernels, loaded. A library in the cache that does not load is built again, once."""
    path = build_library(generated, context)
    try:
        return load_kernels(generated.kernels, path)
    except (OSError, AttributeError) as error:
        context.recorder.decide(
            "cache", (), "damaged", f"{path} does not load ({error}): built again"
        )
        path.unlink(missing_ok=True)
        return load_kernels(generated.kernels, build_library(generated, context))


def _forms(generated: Generated) -> Callable[..., tuple[Artifact, ...]]:
    """`artifacts(name, lazy=False)`: machine code is made at the first lazy request and kept."""
    kernels = {kernel.name: kernel for kernel in generated.kernels}
    made: dict[str, Artifact] = {}

    def artifacts(name: str, lazy: bool = False) -> tuple[Artifact, ...]:
        if name not in kernels:
            raise KeyError(f"no kernel {name!r}{closest(name, kernels)}")
        if lazy and name not in made:
            made[name] = assembly_of(kernels[name])
        return (made[name],) if name in made else ()

    return artifacts
