"""Tables as text that stay readable at a given width: long cells go over several lines, source is cut.

In: titles and rows of text. Out: aligned lines, none longer than the width.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from itertools import zip_longest

__all__ = ["WIDTH", "aligned", "cut"]

WIDTH = 100  # columns of a terminal or a notebook's cell that everybody has
_GAP = "  "
_LEAST = 8  # no column is made narrower than this


def aligned(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int = WIDTH,
    right: Collection[str] = (),
    whole: Collection[str] = (),
) -> str:
    """The table. Columns named in `right` stand to the right; a cell of `whole` is one line, cut if need be."""
    widths = _fitting(titles, rows, width)
    lines: list[str] = []
    for row in (titles, *rows):
        cells = [
            [cut(cell, w)] if title in whole else _wrapped(cell, w)
            for title, cell, w in zip(titles, row, widths, strict=True)
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            placed = [
                part.rjust(w) if title in right else part.ljust(w)
                for title, part, w in zip(titles, parts, widths, strict=True)
            ]
            lines.append(_GAP.join(placed).rstrip())
    return "\n".join(lines)


def cut(text: str, width: int) -> str:
    """The text, or its beginning and `…`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _wrapped(cell: str, width: int) -> list[str]:
    return textwrap.wrap(cell, width, break_on_hyphens=False) or [""]


def _fitting(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths of the columns: the widest gives room until all fit."""
    widths = [max(len(row[k]) for row in (titles, *rows)) for k in range(len(titles))]
    spare = width - len(_GAP) * (len(titles) - 1)
    while sum(widths) > spare and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths
