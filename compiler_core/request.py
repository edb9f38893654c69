"""What one `compile()` call asked for, and which request is in force in a thread.

A frame's versions belong to the request they were compiled for: the request is a guard like any
other (`capture/guard_kinds.py`), compared by identity. Equal requests are one object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from weakref import ref

from compiler_core.errors import (
    BAD_VALUE,
    NOT_YET,
    BackendNotFound,
    NotSupportedYet,
    OptionError,
    closest,
)
from compiler_core.options import Options, check_mode

__all__ = ["ACTIVE", "BACKENDS", "Backend", "Request", "checked_request"]

BACKENDS = ("cutaway", "eager")

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


def checked_request(
    fullgraph: bool,
    dynamic: bool | None,
    backend: str | Callable[..., Any],
    mode: str | None,
    options: Mapping[str, Any] | None,
) -> Request:
    """The request that these arguments of `compile` make. Raises OptionError, BackendNotFound, NotSupportedYet."""
    for name, value in (("fullgraph", fullgraph), ("dynamic", bool(dynamic))):
        if not isinstance(value, bool):
            raise OptionError(BAD_VALUE, f"{name} takes True or False, not {value!r}")
    if dynamic is not None:
        raise NotSupportedYet(
            NOT_YET, "dynamic=True and dynamic=False; mark sizes with mark_dynamic(x, dim)"
        )
    if isinstance(backend, str) and backend not in BACKENDS:
        raise BackendNotFound(BAD_VALUE, f"unknown backend {backend!r}{closest(backend, BACKENDS)}")
    if not isinstance(backend, str) and not callable(backend):
        raise OptionError(
            BAD_VALUE, f"backend takes a name or a callable, not {type(backend).__name__}"
        )
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(BAD_VALUE, f"options takes a mapping, not {type(options).__name__}")
    check_mode(mode)
    return Request.of(Options.of(options), backend, fullgraph, dynamic)
