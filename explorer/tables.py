"""The tables of a report: guards, breaks, times, as `Rows` that print.

In: a recording. Out: tables; what they say is computed in `views/facts.py`.
"""

from __future__ import annotations

from pathlib import PurePath

from compiler_core.recording import Recording
from explorer.sections import Rows
from explorer.views.facts import break_rows, guard_folds, guard_rows, timing_rows

__all__ = ["breaks_table", "guards_table", "timings_table"]


def guards_table(recording: Recording) -> Rows:
    """What must hold for a version to be used again, in words; torch's own state prints as one row."""
    rows = [
        (version, words, PurePath(place).name, why)
        for version, words, place, why, _ in guard_rows(recording)
    ]
    folds = {
        at: (count, (version, words, "", why))
        for at, count, version, words, why in guard_folds(recording)
    }
    return Rows(("version", "must hold", "line", "why"), rows, "no guards", folds)


def breaks_table(recording: Recording) -> Rows:
    rows = [
        (b["place"], b["code"], b["reason"], ", ".join(b["alive"]), " ".join(b["hints"]))
        for b in break_rows(recording)
    ]
    return Rows(("place", "code", "reason", "alive", "what to do"), rows, "no graph breaks")


def timings_table(recording: Recording) -> Rows:
    rows = [(phase, f"{1e3 * seconds:.2f} ms") for phase, seconds in timing_rows(recording)]
    return Rows(("phase", "time"), rows, "no times")
