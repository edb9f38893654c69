"""Libraries whose functions are not followed, and the kind of break that a call of one is.

In: a callable, or a module's name. Out: its kind. They print, wait, look at the interpreter or at
the world outside; what the user can do about it depends on which.
"""

from __future__ import annotations

from typing import Any

from compiler_core.capture.break_kinds.autograd import AUTOGRAD, CHECKPOINT, INFERENCE
from compiler_core.capture.break_kinds.calls import (
    CLOCK,
    COMPILED,
    CONTROL_FLOW,
    COPIES,
    DISABLED,
    GLOBAL_STATE,
    INTROSPECTION,
    LIBRARY,
    NOT_LOADED,
    NUMPY,
    OTHER_RANDOM,
    SYSTEM,
    THREADS,
    TRANSFORM,
    UNKNOWN_CALL,
)
from compiler_core.capture.break_kinds.control_flow import COROUTINE
from compiler_core.capture.break_kinds.objects import WEAK
from compiler_core.capture.break_kinds.output import FILES, LOGS, SAVES, WARNS
from compiler_core.capture.break_kinds.values import TENSOR_TEXT
from compiler_core.errors import Kind

__all__ = ["kind_of_foreign", "kind_of_module"]


def _rows(kind: Kind, *modules: str) -> dict[str, Kind]:
    return dict.fromkeys(modules, kind)


# Python modules that are not followed, with all below them.
_NOT_FOLLOWED: dict[str, Kind] = {
    **_rows(LOGS, "logging"),
    **_rows(WARNS, "warnings"),
    **_rows(THREADS, "threading", "multiprocessing", "concurrent"),
    **_rows(COROUTINE, "asyncio"),
    **_rows(CLOCK, "time"),
    **_rows(SYSTEM, "os", "subprocess", "socket", "tempfile", "shutil", "pathlib", "ctypes"),
    **_rows(FILES, "io"),
    **_rows(OTHER_RANDOM, "random", "numpy.random"),
    **_rows(SAVES, "pickle", "torch.serialization"),
    **_rows(LIBRARY, "json", "re", "unittest"),
    **_rows(NOT_LOADED, "importlib"),
    **_rows(INTROSPECTION, "inspect", "traceback", "linecache", "pdb", "bdb"),
    **_rows(COPIES, "copy"),
    **_rows(WEAK, "weakref"),
    **_rows(NUMPY, "numpy"),
    **_rows(DISABLED, "compiler_core", "explorer"),
    **_rows(AUTOGRAD, "torch.autograd"),
    **_rows(INFERENCE, "torch.autograd.grad_mode"),
    **_rows(CHECKPOINT, "torch.utils.checkpoint"),
    **_rows(CONTROL_FLOW, "torch._higher_order_ops"),
    **_rows(TRANSFORM, "torch._functorch", "torch.func"),
    **_rows(COMPILED, "torch.jit", "torch._dynamo", "torch._inductor", "torch.compiler", "torch._compile"),
    **_rows(GLOBAL_STATE, "torch.random"),
    **_rows(TENSOR_TEXT, "torch._tensor_str"),
    **_rows(
        UNKNOWN_CALL, "torch.distributed", "torch.fx", "torch.export", "torch.cuda", "torch.profiler",
        "torch.utils.data", "torch.multiprocessing", "torch.hub", "torch.optim",
        "torch.utils._python_dispatch", "torch.overrides", "torch._ops",
    ),
}  # fmt: skip

# The C halves of those libraries, and C modules without one in Python.
_IN_C: dict[str, Kind] = {
    **_rows(WARNS, "_warnings"),
    **_rows(THREADS, "_thread", "_queue"),
    **_rows(COROUTINE, "_asyncio"),
    **_rows(CLOCK, "datetime"),
    **_rows(SYSTEM, "posix", "nt", "_socket"),
    **_rows(FILES, "_io"),
    **_rows(OTHER_RANDOM, "_random"),
    **_rows(SAVES, "_pickle", "marshal"),
    **_rows(LIBRARY, "_json", "_sre", "zlib", "_struct", "_hashlib", "_csv", "unicodedata"),
    **_rows(INTROSPECTION, "sys", "gc"),
    **_rows(WEAK, "_weakref"),
}

# What is followed although it lies among what is not.
_FOLLOWED = (
    "explorer.models",
    "explorer.programs",
    "compiler_core.capture.break_examples",
    "compiler_core.capture.in_python",
)


def kind_of_module(module: str) -> Kind | None:
    """The kind for Python functions of a module; None for modules that are followed."""
    if any(_is_within(module, example) for example in _FOLLOWED):
        return None
    return _longest(module, _NOT_FOLLOWED)


def kind_of_foreign(real: Any) -> Kind:
    """The kind for a callable that is not Python and has no rule."""
    owner = getattr(real, "__self__", None)
    makers = (real, owner, type(owner), type(real))
    modules = (getattr(maker, "__module__", None) for maker in makers)
    for module in modules:
        if isinstance(module, str) and (kind := kind_of_module(module) or _longest(module, _IN_C)):
            return kind
    return _longest(getattr(owner, "__name__", None) or "", _IN_C) or UNKNOWN_CALL


def _is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _longest(module: str, table: dict[str, Kind]) -> Kind | None:
    """The row of the module itself, or of the nearest package around it."""
    while module:
        if module in table:
            return table[module]
        module = module.rpartition(".")[0]
    return None
