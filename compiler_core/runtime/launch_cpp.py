"""A built library and a host program to a callable.

In: a `Generated` and the path of its library. Out: `call(args)` of the host program, with the kernels as
its globals: plain functions of C that take pointers and sizes (ctypes releases the interpreter's lock).
"""

from __future__ import annotations

import ctypes
import linecache
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from compiler_core.stages import HostProgram, KernelSource

__all__ = ["bind_host", "load_kernels"]


def load_kernels(kernels: Sequence[KernelSource], library: Path) -> dict[str, Any]:
    """The functions of a library by name. Raises OSError where it cannot be loaded."""
    loaded = ctypes.CDLL(str(library))
    functions: dict[str, Any] = {}
    for kernel in kernels:
        function = getattr(loaded, _symbol(kernel))
        function.restype = None
        function.argtypes = [
            ctypes.c_int64 if param.kind == "size" else ctypes.c_void_p for param in kernel.params
        ]
        functions[kernel.name] = function
    return functions


def _symbol(kernel: KernelSource) -> str:
    """The name of the C function that a source defines: the kernel's, unless C takes that word."""
    found = re.search(r"^void (\w+)\(", kernel.source, re.MULTILINE)
    return found[1] if found else kernel.name


def bind_host(host: HostProgram, names: dict[str, Any], label: str) -> Callable[[list[Any]], Any]:
    """The host program's `call`, with `names` among its globals. Tracebacks show its lines."""
    file = f"<{label}>"
    linecache.cache[file] = (len(host.source), None, host.source.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": label, **names}
    space |= {
        f"{name}_": function for name, function in names.items()
    }  # where the text needs `name`
    exec(compile(host.source, file, "exec"), space)
    call: Callable[[list[Any]], Any] = space["call"]
    return call
