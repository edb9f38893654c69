"""The twins of the panes for places without JavaScript: a terminal, a page of GitHub, a mail.

In: a report. Out: text with tables, and HTML of `<details>`, `<pre>` and tables, which survives the
sanitising of untrusted notebooks (inline SVG does not).
"""

from __future__ import annotations

import textwrap
from html import escape
from importlib.util import find_spec
from typing import Any

from explorer.columns import WIDTH, aligned
from explorer.report import Report
from explorer.views.facts import break_rows, left_out
from explorer.views.ledger import COLUMNS
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


def text_twin(report: Report, width: int = WIDTH) -> str:
    """What `print(report)` says: counts, the ledger, breaks with what to do, kernels; no line is longer."""
    lines = [f"{report.name}: {report.summary()}", *_ledger_lines(report, width)]
    for row in break_rows(report.recording):
        lines.append(f"break at {row['place']}: {row['reason']} [{row['code']}]")
        lines += [f"  do: {hint}" for hint in row["hints"]]
    for frame in report.recording.frames:
        if frame.skipped:
            lines.append(f"left to eager: {frame.name}: {frame.skipped}")
    lines += [f"left out: {target}: {reason}" for target, reason in left_out(report.recording)]
    lines += _kernel_lines(report)
    return "\n".join(part for line in lines for part in _fitted(line, width))


def _ledger_lines(report: Report, width: int) -> list[str]:
    """The table of source lines, with a heading for each file where there are several."""
    rows: list[tuple[str, ...]] = []
    files = list(dict.fromkeys(file for file, _ in report._ledger))
    for file in files:
        if len(files) > 1:
            rows.append(("", "", "", "", "", f"# {file}"))
        rows += [
            (str(number), *line.cells(), line.text)
            for (of, number), line in report._ledger.items()
            if of == file
        ]
    if not rows:
        return []
    titles = ("line", *COLUMNS, "source")
    head, *table = aligned(titles, rows, width, titles[:-1], ("source",)).split("\n")
    return ["", head, "─" * min(width, max(map(len, (head, *table)))), *table, ""]


def _kernel_lines(report: Report) -> list[str]:
    if len(report.versions) < 2:
        return [f"kernels: {', '.join(report.kernels)}"] if report.kernels else []
    names = (name.partition("|")[::2] for name in report.kernels)
    return [f"kernel {kernel} of {version}" for version, kernel in names]


def _fitted(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="      ", break_on_hyphens=False)


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
    parts.append(f"<p><small>{_BACK}</small></p>")
    return "\n".join(parts)


# Shown where the widget is not: in a notebook without trust, or one that was saved without its widgets' state.
_BACK = (
    "This is the static view. The linked panes come back when the cell is run again; in a notebook that was saved "
    "with its widgets' state, when it is trusted. <code>report.save('x.html')</code> keeps them in a page."
)


def _folded(title: str, text: str, is_open: bool = False) -> str:
    lines = text.splitlines()
    more = f"\n… {len(lines) - _MOST} more lines" if len(lines) > _MOST else ""
    body = escape("\n".join(lines[:_MOST]) + more)
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(title)}</summary><pre>{body}</pre></details>"
