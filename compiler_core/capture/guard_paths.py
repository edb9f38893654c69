"""Shared paths of a guard check, each walked once.

In: the sources that the conditions of one check mention. Out: for each source the shortest text,
and the assignments (`layers = L['net'].layers`) that have to stand before its first use. A path
gets a name when more than one thing starts from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from compiler_core.capture.guard_conditions import Inject, open_dimensions
from compiler_core.capture.guard_facts import Fact
from compiler_core.capture.guard_kinds import KINDS
from compiler_core.capture.sources import Source

__all__ = ["Paths"]

_MARK = "\N{SECTION SIGN}"  # stands for the source's text while its uses are counted


class Paths:
    """Texts of sources for one check function, written top to bottom."""

    def __init__(self, facts: Iterable[Fact], inject: Inject):
        self._uses = _count(facts, inject)
        self._names: dict[Source, str] = {}
        self._taken: set[str] = {"L", "G"}
        self._pending: list[str] = []

    def text(self, source: Source) -> str:
        """The source as text; new names that it needs are in `new_lines` afterwards."""
        if source in self._names:
            return self._names[source]
        text = _step(source, self.text(source.base)) if source.base else source.guard()
        if self._uses[source] < 2 or source.kind == "globals":
            return text
        name = self._names[source] = self._fresh(source)
        self._pending.append(f"{name} = {text}")
        return name

    def new_lines(self) -> list[str]:
        """Assignments to write before the next condition; each is given out once."""
        lines, self._pending = self._pending, []
        return lines

    def _fresh(self, source: Source) -> str:
        stem = source.name if isinstance(source.name, str) and source.name.isidentifier() else ""
        stem = f"{stem or source.kind}_"  # a trailing underscore: no injected object ends in one
        name, number = stem, 1
        while name in self._taken:
            name, number = f"{stem}{number}_", number + 1
        self._taken.add(name)
        return name


def _step(source: Source, base: str) -> str:
    """One step written after the given text of its base."""
    return Source(source.kind, source.name, Source("constant", base)).guard()


def _count(facts: Iterable[Fact], inject: Inject) -> Counter[Source]:
    """How often each path is written: by conditions, and as the start of longer paths."""
    uses: Counter[Source] = Counter()
    for fact in facts:
        if fact.source is None:
            continue
        new = fact.source not in uses
        uses[fact.source] += _written(fact, inject)
        step: Source | None = fact.source
        while new and step is not None and step.base is not None:
            new = step.base not in uses
            uses[step.base] += 1
            step = step.base
    return uses


def _written(fact: Fact, inject: Inject) -> int:
    """How often the condition mentions the source itself."""
    if fact.kind == "tensor":
        return 1 + sum(line.count(_MARK) for line in open_dimensions(_MARK, fact))
    return KINDS[fact.kind].check(_MARK, fact, inject).count(_MARK)
