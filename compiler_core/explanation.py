"""What `explain(fn)(*args)` returns: graphs, breaks, guards in words, skipped frames, as a value that prints."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.capture.skip import reason_to_skip
from compiler_core.counters import Counters
from compiler_core.guard_words import guard_lines
from compiler_core.recording import Decision, Frame, Recording, Version

__all__ = ["Explanation", "why_nothing"]

_WIDTH = 100  # columns; a longer line goes on below


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Facts of the compiles that one call caused. `graphs` counts graphs that ran.

    `skipped` are frames that run in eager, and functions that reached the recompile limit; `left_out`
    further targets that could not be built. A version's `guards` are rows with the raw `check` too.
    """

    graphs: int
    breaks: tuple[Decision, ...]
    fallbacks: tuple[Decision, ...]
    skipped: tuple[Decision, ...]
    versions: tuple[Version, ...]
    left_out: tuple[Decision, ...] = ()

    @classmethod
    def of(
        cls, recording: Recording, before: Counters, after: Counters, nothing: str
    ) -> Explanation:
        """nothing: why there is nothing to tell, if so."""
        versions = tuple(v for frame in recording.frames for v in frame.versions)
        decisions = [d for v in versions for d in v.decisions]
        skipped = [d for d in decisions if d.kind in ("skip", "limit")]
        skipped += [_skip(f, f.skipped) for f in recording.frames if f.skipped]
        if not recording.frames:
            skipped.append(Decision("skip", ("frame:<none>",), "eager", nothing))
        return cls(
            after.graphs - before.graphs,
            tuple(d for d in decisions if d.kind == "break"),
            tuple(d for d in decisions if d.kind == "fallback"),
            tuple(skipped),
            versions,
            tuple(d for d in decisions if d.kind == "target"),
        )

    @property
    def guards(self) -> int:
        return sum(len(v.guards) for v in self.versions)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__  # at the end of a notebook's cell nobody wrote print

    def _lines(self) -> Iterator[str]:
        yield (
            f"{self.graphs} graph(s), {len(self.breaks)} break(s), {self.guards} guard(s), "
            f"{len(self.fallbacks)} fallback(s), {len(self.skipped)} skipped frame(s)"
        )
        for d in self.breaks:
            yield f"  break    {d.data['where']}  [{d.outcome}] {d.reason.removesuffix(': ')}"
            if len(d.data["stack"]) > 1:  # the cause lies in a function that was called here
                yield f"           in: {' > '.join(d.data['stack'])}"
            yield from (f"           do: {hint}" for hint in d.data["hints"])
        yield from (f"  fallback {_about(d)}: {d.reason}" for d in self.fallbacks)
        yield from (f"  skipped  {_about(d)}: {d.reason}" for d in self.skipped)
        yield from (f"  left out {_about(d)}: {d.reason}" for d in self.left_out)
        for version in self.versions:
            yield from _version_lines(version)


def _version_lines(version: Version) -> Iterator[str]:
    """A version and what must hold for it to be used again."""
    if version.stages:
        yield f"  version  {version.name}: {_operations(version)}, {len(version.guards)} guard(s)"
    for what, why in guard_lines(version.guards):
        line = f"  guard    {what}  ({why})"
        yield from (
            [line] if len(line) <= _WIDTH else [*_fitted("guard    ", what), *_fitted("", why)]
        )


def _fitted(head: str, text: str) -> list[str]:
    """The text in lines that fit, under the column behind `guard`."""
    indent = " " * 11
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {head:9s}",
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _skip(frame: Frame, reason: str) -> Decision:
    return Decision("skip", (f"frame:{frame.name}",), "eager", reason)


def _about(decision: Decision) -> str:
    return ", ".join(decision.about) or "the compiler"


def _operations(version: Version) -> str:
    nodes = version.stage("capture").items
    calls = [item for item in nodes if str(item.data["op"]).startswith("call")]
    return f"{len(calls)} operation(s) in its graph" if calls else "no tensor operation, no graph"


def why_nothing(fn: Callable[..., Any]) -> str:
    """Why no frame came to the capture when `fn` was called."""
    called = fn.forward if isinstance(fn, torch.nn.Module) else getattr(fn, "__func__", fn)
    code = getattr(called, "__code__", None)
    if code is None:
        return f"{fn!r} is not written in Python: it has no frame that could be captured"
    reason: str | None = reason_to_skip(code)
    return reason or "its frames were left to eager at an earlier call, which reset() forgets"
