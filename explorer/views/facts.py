"""The tables beside the panes: breaks, guards, decisions, timings. Plain rows of text, escaped where shown.

Rows that are about something name it: a place of the program (`file:line`) or items, by number.
"""

from __future__ import annotations

from typing import Any

from compiler_core.guard_words import Group, parted, sentence
from compiler_core.recording import Recording, Version
from explorer.joined import Shown, graph_numbers, versions_of

__all__ = [
    "break_rows",
    "decision_rows",
    "facts_payload",
    "guard_folds",
    "guard_rows",
    "left_out",
    "summary",
    "timing_rows",
]


def facts_payload(
    recording: Recording, shown: list[Shown], numbers: dict[str, int]
) -> dict[str, Any]:
    """All tables of a recording, and one sentence of counts."""
    graphs = graph_numbers(shown)
    return {
        "summary": summary(recording, shown),
        "versions": [
            [v.name, str(graphs.get(v.name, "none")), f"{f.name}, line {f.first_line}", v.reason]
            for f, v in versions_of(recording)
        ],
        "breaks": break_rows(recording),
        "guards": guard_rows(recording),
        "folds": guard_folds(recording),
        "decisions": decision_rows(recording, numbers),
        "timings": timing_rows(recording),
        "skipped": [[f.name, f.skipped] for f in recording.frames if f.skipped],
    }


def summary(recording: Recording, shown: list[Shown]) -> str:
    """Counts in words: graphs, breaks, guards, kernels, fallbacks."""
    versions = [v for _, v in versions_of(recording)]
    decisions = [d.kind for v in versions for d in v.decisions]
    target = next((s.record.target for s in shown if s.record.name == "lower"), "")
    kernels = sum(s.record.name == "kernels" and s.record.target == target for s in shown)
    counts = {
        "graph": len(graph_numbers(shown)),
        "break": decisions.count("break"),
        "guard": sum(len(v.guards) for v in versions),
        "kernel": kernels,
        "fallback": decisions.count("fallback"),
    }
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for word, n in counts.items())


def break_rows(recording: Recording) -> list[dict[str, Any]]:
    """Each break: code, reason, place, what was alive, where from, what to do."""
    rows = [(v, d) for _, v in versions_of(recording) for d in v.decisions if d.kind == "break"]
    return [
        {
            "version": v.name,
            "code": d.outcome,
            "reason": d.reason.removesuffix(": "),
            "place": str(d.data.get("where") or ""),
            "alive": list(d.data.get("alive", ())),
            "stack": list(d.data.get("stack", ())),
            "hints": list(d.data.get("hints", ())),
        }
        for v, d in rows
    ]  # fmt: skip


def guard_rows(recording: Recording) -> list[list[str]]:
    """Columns: version, what must hold, the user's line, why, the raw check. Groups of each version first."""
    return [
        [version.name, sentence(row), str(row["line"]), str(row["reason"]), str(row["check"])]
        for _, version in versions_of(recording)
        for row in _in_order(*parted(version.guards))
    ]


def _in_order(groups: list[Group], others: list[Any]) -> list[Any]:
    return [*(row for group in groups for row in group.rows), *others]


def guard_folds(recording: Recording) -> list[list[Any]]:
    """What is one line until somebody opens it: first row, how many, version, what they say together, why."""
    folds: list[list[Any]] = []
    at = 0
    for _, version in versions_of(recording):
        groups, others = parted(version.guards)
        for group in groups:
            folds.append([at, len(group.rows), version.name, group.line, group.why])
            at += len(group.rows)
        at += len(others)
    return folds


def left_out(recording: Recording) -> list[tuple[str, str]]:
    """Further targets that could not be built, each once, with the reason."""
    decisions = [d for _, v in versions_of(recording) for d in v.decisions if d.kind == "target"]
    return list({", ".join(d.about): d.reason for d in decisions}.items())


def decision_rows(recording: Recording, numbers: dict[str, int]) -> list[list[Any]]:
    """Columns: version, kind, outcome, reason, about; then the items it is about, by number."""
    rows: list[list[Any]] = []
    for k, (_, version) in enumerate(versions_of(recording)):
        prefix = f"{version.name}|" if k else ""
        for d in version.decisions:
            about = [n for h in d.about for n in _numbers(prefix + h, numbers)]
            rows.append([version.name, d.kind, d.outcome, d.reason, ", ".join(d.about), about])
    return rows


def _numbers(handle: str, numbers: dict[str, int]) -> list[int]:
    """The items that a decision's handle names: itself, or all that lie under it (a kernel, a nest)."""
    if handle in numbers:
        return [numbers[handle]]
    return [
        n for h, n in numbers.items() if h.startswith((f"{handle}.", f"{handle}:", f"{handle}@"))
    ]


def timing_rows(recording: Recording) -> list[list[Any]]:
    """Outermost phases and their seconds, summed over versions, in order of first appearance."""
    totals: dict[str, float] = {}
    for timing in _outermost(recording):
        totals[timing.phase] = totals.get(timing.phase, 0.0) + timing.seconds
    return [[phase, seconds] for phase, seconds in totals.items()]


def _outermost(recording: Recording) -> list[Any]:
    versions: list[Version] = [v for _, v in versions_of(recording)]
    return [t for v in versions for t in v.timings if "/" not in t.phase]
