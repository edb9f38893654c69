"""Everything reachable from a handle: the provenance DAG, walked both ways.

In: the items of a version's stage records. Out: for any handle, what it came from and what it
became. The two walks are kept apart (ancestors, then descendants, never descendants of ancestors),
or one fused kernel would light every line that has a share in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from compiler_core.provenance import Handle, Span
from compiler_core.recording import StageRecord
from explorer.joined import stage_name

__all__ = ["Links"]


class Links:
    """The links of one version. Built once, asked often; needs no torch."""

    def __init__(self, records: Iterable[StageRecord]):
        self.origins: dict[Handle, frozenset[Handle]] = {}
        for record in records:
            for item in record.items:
                known = self.origins.get(item.handle, frozenset())
                self.origins[item.handle] = known | frozenset(item.origins)

    @cached_property
    def results(self) -> dict[Handle, frozenset[Handle]]:
        """The links turned round: handle → items that name it as an origin."""
        found: dict[Handle, set[Handle]] = {}
        for item, origins in self.origins.items():
            for origin in origins:
                found.setdefault(origin, set()).add(item)
        return {origin: frozenset(items) for origin, items in found.items()}

    def known(self, item: Handle) -> Handle:
        """The recorded form of a handle: one of a live stage has no `@target` yet.

        Raises LookupError for a handle that is no item of these records and no origin of one.
        """
        if item in self.origins or item in self.results:
            return item
        found = sorted(h for h in self.origins if h.rpartition("@")[0] == item)
        if not found:
            raise LookupError(f"{item!r} is no handle of this recording (see Links.origins)")
        return found[0]

    def came_from(self, *handles: Handle) -> frozenset[Handle]:
        """All ancestors of the handles, themselves left out. Raises LookupError for an unknown one."""
        return _reach(map(self.known, handles), self.origins)

    def became(self, *handles: Handle) -> frozenset[Handle]:
        """All descendants of the handles, themselves left out. Raises LookupError for an unknown one."""
        return _reach(map(self.known, handles), self.results)

    def lit(self, *handles: Handle) -> frozenset[Handle]:
        """What a selection lights up: the handles, all they came from and all they became."""
        return (
            frozenset(map(self.known, handles)) | self.came_from(*handles) | self.became(*handles)
        )

    def on_line(self, file: str, line: int) -> frozenset[Handle]:
        """The source spans that touch a line (1-based) of a file."""
        spans = ((h, Span.parse(h)) for h in self.results if stage_name(h) == "src")
        return frozenset(h for h, s in spans if s.file == file and s.line <= line <= s.end_line)

    def source_lines(self, *handles: Handle) -> frozenset[tuple[str, int]]:
        """The lines of the user's program that the handles came from."""
        spans = (Span.parse(h) for h in self.lit_sources(*handles))
        return frozenset((s.file, line) for s in spans for line in range(s.line, s.end_line + 1))

    def lit_sources(self, *handles: Handle) -> frozenset[Handle]:
        """The source spans among the ancestors."""
        return frozenset(h for h in self.came_from(*handles) if stage_name(h) == "src")

    def of_stage(self, stage: str, handles: Iterable[Handle]) -> frozenset[Handle]:
        """The handles that belong to a stage."""
        return frozenset(h for h in handles if stage_name(h) == stage)


def _reach(start: Iterable[Handle], edges: dict[Handle, frozenset[Handle]]) -> frozenset[Handle]:
    seen: set[Handle] = set()
    todo = list(start)
    while todo:
        for follower in edges.get(todo.pop(), ()):
            if follower not in seen:
                seen.add(follower)
                todo.append(follower)
    return frozenset(seen)
