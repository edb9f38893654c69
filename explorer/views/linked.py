"""The linked panes: every stage's text as lines, and which lines came from which.

In: a recorded version. Out: a payload: panes of highlighted lines, items by number with the lines
that show them, and links from each item to its origins. Only numbers travel besides the text.
"""

from __future__ import annotations

from typing import Any

from compiler_core.provenance import stage_of
from compiler_core.recording import StageRecord, Version
from explorer.highlight import highlight_lines

__all__ = ["linked_payload"]

_TITLES = {
    "source": "Source", "bytecode": "Bytecode", "capture": "Captured graph", "replacement": "Replacement",
    "joint": "Joint graph", "forward": "Forward graph", "backward": "Backward graph", "lower": "Loop IR",
    "fuse": "Fused", "kernels": "Kernel", "host": "Host program", "ttir": "TTIR", "ttgir": "TTGIR",
    "llir": "LLVM IR", "ptx": "PTX", "sass": "SASS", "asm": "Assembly",
}  # fmt: skip


def linked_payload(version: Version) -> dict[str, Any]:
    """`panes`: title, group, html lines, items per line. `links`: item → its origins, by number."""
    numbers: dict[str, int] = {}
    for record in version.stages:
        for item in record.items:
            numbers.setdefault(item.handle, len(numbers))
    links: dict[int, set[int]] = {}
    for item in (i for record in version.stages for i in record.items):
        known = {numbers[h] for h in item.origins if h in numbers}
        links.setdefault(numbers[item.handle], set()).update(known)
    return {
        "title": version.name,
        "panes": [_pane(k, record, numbers) for k, record in enumerate(version.stages)],
        "stages": [stage_of(h) for h in numbers],
        "links": [sorted(links[n]) for n in range(len(numbers))],
    }


def _pane(number: int, record: StageRecord, numbers: dict[str, int]) -> dict[str, Any]:
    gutter, text = _gutter(record)
    by_line: dict[int, list[int]] = {}
    for item in record.items:
        for line in item.lines:
            by_line.setdefault(line, []).append(numbers[item.handle])
    detail = " · ".join(part for part in (record.part, record.target, _language(record)) if part)
    return {
        "id": f"p{number}",
        "stage": record.name,
        "title": _TITLES.get(record.name, record.name),
        "detail": detail,
        "gutter": gutter,
        "lines": highlight_lines(text, record.language),
        "items": {str(line): items for line, items in by_line.items()},
    }


def _gutter(record: StageRecord) -> tuple[list[str], str]:
    """The numbers shown beside the lines, and the text: source lines carry their file's own numbers."""
    lines = record.text.splitlines()
    if record.name != "source":
        return [str(n + 1) for n in range(len(lines))], record.text
    pairs = [
        (line[:5].strip(), line[7:]) if line[:5].strip().isdigit() else ("", line.strip())
        for line in lines
    ]
    return [number for number, _ in pairs], "\n".join(line for _, line in pairs) + "\n"


def _language(record: StageRecord) -> str:
    return record.language if record.name == "kernels" else ""
