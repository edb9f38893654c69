"""Shared paths of a guard check, each walked once.

In: the sources that the conditions of one check mention. Out: for each source the shortest text,
and the assignments (`layers = L['net'].layers`) that have to stand before its first use. A path
gets a name when more than one thing starts from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from compiler_core.capture.guard_conditions import Inject, open_dimensions
from compiler_core.capture.guard_facts import Fact
from compiler_core.capture.guard_kinds import KINDS
from compiler_core.capture.sources import Source

__all__ = ["Paths"]

_MARK = "\N{SECTION SIGN}"  # stands for the source's text while its uses are counted


class Paths:
    """Texts of sources for one check function, written top to bottom."""

    def __init__(
        self, facts: Iterable[Fact], inject: Inject, store: Callable[[Source], str | None]
    ):
        self._uses, self._store = _count(facts, inject, store), store
        self._names: dict[Source, str] = {}
        self._taken: set[str] = {"L", "G"}
        self._pending: list[str] = []
        self._unhidden: set[tuple[Source, Any]] = set()

    def text(self, source: Source) -> str:
        """The source as text; new names that it needs are in `new_lines` afterwards."""
        if source in self._names:
            return self._names[source]
        text = self._taken_from(source.base, source) if source.base else source.guard()
        if self._uses[source] < 2 or source.kind == "globals":
            return text
        name = self._names[source] = self._fresh(source)
        self._pending.append(f"{name} = {text}")
        return name

    def _taken_from(self, base: Source, source: Source) -> str:
        """One step; a member of a module is read from its store, where no attribute hides it."""
        text, store = self.text(base), self._store(source)
        if store is None:
            return _step(source, text)
        if (base, source.name) not in self._unhidden:
            self._unhidden.add((base, source.name))
            hidden = f"{source.name!r} in {text}.__dict__"
            self._pending.append(f"if {hidden}: return False  # the attribute hides a member")
        return f"{text}.{store}[{source.name!r}]"

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


def _count(
    facts: Iterable[Fact], inject: Inject, store: Callable[[Source], str | None]
) -> Counter[Source]:
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
            uses[step.base] += 1 if store(step) is None else 2
            step = step.base
    return uses


def _written(fact: Fact, inject: Inject) -> int:
    """How often the condition mentions the source itself."""
    if fact.kind == "tensor":
        return 1 + sum(line.count(_MARK) for line in open_dimensions(_MARK, fact))
    return KINDS[fact.kind].check(_MARK, fact, inject).count(_MARK)
