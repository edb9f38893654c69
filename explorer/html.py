"""One self-contained HTML file of one or more recordings: the same JavaScript, no network, no kernel.

In: named recordings. Out: a page. All data travels as gzipped JSON in base64, in a script element that
is never run: no string of a program can end the element.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from compiler_core.recording import Recording, write_atomically
from explorer.assets import packed_text, script, style
from explorer.views.linked import linked_payload

__all__ = ["report_html", "write_report"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Cutaway report</title>
<style>
{css}
</style>
</head>
<body class="ct-body">
<main id="report"></main>
<script type="text/plain" id="payload">{payload}</script>
<script type="module">
{js}
mountReport(document.getElementById("report"), document.getElementById("payload").textContent);
</script>
</body>
</html>
"""


def write_report(recordings: Sequence[tuple[str, Recording]], path: Path) -> None:
    """Write the page; complete or not at all. Raises OSError when the folder cannot be written."""
    write_atomically(Path(path), report_html(recordings).encode())


def report_html(recordings: Sequence[tuple[str, Recording]], show: Sequence[str] = ()) -> str:
    """The page of several named recordings; `show` names the stages that are open at first."""
    payload = [linked_payload(recording, name, show) for name, recording in recordings]
    page = _PAGE.replace("{css}", style()).replace("{js}", script())
    return page.replace("{payload}", packed_text(payload))
