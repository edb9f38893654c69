"""Text that knows where each of its lines came from.

In: lines with the handles that they serve. Out: the source and, per line, its origins. The one idea:
lines that hold others (a loop's header, its pragma, its closing brace) take the union of what they
hold, so a writer closes a block by giving its frame the origins of its inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compiler_core.provenance import Handle, Origins, union

__all__ = ["Line", "Writer"]

INDENT = "    "


@dataclass(slots=True)
class Line:
    """A line under construction; origins may join it after it is written."""

    text: str
    depth: int = 0
    origins: set[Handle] = field(default_factory=set)


class Writer:
    """Lines in order, and the current depth."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._depth = 0

    def line(self, text: str = "", origins: Iterable[Handle] = ()) -> Line:
        """Write a line at the current depth."""
        line = Line(text, self._depth, set(origins))
        self.lines.append(line)
        return line

    def extend(self, lines: Iterable[Line]) -> None:
        """Write lines of another writer, moved to the current depth."""
        self.lines.extend(Line(n.text, n.depth + self._depth, n.origins) for n in lines)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside are one level deeper."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def block(self, *heads: str, end: str = "}", origins: Iterable[Handle] = ()) -> Iterator[None]:
        """`heads`, the lines inside one level deeper, `end` (none if '').

        The frame's origins are those of the inside, and `origins`.
        """
        frame = [self.line(head) for head in heads]
        start = len(self.lines)
        with self.indented():
            yield
        inside = union(origins, *(line.origins for line in self.lines[start:]))
        if end:
            frame.append(self.line(end))
        for line in frame:
            line.origins |= inside

    @property
    def depth(self) -> int:
        """How many levels the next line is indented."""
        return self._depth

    @property
    def source(self) -> str:
        """The text, with a newline at its end."""
        return "".join(f"{INDENT * n.depth}{n.text}".rstrip() + "\n" for n in self.lines)

    @property
    def line_origins(self) -> tuple[Origins, ...]:
        """Origins of each line of `source`."""
        return tuple(frozenset(n.origins) for n in self.lines)

    def result(self) -> tuple[str, tuple[Origins, ...]]:
        return self.source, self.line_origins
