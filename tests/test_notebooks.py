"""Every notebook runs from top to bottom in a fresh kernel, offline, in a folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
_WIDGET = "application/vnd.jupyter.widget-view+json"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [o for c in notebook.cells for o in c.get("outputs", [])]
    text = "\n".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)
    assert "WRONG" not in text and "equal to eager: True" in text and "falling: True" in text
    assert sum(_WIDGET in o.get("data", {}) for o in outputs) == _cells(notebook, "%%compile")


def test_notebooks_are_committed_without_widget_state() -> None:
    """GitHub refuses a whole notebook whose widget metadata has no state; committed ones have neither."""
    for path in NOTEBOOKS:
        assert "widgets" not in nbformat.read(path, as_version=4).metadata, path


def _cells(notebook: nbformat.NotebookNode, start: str) -> int:
    return sum(c.source.startswith(start) and "--quiet" not in c.source for c in notebook.cells)


def test_notebooks_are_committed_without_outputs() -> None:
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert not any(cell.get("outputs") for cell in cells), path
