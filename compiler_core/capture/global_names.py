"""Global names and imports of a frame: what they mean, and where they are found again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compiler_core.capture.break_kinds.calls import NOT_LOADED
from compiler_core.capture.breaks import Break, raise_real
from compiler_core.capture.sources import GLOBALS, Source, glob, module
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import is_none

if TYPE_CHECKING:
    from compiler_core.capture.frame import SymbolicFrame


__all__ = ["global_source", "global_value", "imported"]


def global_value(frame: SymbolicFrame, name: str) -> Value:
    """What a global name means in a frame. Raises Raised(NameError)."""
    trace = frame.trace
    written = trace.ledger.global_(frame.globals, name)
    if written is not None:
        return written
    is_deleted = trace.ledger.is_global_deleted(frame.globals, name)
    if name in frame.globals and not is_deleted:
        return trace.cached_global(frame, name)
    builtins = trace.view.builtins
    if name not in builtins:
        if frame.globals is trace.view.globals and not is_deleted:
            trace.guard("lacks_key", GLOBALS, frame.globals, "nothing has that name", key=name)
        raise raise_real(NameError(f"name {name!r} is not defined"))
    if frame.globals is trace.view.globals and not is_deleted:
        trace.guard("lacks_key", GLOBALS, frame.globals, "the builtin of that name is used", key=name)  # fmt: skip
    return trace.look(Lazy(builtins[name], trusted=True))


def global_source(frame: SymbolicFrame, name: str) -> Source | None:
    """Where a global of a frame is found again."""
    if frame.globals is frame.trace.view.globals:
        return glob(name)
    function = frame.function
    if function is None or function.trusted or function.globals_source is None:
        return None
    source: Source = function.globals_source.global_of(name)
    return source


def imported(frame: SymbolicFrame, name: str, level: int, names: Value) -> Value:
    """The module that an import statement binds; only modules that are loaded already."""
    if level:
        package = str(frame.globals.get("__package__") or "")
        base = package.rsplit(".", level - 1)[0] if level > 1 else package
        name = f"{base}.{name}" if name else base
    wanted = name if not is_none(names) else name.partition(".")[0]
    if name not in sys.modules or wanted not in sys.modules:
        raise Break(NOT_LOADED, name)
    return frame.trace.look(Lazy(sys.modules[wanted], source=module(wanted)))
