"""What one `compile()` call asked for, and which request is in force in a thread.

A frame's versions belong to the request they were compiled for: the request is a guard like any
other (`capture/guard_kinds.py`), compared by identity. Equal requests are one object.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import ref

from compiler_core.arguments import check_switch
from compiler_core.errors import (
    BAD_VALUE,
    BackendFailed,
    BackendNotFound,
    GraphBreakError,
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
    replaced: str = ""  # digest of the files of options.replace: an edit makes another request

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

    def shows(self, error: Exception) -> bool:
        """Does the user see this error of a compile? Else eager makes it good, with a recorded reason.

        Always under strict; else mistakes of the user, and what fails in files or backends of the user.
        """
        mistakes = (GraphBreakError, OptionError, BackendFailed)
        named_files = bool(self.options.replace)
        return self.options.strict or named_files or isinstance(error, mistakes)

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
    check_switch("fullgraph", fullgraph)
    if dynamic not in (None, True, False):
        raise OptionError(BAD_VALUE, f"dynamic takes None, True or False, not {dynamic!r}")
    if isinstance(backend, str) and backend not in BACKENDS:
        raise BackendNotFound(BAD_VALUE, f"unknown backend {backend!r}{closest(backend, BACKENDS)}")
    if not isinstance(backend, str) and not callable(backend):
        raise OptionError(
            BAD_VALUE, f"backend takes a name or a callable, not {type(backend).__name__}"
        )
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(BAD_VALUE, f"options takes a mapping, not {type(options).__name__}")
    check_mode(mode)
    checked = Options.of(options)
    return Request.of(checked, backend, fullgraph, dynamic, _digest_of_files(checked))


def _digest_of_files(options: Options) -> str:
    """Changes when a file that `replace` names does; a file that cannot be read is refused later."""
    digest = sha256()
    for path in options.replace.values():
        with suppress(OSError):
            digest.update(Path(path).read_bytes())
    return digest.hexdigest() if options.replace else ""
