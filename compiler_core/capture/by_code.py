"""Facts about code objects, by identity, for as long as each one lives.

In: a code object. Out: what is known of it. Equal code objects may come from different files, so
equality is not asked; and nothing here keeps one alive, or programs that make functions would grow.
The values must not hold the code object either.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Generic, TypeVar

__all__ = ["ByCode"]

Value = TypeVar("Value")


class ByCode(Generic[Value]):
    """A mapping from code objects that drops an entry when its code object dies."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[CodeType], Value]] = {}

    def get(self, code: CodeType) -> Value | None:
        entry = self._known.get(id(code))
        return entry[1] if entry is not None and entry[0]() is code else None

    def put(self, code: CodeType, value: Value) -> Value:
        known, key = self._known, id(code)

        def drop(reference: weakref.ref[CodeType]) -> None:
            if key in known and known[key][0] is reference:
                del known[key]

        known[key] = weakref.ref(code, drop), value
        return value

    def made(self, code: CodeType, make: Callable[[CodeType], Value]) -> Value:
        """What is known of a code object; made at the first question."""
        known = self.get(code)
        return self.put(code, make(code)) if known is None else known

    def pop(self, code: CodeType) -> None:
        self._known.pop(id(code), None)

    def drop_if(self, is_stale: Callable[[Value], bool]) -> None:
        for key in [k for k, (_, value) in self._known.items() if is_stale(value)]:
            del self._known[key]

    def __len__(self) -> int:
        return len(self._known)
