"""C kernels to a shared library.

In: a `Generated` for a CPU. Out: the path of one library with all its kernels, from the cache where it
can be. Kernels are C, whichever driver compiles them, and need nothing but C's own library.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from compiler_core.errors import NO_TOOL, InternalError, ToolMissing, register
from compiler_core.options import Context
from compiler_core.provenance import handle
from compiler_core.runtime.disk_cache import find_or_build
from compiler_core.runtime.keys import Key, machine
from compiler_core.stages import Generated, KernelSource

__all__ = ["FLAGS", "HEADERS", "build_library", "find_compiler", "translation_unit"]

# Measured on gcc 12: vector code for all of vmath.h needs the two -fno-: they only say that nobody reads
# errno or the exception flags. No contraction: a * b + c rounds twice, as in eager. Integers wrap.
FLAGS = (
    "-x", "c", "-std=c11", "-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math",
    "-ffp-contract=off", "-fwrapv", "-fPIC", "-shared",
)  # fmt: skip

# Beside the generator, which wrote the `#include`s; the kernels' text stays short for it.
HEADERS = Path(__file__).parents[1] / "codegen" / "cpp"

NOT_COMPILED = register(
    "CC601",
    "the C compiler refused a kernel",
    "Generated or replaced kernel text is not valid for this compiler.",
    "If options={'replace': ...} names this kernel, correct the file; otherwise report it.",
)


def build_library(generated: Generated, context: Context) -> Path:
    """The library of a graph's kernels.

    Raises ToolMissing where no compiler is found and InternalError (CC601) where it refuses.
    """
    compiler = find_compiler()
    unit = translation_unit(generated.kernels)
    key = Key.of(
        " ".join(kernel.name for kernel in generated.kernels),
        {
            "source": unit,
            "flags": " ".join(FLAGS),
            "compiler": _version(compiler, os.stat(compiler).st_mtime_ns),
            "headers": _headers_text(),
            "machine": machine(),
        },
    )
    about = [handle("fuse", f"{generated.part}/{kernel.name}") for kernel in generated.kernels]

    def build(path: Path) -> None:
        compile_c(unit, path, FLAGS, compiler)

    return find_or_build(key, build, about, context)


def translation_unit(kernels: Sequence[KernelSource]) -> str:
    """All kernels in one file; messages and line tables name the kernel and its own line."""
    return "\n".join(f'#line 1 "{kernel.name}.c"\n{kernel.source}' for kernel in kernels)


def find_compiler() -> str:
    """The path of a C compiler: $CXX or $CC, else the usual names. Raises ToolMissing (CC004)."""
    names = [
        os.environ.get("CXX", ""),
        "g++",
        "c++",
        "clang++",
        os.environ.get("CC", ""),
        "gcc",
        "cc",
    ]
    for name in names:
        path = shutil.which(name) if name else None
        if path:
            return path
    looked = ", ".join(dict.fromkeys(name for name in names if name))
    raise ToolMissing(NO_TOOL, f"no C or C++ compiler on PATH (looked for {looked})")


def compile_c(text: str, output: Path, flags: Sequence[str], compiler: str) -> None:
    """Compile a text to a file. Raises InternalError (CC601) with the first errors."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernels.c"
        source.write_text(text)
        command = [compiler, *flags, "-I", str(HEADERS), str(source), "-o", str(output), "-lm"]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise InternalError(NOT_COMPILED, _first_errors(result.stderr))


def _first_errors(messages: str) -> str:
    """The first three errors, with the names of the kernels that they are in."""
    lines = messages.splitlines()
    errors = [line for line in lines if re.search(r"\berror\b", line)][:3] or lines[:3]
    kernels = dict.fromkeys(m[1] for m in (re.match(r"(\w+)\.c:\d+", e) for e in errors) if m)
    return f"{', '.join(kernels) or 'kernels'}: {'; '.join(errors)}"


@lru_cache(maxsize=8)
def _version(compiler: str, changed: int) -> str:
    """What the compiler says of itself; `changed` is its file's time, so that an update is seen."""
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout


def _headers_text() -> bytes:
    return b"".join(path.read_bytes() for path in sorted(HEADERS.glob("*.h")))
