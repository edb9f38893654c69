"""The tables beside the panes: guards, decisions, timings. Plain rows of text, escaped where shown."""

from __future__ import annotations

from typing import Any

from compiler_core.recording import Version

__all__ = ["decision_rows", "guard_rows", "timing_rows"]


def guard_rows(version: Version) -> list[list[str]]:
    """Columns: what is checked, kind, expected, the user's line, why."""
    return [
        [str(g[c]) for c in ("source", "kind", "expected", "line", "reason")]
        for g in version.guards
    ]


def decision_rows(version: Version) -> list[list[str]]:
    """Columns: kind, outcome, reason, about."""
    return [[d.kind, d.outcome, d.reason, ", ".join(d.about)] for d in version.decisions]


def timing_rows(version: Version) -> list[dict[str, Any]]:
    """Outermost phases in order: name and seconds."""
    return [{"phase": t.phase, "seconds": t.seconds} for t in version.timings if "/" not in t.phase]
