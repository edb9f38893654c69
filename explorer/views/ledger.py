"""The line ledger: the user's source, and beside each line what the compile made of it.

In: the joined records of a recording, and its links. Out: a payload pane with columns: the graphs that
hold operations of the line, breaks, guards that it made, kernels of the target that is called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from compiler_core.provenance import Span
from compiler_core.recording import Recording
from explorer.highlight import highlight_lines
from explorer.joined import Shown, graph_numbers, stage_name, versions_of
from explorer.links import Links

__all__ = ["COLUMNS", "Place", "breaks_of", "ledger_lines", "ledger_pane"]

COLUMNS = ("graphs", "breaks", "guards", "kernels")
Place = tuple[str, int]  # file, line


@dataclass(slots=True)
class Line:
    """One line of the program and what was made of it; `graphs` are numbers of graphs, from 1."""

    text: str
    graphs: set[int] = field(default_factory=set)
    breaks: int = 0
    guards: int = 0
    kernels: set[tuple[str, str]] = field(default_factory=set)

    def cells(self) -> list[str]:
        counts = (self.breaks, self.guards, len(self.kernels))
        return [" ".join(map(str, sorted(self.graphs))), *(str(c) if c else "" for c in counts)]


def ledger_lines(recording: Recording, shown: list[Shown], links: Links) -> dict[Place, Line]:
    """Every line of every function that was looked at, in order of file and line."""
    lines = {place: Line(text) for place, text in _program(recording, shown)}
    readable = {file for (file, _), line in lines.items() if line.text.strip()}
    lines = {place: line for place, line in lines.items() if place[0] in readable}
    graphs = graph_numbers(shown)
    called = _called_target(shown)
    for s in shown:
        record = s.record
        if record.name == "capture" or (record.name == "kernels" and record.target == called):
            for place in links.source_lines(*(i.handle for i in record.items)) & lines.keys():
                if record.name == "kernels":
                    lines[place].kernels.add((s.version, record.part))
                elif s.version in graphs:
                    lines[place].graphs.add(graphs[s.version])
    for place in (_place(str(g["line"])) for _, v in versions_of(recording) for g in v.guards):
        if place in lines:
            lines[place].guards += 1
    for place, _ in breaks_of(recording):
        if place in lines:
            lines[place].breaks += 1
    return lines


def breaks_of(recording: Recording) -> Iterator[tuple[Place, Any]]:
    """Each graph break with its place."""
    for _, version in versions_of(recording):
        for decision in version.decisions:
            if decision.kind == "break":
                yield _place(str(decision.data.get("where") or "")), decision


def ledger_pane(
    recording: Recording, shown: list[Shown], links: Links, numbers: dict[str, int]
) -> dict[str, Any]:
    """The pane: lines with their cells; headings name the files."""
    lines = ledger_lines(recording, shown, links)
    items = _items_by_place(numbers)
    rows = list(_rows(lines))
    texts = [lines[row].text if isinstance(row, tuple) else row for row in rows]
    html = highlight_lines("\n".join(texts) + "\n", "python")
    places = {n: row for n, row in enumerate(rows, start=1) if isinstance(row, tuple)}
    return {
        "kind": "ledger", "stage": "source", "title": "Source", "detail": "", "columns": list(COLUMNS),
        "gutter": [str(row[1]) if isinstance(row, tuple) else "" for row in rows],
        "lines": html,
        "items": {str(n): items[p] for n, p in places.items() if p in items},
        "cells": {str(n): lines[p].cells() for n, p in places.items() if any(lines[p].cells())},
        "places": {f"{file}:{line}": n for n, (file, line) in places.items()},
    }  # fmt: skip


def _rows(lines: dict[Place, Line]) -> Iterator[Place | str]:
    """Places in order, with the file's name above each file and `⋮` in each gap."""
    files: dict[str, list[int]] = defaultdict(list)
    for file, line in lines:
        files[file].append(line)
    for file, numbers in files.items():
        yield f"# {'/'.join(Path(file).parts[-2:])}"
        ordered = sorted(numbers)
        yield (file, ordered[0])
        for before, line in pairwise(ordered):
            if line != before + 1:
                yield "    ⋮"
            yield (file, line)


def _program(recording: Recording, shown: list[Shown]) -> Iterator[tuple[Place, str]]:
    """The lines of the intercepted functions first, then of what they inlined."""
    for frame, _ in versions_of(recording):
        for n, text in enumerate(frame.source.splitlines()):
            yield (frame.file, frame.first_line + n), text
    for s in shown:
        if s.record.name == "source":
            yield from _numbered(s.record.text.splitlines())


def _numbered(lines: Iterable[str]) -> Iterator[tuple[Place, str]]:
    file = ""
    for line in lines:
        if line.startswith("# "):
            file = line[2:]
        elif line[:5].strip().isdigit():
            yield (file, int(line[:5])), line[7:]


def _items_by_place(numbers: dict[str, int]) -> dict[Place, list[int]]:
    found: dict[Place, list[int]] = defaultdict(list)
    for handle, number in numbers.items():
        if stage_name(handle) == "src":
            span = Span.parse(handle)
            for line in range(span.line, span.end_line + 1):
                found[span.file, line].append(number)
    return found


def _called_target(shown: list[Shown]) -> str:
    return next((s.record.target for s in shown if s.record.name == "lower"), "")


def _place(where: str) -> Place:
    file, _, line = where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (where, 0)
