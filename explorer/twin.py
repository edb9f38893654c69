"""The twins of the panes for places without JavaScript: a terminal, a page of GitHub, a mail.

In: a report. Out: text with tables, and HTML of `<details>`, `<pre>` and tables, which survives the
sanitising of untrusted notebooks (inline SVG does not).
"""

from __future__ import annotations

import io
from html import escape
from importlib.util import find_spec
from typing import Any

from explorer.report import Report
from explorer.views.facts import break_rows
from explorer.views.linked import STAGES

__all__ = ["html_twin", "mimebundle", "text_twin"]

_MOST = 300  # lines of a stage in the static twin; the rest is in the panes and in saved pages
_IN_TWIN = ("capture", "joint", "forward", "backward", "fuse", "kernels")


def mimebundle(report: Report, **kwargs: Any) -> Any:
    """The widget where anywidget is there, and always both twins."""
    plain = {"text/plain": str(report), "text/html": html_twin(report)}
    if find_spec("anywidget") is None:
        return plain
    shown = report.widget()._repr_mimebundle_(**kwargs)
    data, metadata = shown if isinstance(shown, tuple) else (shown, {})
    return {**(data or {}), **plain}, metadata


def text_twin(report: Report, width: int = 110) -> str:
    """What `print(report)` says: counts, the ledger, breaks with what to do, times."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape as literal
    from rich.table import Table

    out = io.StringIO()
    console = Console(
        file=out, width=width, color_system=None, force_jupyter=False, highlight=False
    )
    console.print(f"{literal(report.name)}: {report.summary()}")
    table = Table("line", box=box.SIMPLE, pad_edge=False)
    for column in ("graphs", "breaks", "guards", "kernels"):
        table.add_column(column, justify="right", min_width=len(column))
    table.add_column("source", no_wrap=True, overflow="ellipsis")
    seen = ""
    for (file, number), line in report._ledger.items():
        if file != seen and (seen or len({f for f, _ in report._ledger}) > 1):
            table.add_row("", "", "", "", "", literal(f"# {file}"), style="dim")
        seen = file
        table.add_row(str(number), *line.cells(), literal(line.text))
    if table.row_count:
        console.print(table)
    for row in break_rows(report.recording):
        console.print(
            f"break at {literal(row['place'])}: {literal(row['reason'])} [{row['code']}]",
            markup=False,
        )
        for hint in row["hints"]:
            console.print(f"  do: {literal(hint)}")
    for frame in report.recording.frames:
        if frame.skipped:
            console.print(f"left to eager: {literal(frame.name)}: {literal(frame.skipped)}")
    if report.kernels:
        console.print(f"kernels: {literal(', '.join(report.kernels))}", soft_wrap=True)
    return out.getvalue().rstrip()


def html_twin(report: Report) -> str:
    """The same, with the stages' texts folded away."""
    parts = [f"<p><b>{escape(report.name)}</b>: {escape(report.summary())}</p>"]
    parts.append(_folded("Source", report.source, is_open=True))
    if len(report.breaks):
        parts.append(
            f"<details open><summary>Graph breaks</summary>{report.breaks._repr_html_()}</details>"
        )
    for stage in _IN_TWIN:
        if any(s.record.name == stage for s in report._shown):
            parts.append(_folded(STAGES[stage], report.stage(stage)))
    parts.append(f"<details><summary>Guards</summary>{report.guards._repr_html_()}</details>")
    parts.append(f"<details><summary>Times</summary>{report.timings._repr_html_()}</details>")
    return "\n".join(parts)


def _folded(title: str, text: str, is_open: bool = False) -> str:
    lines = text.splitlines()
    more = f"\n… {len(lines) - _MOST} more lines" if len(lines) > _MOST else ""
    body = escape("\n".join(lines[:_MOST]) + more)
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(title)}</summary><pre>{body}</pre></details>"
