"""The one script and the one style sheet of all surfaces: pages, widgets, exported notebooks.

The script is the files of `static/js` in the order below, joined into one ES module without imports, so
that it can stand inline in a page and travel as text to a notebook. No build step.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["as_json", "script", "style"]

_SCRIPTS = ("base", "links", "lines", "picture", "tables", "stage", "view", "page")


@cache
def script() -> str:
    """The ES module: `mountReport`, `mountView`, and `render` as its default for anywidget."""
    folder = files("explorer") / "static" / "js"
    return "\n".join((folder / f"{name}.js").read_text() for name in _SCRIPTS)


@cache
def style() -> str:
    """The style sheet; every rule stands under `.ct`."""
    return (files("explorer") / "static" / "report.css").read_text()


def as_json(value: Any) -> str:
    """JSON that can stand in a script element: no `<` in it, so nothing can end the element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
