"""What a capture relied on, collected while it runs.

In: facts, as the interpreter looks at values (`guards.add("type", source, value, …)`). Out:
`GuardRow`s in the order they were made, and the objects that their checks compare with. A value
that nobody looked at leaves no guard.
"""

from __future__ import annotations

import re
from typing import Any

from compiler_core.capture.frames import FrameView
from compiler_core.capture.guard_facts import STATES, Fact
from compiler_core.capture.guard_kinds import KINDS
from compiler_core.capture.sources import Source, constant
from compiler_core.errors import closest
from compiler_core.stages import GuardRow

__all__ = ["Guards"]


class Guards:
    """The guards of one capture, without duplicates.

    `constants` are the objects that checks name, by name. Facts hold real inputs: drop this object
    once `compile_guards` has made the table, which holds none.
    """

    def __init__(self, view: FrameView):
        self.view = view
        self.constants: dict[str, Any] = {}
        self._facts: dict[tuple[Any, ...], tuple[Fact, GuardRow]] = {}
        self._names: dict[int, str] = {}

    def add(
        self,
        kind: str,
        source: Source | None,
        value: Any = None,
        *,
        line: str = "",
        reason: str = "",
        **data: Any,
    ) -> None:
        """Rely on `value`, found at `source`, staying as it is. The first of equal guards stays.

        `data` by kind: has_attr, lacks_attr take name= (and where="anywhere" for hasattr); has_key,
        lacks_key take key=; no_alias, same_object, different_object take other=Source; tensor takes
        dynamic=(dims); callable takes contents=False to compare code only; shape takes text=, a
        condition over guard texts, and no source. Kinds of torch's state take neither source nor
        value: both are known. Raises KeyError for an unknown kind, TypeError for an `equals` of a
        value that is no constant.
        """
        if kind not in KINDS:
            raise KeyError(f"unknown guard kind {kind!r}{closest(kind, KINDS)}")
        if kind in STATES:
            source, value = None, STATES[kind][1]()
        fact = Fact(kind, source, value, line, reason or KINDS[kind].explain, data)
        key = (kind, fact.place, *_distinguishing(data))
        if key not in self._facts:
            self._facts[key] = fact, self._row(fact)

    def add_states(self, *kinds: str, line: str = "", reason: str = "") -> None:
        """Rely on torch's state (all of `STATES` when none is named)."""
        for kind in kinds or STATES:
            self.add(kind, None, line=line, reason=reason)

    def inject(self, value: Any, hint: str) -> str:
        """The name under which checks know an object: `Linear_0`. The same object, the same name."""
        if id(value) not in self._names:
            stem = re.sub(r"\W", "_", hint).strip("_") or "value"
            name = f"{stem}_{len(self._names)}"
            self._names[id(value)], self.constants[name] = name, value
        return self._names[id(value)]

    def constant(self, value: Any, hint: str) -> Source:
        """A source for an object that the program has under no name, for use in guards and keys."""
        return constant(self.inject(value, hint))

    def facts(self) -> tuple[tuple[Fact, GuardRow], ...]:
        """Facts and rows, the last of them that all tensors are different objects."""
        found = list(self._facts.values())
        tensors = self._unique_tensors(found)
        if len(tensors) > 1:
            sources = tuple(fact.source for fact in tensors)
            fact = Fact("distinct", None, sources, "", KINDS["distinct"].explain)
            found.append((fact, self._row(fact)))
        return tuple(found)

    def rows(self) -> tuple[GuardRow, ...]:
        return tuple(row for _, row in self.facts())

    def __len__(self) -> int:
        return len(self._facts)

    @staticmethod
    def _unique_tensors(found: list[tuple[Fact, GuardRow]]) -> list[Fact]:
        """Tensor facts, one for each tensor object."""
        by_object = {id(f.value): f for f, _ in reversed(found) if f.kind == "tensor"}
        return list(by_object.values())[::-1]

    def _row(self, fact: Fact) -> GuardRow:
        kind = KINDS[fact.kind]
        check, expected = kind.check(fact.place, fact, self.inject), kind.expected(fact)
        return GuardRow(
            fact.place, fact.kind, expected, check, fact.line, fact.reason, fact.dynamic
        )


def _distinguishing(data: dict[str, Any]) -> tuple[str, ...]:
    """What makes two guards of one kind at one source different."""
    return tuple(
        f"{name}={value!r}" for name, value in sorted(data.items()) if name not in ("dynamic",)
    )
