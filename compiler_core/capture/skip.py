"""Which frames are never captured, and why.

In: a code object. Out: the reason to leave it to eager for good, or None. Rules are rows of one
table, searched in order; what a skipped frame calls is still looked at, with one exception.
"""

from __future__ import annotations

import inspect
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

__all__ = ["ABOUT_LIBRARIES", "hides_what_it_calls", "reason_to_skip"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Frames for which `applies` are left to eager, for `reason`."""

    applies: Callable[[CodeType], bool]
    reason: str


def reason_to_skip(code: CodeType) -> str | None:
    """Why this code is never captured; None if it may be."""
    return next((rule.reason for rule in RULES if rule.applies(code)), None)


def hides_what_it_calls(code: CodeType) -> bool:
    """Operators that take functions: in eager they run torch's own compiler on them, and all that it needs."""
    return _lies_in(code.co_filename, str(Path(_torch_folder()) / "_higher_order_ops"))


def _is_suspended(code: CodeType) -> bool:
    kinds = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return bool(code.co_flags & (kinds | inspect.CO_ITERABLE_COROUTINE))


def _is_no_function(code: CodeType) -> bool:
    return not code.co_flags & inspect.CO_OPTIMIZED


def _is_comprehension(code: CodeType) -> bool:
    return code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>")


def _runs_natively(code: CodeType) -> bool:
    """They bear the name of the user's function, which logging and tracebacks show."""
    return code.co_qualname.startswith(("__step_at_", "__native_at_"))


def _is_frozen(code: CodeType) -> bool:
    return code.co_filename.startswith(("<frozen", "<__array_function__", "<guards of"))


def _is_named_tuple(code: CodeType) -> bool:
    """The constructor that `collections.namedtuple` writes."""
    return code.co_filename == "<string>" and "_tuple_new" in code.co_names


def _is_text_that_runs_once(code: CodeType) -> bool:
    return code.co_filename == "<string>" and code.co_name == "<module>"


def _is_ours(code: CodeType) -> bool:
    file = code.co_filename
    return (_lies_in(file, _OURS) and not _lies_in(file, _EXAMPLES)) or file.startswith("<cutaway ")


def _is_torch(code: CodeType) -> bool:
    """All of torch but the forward methods of its modules."""
    if not _lies_in(code.co_filename, _torch_folder()):
        return False
    layers = str(Path(_torch_folder()) / "nn" / "modules")
    is_layer = _lies_in(code.co_filename, layers) and not code.co_filename.endswith("/module.py")
    return not (is_layer and code.co_name == "forward")


def _is_standard_library(code: CodeType) -> bool:
    file = code.co_filename
    if "site-packages" in file or "dist-packages" in file:
        return False
    return any(_lies_in(file, folder) for folder in _STANDARD)


def _is_foreign(code: CodeType) -> bool:
    """Packages that hold no tensor programs, or that run while a compiled function is at work."""
    parts = Path(code.co_filename).parts
    if "site-packages" not in parts and "dist-packages" not in parts:
        return False
    where = max(n for n, part in enumerate(parts) if part in ("site-packages", "dist-packages"))
    package = parts[where + 1].removesuffix(".py")
    return package in FOREIGN or package.startswith("__editable__")  # finds modules for `import`


FOREIGN = frozenset(
    ("numpy", "_distutils_hack", "triton", "sympy", "bytecode", "IPython", "ipykernel", "jupyter_client", "traitlets",
     "tornado", "zmq", "debugpy", "pytest", "_pytest", "pluggy", "hypothesis", "typing_extensions",
     "tqdm", "rich", "filelock", "jinja2")
)  # fmt: skip

RULES = (
    Rule(_runs_natively, "made by the compiler to run one part of a function natively"),
    Rule(_is_frozen, "code without a source file belongs to Python, numpy or a guard"),
    Rule(_is_named_tuple, "the constructor of a named tuple, which is modelled"),
    Rule(_is_text_that_runs_once, "a text that exec() or eval() was given"),
    Rule(_is_ours, "the compiler's own code, or code that it wrote"),
    Rule(_is_torch, "torch's own code, but for the forward methods of its modules"),
    Rule(_is_standard_library, "the standard library holds no tensor programs"),
    Rule(_is_foreign, "a package that holds no tensor programs"),
    Rule(_is_comprehension, "a comprehension belongs to the function around it"),
    Rule(_is_suspended, "a generator or coroutine is suspended and resumed; its callers inline it"),
    Rule(_is_no_function, "the body of a class or module runs once"),
)

# Reasons that say nothing about the user's program: such frames are not counted as skipped.
ABOUT_LIBRARIES = frozenset(rule.reason for rule in RULES[:-2])

_OURS = str(Path(__file__).resolve().parents[1])
_EXAMPLES = f"{_OURS}/capture/break_examples"  # programs, to be compiled like the user's
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})


@lru_cache(maxsize=1)
def _torch_folder() -> str:
    spec = find_spec("torch")
    return str(Path(spec.origin).parent) if spec and spec.origin else "<no torch>"


def _lies_in(file: str, folder: str) -> bool:
    return file.startswith(folder + "/")
