"""One self-contained HTML file of one or more recordings: the same JavaScript, no network, no kernel.

In: named recordings. Out: a page. All data travels as JSON in a script element that is never run;
every `<` in it is escaped, so no string of a program can end the element.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from compiler_core.recording import Recording, Version, write_atomically
from explorer.views.facts import decision_rows, guard_rows, timing_rows
from explorer.views.linked import linked_payload

__all__ = ["report_html", "write_report"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cutaway report</title>
<style>
{css}
</style>
</head>
<body class="ct-page">
<main id="report"></main>
<script type="application/json" id="payload">{payload}</script>
<script type="module">
{js}
mountReport(document.getElementById("report"), JSON.parse(document.getElementById("payload").textContent));
</script>
</body>
</html>
"""


def write_report(recordings: Sequence[tuple[str, Recording]], path: Path) -> None:
    """Write the page; complete or not at all. Raises OSError when the folder cannot be written."""
    write_atomically(Path(path), report_html(recordings).encode())


def report_html(recordings: Sequence[tuple[str, Recording]]) -> str:
    """The page of several named recordings."""
    payload = [{"name": name, "versions": _versions(recording)} for name, recording in recordings]
    data = json.dumps(payload, separators=(",", ":")).replace("<", "\\u003c")
    static = files("explorer") / "static"
    css, js = ((static / name).read_text() for name in ("report.css", "report.js"))
    return _PAGE.replace("{css}", css).replace("{js}", js).replace("{payload}", data)


def _versions(recording: Recording) -> list[dict[str, Any]]:
    return [
        _version(version, f"{frame.name} line {frame.first_line}")
        for frame in recording.frames
        for version in frame.versions
    ]


def _version(version: Version, where: str) -> dict[str, Any]:
    return {
        "where": where,
        "reason": version.reason,
        "linked": linked_payload(version),
        "guards": guard_rows(version),
        "decisions": decision_rows(version),
        "timings": timing_rows(version),
    }
