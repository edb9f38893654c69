"""Values of the symbolic stack.

A value holds the *real* Python object where that object cannot change behind our back (constants,
classes, modules, things we only name), a *model* where it can change or was made during the trace
(lists, dicts, cells, iterators, functions), or a graph node with a fake tensor. A value that came
from outside the frame has a source; looking at it is what makes guards (`resolve.py`).

Identity of a value object is identity of the Python object it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compiler_core.capture.sources import Source

__all__ = ["NULL", "Lazy", "Null", "Value", "python_type"]


@dataclass(slots=True, eq=False)
class Value:
    """Base of all values. `source` is None for what the trace itself made."""

    source: Source | None = field(default=None, kw_only=True)

    def python_type(self) -> type:
        """The class that `type(value)` gives."""
        raise NotImplementedError(type(self).__name__)

    def describe(self) -> str:
        """A few characters for the replay view and for messages."""
        return self.source.expr() if self.source else type(self).__name__


@dataclass(slots=True, eq=False)
class Null(Value):
    """CPython's NULL stack slot."""

    def describe(self) -> str:
        return "NULL"


NULL = Null()


@dataclass(slots=True, eq=False)
class Lazy(Value):
    """Something from outside that nobody has looked at: it has no guard yet."""

    real: Any
    resolved: Value | None = None
    trusted: bool = False  # reached through code that is taken as unchanging: never guarded

    def python_type(self) -> type:
        return type(self.real)


def python_type(value: Value) -> type:
    return value.python_type()
