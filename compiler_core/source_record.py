"""The user's program as a record: the lines that the capture went through, file by file.

In: the spans of the interpreted instructions. Out: a stage record whose items are the spans. Inlined
functions of other files (a layer's `forward`) are part of it; lines nobody reached are not.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from compiler_core.provenance import Span
from compiler_core.recording import Item, StageRecord

__all__ = ["source_record"]

_GAP = 4  # lines between two reached ones that are shown for context
_FAR = 40  # how far above a reached line its `def` is looked for


def source_record(spans: Iterable[Span], digest: str = "") -> StageRecord:
    """Text with the files' own line numbers in front; items are `src:` handles with their text lines."""
    by_file: dict[str, list[Span]] = {}
    for span in dict.fromkeys(spans):
        by_file.setdefault(span.file, []).append(span)
    text: list[str] = []
    items: list[Item] = []
    for file, inside in by_file.items():
        shown = _shown_lines(file, inside)
        text.append(f"# {file}")
        place: dict[int, int] = {}
        for number in shown:
            if number - 1 not in place and place:
                text.append("    ⋮")
            text.append(f"{number:5d}  {linecache.getline(file, number).rstrip()}")
            place[number] = len(text)
        items += (_item(span, place) for span in inside)
    return StageRecord("source", "", "", "python", "\n".join(text) + "\n", digest, items)


def _item(span: Span, place: dict[int, int]) -> Item:
    lines = range(span.line, span.end_line + 1)
    first = linecache.getline(span.file, span.line)
    label = first[span.col : span.end_col] if span.line == span.end_line else first.strip()
    return Item(span.handle, label.strip(), (), tuple(place[n] for n in lines if n in place))


def _shown_lines(file: str, spans: list[Span]) -> list[int]:
    reached = sorted({n for s in spans for n in range(s.line, s.end_line + 1)})
    columns: dict[int, int] = {}
    for span in spans:
        if span.end_col > span.col:  # an instruction of its own text: a frame's entry has none
            columns[span.line] = min(span.col, columns.get(span.line, span.col))
    shown: set[int] = set(reached)
    for before, after in pairwise(reached):
        if after - before <= _GAP:
            shown.update(range(before, after))
        else:
            shown.update(_heading(file, after, columns))
    return sorted(shown.union(_heading(file, reached[0], columns)))


def _heading(file: str, line: int, columns: Mapping[int, int]) -> Iterator[int]:
    """The lines from the enclosing `def` down to a line, if one is near: it stands further left.

    columns: where on each line the reached code begins; behind a `lambda` no `def` encloses it.
    """
    here = linecache.getline(file, line)
    if "lambda" in here[: columns.get(line, 0)]:
        return
    inside = _indent(here)
    for start in range(line - 1, max(0, line - _FAR), -1):
        text = linecache.getline(file, start)
        if text.lstrip().startswith(("def ", "async def ")) and _indent(text) < inside:
            yield from range(start, line)
            return


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
