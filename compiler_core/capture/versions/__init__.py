"""What each CPython version's bytecode means: one table a version, as data.

In: the running interpreter's version. Out: `CURRENT`, its table. This folder is the only place
that asks for the version.
"""

from __future__ import annotations

import sys

from compiler_core.capture.versions import py311, py312, py313, py314
from compiler_core.capture.versions.table import Version

__all__ = ["CURRENT", "VERSIONS"]

VERSIONS: dict[tuple[int, int], Version] = {
    module.VERSION.python: module.VERSION for module in (py311, py312, py313, py314)
}


def _table_of(python: tuple[int, int]) -> Version:
    """The table of a version; for an unknown one, a table in which nothing is supported."""
    return VERSIONS.get(python) or Version(python, {}, {}, (), {}, ())


CURRENT = _table_of(sys.version_info[:2])
