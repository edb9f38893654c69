"""The one script and the one style sheet of all surfaces: pages, widgets, exported notebooks.

The script is the files of `static/js` in the order below, joined into one ES module without imports, so
that it can stand inline in a page and travel as text to a notebook. No build step.
"""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["packed", "packed_text", "script", "style"]

_SCRIPTS = ("base", "links", "lines", "picture", "tables", "stage", "search", "view", "page")


@cache
def script() -> str:
    """The ES module: `mountReport`, `mountView`, and `render` as its default for anywidget."""
    folder = files("explorer") / "static" / "js"
    return "\n".join((folder / f"{name}.js").read_text() for name in _SCRIPTS)


@cache
def style() -> str:
    """The style sheet; every rule stands under `.ct`."""
    return (files("explorer") / "static" / "report.css").read_text()


def packed(value: Any) -> bytes:
    """Gzipped JSON, the same bytes for the same value: what the script's `unpack` reads."""
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), 6, mtime=0)


def packed_text(value: Any) -> str:
    """The same as base64 text, to stand in a page: no string of a program can end the element."""
    return base64.b64encode(packed(value)).decode()
