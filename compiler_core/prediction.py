"""`would_recompile`: would this call compile, and which guards say so? Nothing is compiled or run.

In: a function or module, its request and the arguments of a call. Out: a `Prediction`. Also the choice
of the closest entry, which the reason of a recompile names: the one with the fewest failing rows.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compiler_core.capture.frames import Entry
from compiler_core.capture.guard_explain import BEHIND, sentence
from compiler_core.frame_memory import memory_of
from compiler_core.guard_words import spoken
from compiler_core.request import ACTIVE, Request
from compiler_core.stages import GuardRow

__all__ = ["Failure", "Prediction", "closest_failures", "is_of", "predict"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A guard that does not hold: its row, and what was found instead of `row.expected`."""

    row: GuardRow
    actual: str

    def __str__(self) -> str:
        return spoken(sentence(self.row, self.actual))


@dataclass(frozen=True, slots=True, repr=False)
class Prediction:
    """What a call would do; true if it would compile.

    `failures`: the guards of the closest of `entries` versions that do not hold. Only the function's
    own frame is looked at: what it calls, and what comes after a graph break, has guards of its own.
    """

    would_compile: bool
    entries: int
    failures: tuple[Failure, ...] = ()
    left: str = ""  # why the function runs in eager from now on

    def __bool__(self) -> bool:
        return self.would_compile

    def __str__(self) -> str:
        if self.left:
            return f"runs in eager: {self.left}"
        if not self.would_compile:
            return f"runs a compiled version ({self.entries} in all)"
        if not self.entries:
            return "compiles: nothing was compiled yet"
        which = "the one version does not fit: it"
        if self.entries > 1:
            which = f"none of the {self.entries} versions fits: the closest"
        return "\n".join([f"compiles: {which} fails at", *(f"  {row}" for row in self.failures)])

    __repr__ = __str__


def is_of(entry: Entry, request: Request) -> bool:
    """Was this version compiled for this request? (Its guard holds the request itself.)"""
    return any(value is request for value in entry.guard_table.namespace.values())


def closest_failures(entries: Sequence[Entry], locals_: dict[str, Any]) -> list[Failure]:
    """The failing rows of the entry that has the fewest; none where there is no entry."""
    return min((_failures(entry, locals_) for entry in entries), key=len, default=[])


def _failures(entry: Entry, locals_: dict[str, Any]) -> list[Failure]:
    verdicts = entry.guard_table.explain(locals_)
    failed = [Failure(row, a) for row, holds, a in verdicts if not holds and a != BEHIND]
    return failed or [Failure(entry.guard_table.rows[0], "a guard that holds on its own")]


def predict(
    fn: Callable[..., Any],
    request: Request,
    entries_of: Callable[[types.CodeType], list[Entry]],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Prediction:
    """What `fn(*args, **kwargs)` would do. Raises TypeError for arguments that `fn` does not take."""
    if isinstance(fn, types.MethodType):
        args, fn = (fn.__self__, *args), fn.__func__
    outer, ACTIVE.request = ACTIVE.request, request
    try:
        locals_ = _locals_of(fn, args, kwargs)
        entries = [entry for entry in entries_of(fn.__code__) if is_of(entry, request)]
        if any(entry.guard_table.check(locals_) for entry in entries):
            return Prediction(False, len(entries))
        failures = tuple(closest_failures(entries, locals_))
        left = memory_of(request, fn.__code__).left or _at_the_limit(entries, request)
        return Prediction(not left, len(entries), failures, left)
    finally:
        ACTIVE.request = outer


def _at_the_limit(entries: Sequence[Entry], request: Request) -> str:
    limit = request.options.recompile_limit
    return f"it was compiled {limit} times, the limit" if len(entries) >= limit else ""


def _locals_of(
    fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The variables that a frame of `fn` starts with: arguments and free variables."""
    given = inspect.signature(fn, follow_wrapped=False).bind(*args, **kwargs)
    given.apply_defaults()
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or ())
    return {**{name: cell.cell_contents for name, cell in cells}, **given.arguments}
