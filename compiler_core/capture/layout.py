"""May this code object run in another's frame?

In: the intercepted code and its replacement. Out: what would make the interpreter crash or lose an
argument, as a sentence; empty when nothing does. The C side copies arguments by position and free
variables by number without looking.
"""

from __future__ import annotations

import inspect
from types import CodeType

__all__ = ["layout_fault"]

_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def layout_fault(original: CodeType, new: CodeType) -> str:
    """How the argument layout or the free variables of `new` differ from the original's."""
    for name in ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_freevars"):
        ours, theirs = getattr(new, name), getattr(original, name)
        if ours != theirs:
            return f"{name} is {ours!r}, the frame has {theirs!r}"
    if (new.co_flags ^ original.co_flags) & _STARS:
        return "*args or **kwargs differ from the frame's"
    if (new.co_flags ^ original.co_flags) & inspect.CO_GENERATOR:
        return "one is a generator, the other is not"
    return ""
