"""Notebook cells as files: their names in recordings, and errors that show the cell's own line.

IPython keeps a cell's source under a temporary file name. In a recording it is called `Cell In[5]`,
which is what a reader knows, and the same on every machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from compiler_core.recording import Recording
from explorer.session import recording_of

__all__ = ["CellError", "cell_names", "renamed", "renamed_cells"]


class CellError(Exception):
    """An error about a cell: what, and the cell's lines around it with a mark. Shown without a traceback."""

    def __init__(
        self,
        message: str,
        source: str = "",
        line: int = 0,
        column: int | None = None,
        name: str = "cell",
    ):
        self.message, self.source, self.line, self.column, self.name = (
            message,
            source,
            line,
            column,
            name,
        )
        super().__init__(self.text())

    def text(self) -> str:
        """The message, and where."""
        lines = self.source.splitlines()
        if not 0 < self.line <= len(lines):
            return self.message
        shown = [f"{self.message}", f"{self.name}, line {self.line}"]
        for n in range(max(1, self.line - 2), min(len(lines), self.line + 2) + 1):
            shown.append(f"{'-->' if n == self.line else '   '} {n:3d} | {lines[n - 1]}".rstrip())
            if n == self.line and self.column is not None:
                shown.append(" " * (10 + self.column) + "^")
        return "\n".join(shown)

    def _render_traceback_(self) -> list[str]:
        """IPython shows this in place of a traceback."""
        return self.text().split("\n")


def cell_names() -> dict[str, str]:
    """Temporary file name → `Cell In[n]`, for every cell that this IPython ran; {} elsewhere."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    known: Mapping[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return {file: f"Cell In[{number}]" for file, number in known.items()}


def renamed_cells(recording: Recording) -> Recording:
    """The recording with cells called by their names."""
    files = {frame.file for frame in recording.frames}
    text = "".join(
        r.text for f in recording.frames for v in f.versions for r in v.stages if r.name == "source"
    )
    names = {file: name for file, name in cell_names().items() if file in files or file in text}
    return renamed(recording, names) if names else recording


def renamed(recording: Recording, names: Mapping[str, str]) -> Recording:
    """A recording in which files have other names, in texts and handles alike."""
    text = recording.to_json()
    for old, new in names.items():
        text = text.replace(json.dumps(old)[1:-1], json.dumps(new)[1:-1])
    return recording_of(json.loads(text))
