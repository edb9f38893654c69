"""What one `compile()` call asked for, and which request is in force in a thread.

A frame's versions belong to the request they were compiled for: the request is a guard like any
other (`capture/guard_kinds.py`), compared by identity. Equal requests are one object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any
from weakref import ref

from compiler_core.options import Options

__all__ = ["ACTIVE", "Backend", "Request"]

Backend = Callable[[Any, list[Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Request:
    """`backend` is "cutaway", "eager" or a callable; `options` are checked."""

    options: Options
    backend: str | Backend = "cutaway"
    fullgraph: bool = False
    dynamic: bool | None = None

    @classmethod
    def of(cls, *parts: Any) -> Request:
        """The request with these parts, the same object for equal parts."""
        new = cls(*parts)
        alive = [request for reference in _known if (request := reference()) is not None]
        known = next((request for request in alive if request.parts == new.parts), new)
        if known is new:
            _known[:] = map(ref, [*alive, new])
        return known

    @property
    def parts(self) -> tuple[Any, ...]:
        """What makes two requests equal."""
        return self.options, self.backend, self.fullgraph, self.dynamic

    def __str__(self) -> str:
        """`compile(backend='eager', strict=True)`: what differs from a bare `compile()`."""
        plain = Request(Options())
        pairs: list[tuple[Any, Any, str]]
        pairs = [(self, plain, name) for name in ("backend", "fullgraph", "dynamic")]
        pairs += [(self.options, plain.options, f.name) for f in fields(Options)]
        texts = [f"{n}={getattr(a, n)!r}" for a, b, n in pairs if getattr(a, n) != getattr(b, n)]
        return f"compile({', '.join(texts)})"


_known: list[ref[Request]] = []  # a backend lives no longer than what it compiled


class _Active(threading.local):
    """The request in force in this thread."""

    def __init__(self) -> None:
        self.request = Request.of(Options())


ACTIVE = _Active()
