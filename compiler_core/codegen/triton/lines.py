"""The lines of a kernel while it is written.

In: texts with the handles of the statements that they serve. Out: the source and the origins of each
line. A line stays open for more origins after it is written: a later statement that means the same is
not written again, the first line serves it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compiler_core.provenance import Handle, Origins

__all__ = ["Line", "Lines"]

INDENT = "    "


@dataclass(slots=True)
class Line:
    text: str
    depth: int = 0
    origins: set[Handle] = field(default_factory=set)


class Lines:
    """Lines in order, and the current depth."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._depth = 0

    def add(self, text: str, origins: Iterable[Handle] = ()) -> Line:
        """Write a line at the current depth; the line is returned so that origins can join it."""
        line = Line(text, self._depth, set(origins))
        self.lines.append(line)
        return line

    def extend(self, other: Lines) -> None:
        self.lines.extend(Line(n.text, n.depth + self._depth, n.origins) for n in other.lines)

    @contextmanager
    def indented(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @property
    def source(self) -> str:
        """The text, with a newline at its end."""
        return "".join(f"{INDENT * n.depth}{n.text}".rstrip() + "\n" for n in self.lines)

    @property
    def origins(self) -> tuple[Origins, ...]:
        return tuple(frozenset(n.origins) for n in self.lines)
