"""What `explain(fn)(*args)` returns: graphs, breaks, guards, skipped frames, as a value that prints."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_core.counters import Counters
from compiler_core.recording import Decision, Recording, Version

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Facts of the compiles that one call caused. `graphs` counts graphs that ran."""

    graphs: int
    breaks: tuple[Decision, ...]
    fallbacks: tuple[Decision, ...]
    skipped: tuple[Decision, ...]
    versions: tuple[Version, ...]

    @classmethod
    def of(cls, recording: Recording, before: Counters, after: Counters) -> Explanation:
        versions = tuple(v for frame in recording.frames for v in frame.versions)
        found = {
            kind: tuple(d for v in versions for d in v.decisions if d.kind == kind)
            for kind in ("break", "fallback", "skip")
        }
        return cls(
            after.graphs - before.graphs, found["break"], found["fallback"], found["skip"], versions
        )

    @property
    def guards(self) -> int:
        return sum(len(v.guards) for v in self.versions)

    def __str__(self) -> str:
        lines = [
            f"{self.graphs} graph(s), {len(self.breaks)} break(s), {self.guards} guard(s), "
            f"{len(self.fallbacks)} fallback(s), {len(self.skipped)} skipped frame(s)"
        ]
        for decision in self.breaks:
            lines.append(
                f"  break    {decision.data['where']}  [{decision.outcome}] {decision.reason}"
            )
            lines += [f"           do: {hint}" for hint in decision.data["hints"]]
        lines += [f"  fallback {d.about[0]}: {d.reason}" for d in self.fallbacks]
        lines += [f"  skipped  {d.about[0]}: {d.reason}" for d in self.skipped]
        for version in self.versions:
            lines += [f"  guard    {g['check']}  # {g['line']}" for g in version.guards]
        return "\n".join(lines)
