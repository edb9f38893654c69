"""The compiler: PyTorch programs to machine code, every stage a value that can be held and run.

    import compiler_core as cc

    @cc.compile
    def f(x, y):
        return x.sin() + y.cos()

Importing this package is cheap; the stages are loaded at the first compile.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler_core.api import (
        compile,
        compile_module,
        disable,
        explain,
        mark_dynamic,
        mark_static,
        record,
        reset,
        set_logs,
        stats,
    )

__version__ = "0.1.0"

__all__ = [
    "compile", "compile_module", "disable", "explain", "mark_dynamic", "mark_static", "record", "reset", "set_logs", "stats",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("compiler_core.api"), name)
    raise AttributeError(f"module 'compiler_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
