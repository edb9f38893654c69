"""The explorer: a compile as linked panes, tables and reports.

import explorer
report = explorer.explore(fn, x, y)            # compile, run, look at every stage
report = explorer.open("run.cutaway.gz")       # a saved one; needs no torch
%load_ext explorer                             # `%%compile f(x, y)` in a notebook
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.links import Links
from explorer.report import Report
from explorer.report import open_report as open
from explorer.session import RecordingError

if TYPE_CHECKING:
    from explorer.exploring import explore

__all__ = ["Links", "RecordingError", "Report", "explore", "open"]


def __getattr__(name: str) -> Any:
    """`explore` on first use: it needs torch, which reading a recording does not."""
    if name != "explore":
        raise AttributeError(f"module 'explorer' has no attribute {name!r}")
    from explorer.exploring import explore

    return explore


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext explorer`."""
    from explorer.magic import register
    from explorer.preload import load_when_idle

    register(shell)
    load_when_idle()
