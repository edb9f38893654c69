"""The linked panes: every stage as lines (graphs also as pictures), and what came from what.

In: a recording. Out: a payload: the ledger, then a pane per stage record; items by number with the
lines that show them, and links from each item to its origins. Only numbers travel besides the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compiler_core.provenance import Handle
from compiler_core.recording import Recording
from explorer.highlight import highlight_lines
from explorer.joined import Shown, joined, versions_of
from explorer.links import Links
from explorer.views.facts import facts_payload
from explorer.views.graph import HAS_PICTURE, graph_picture
from explorer.views.ledger import ledger_pane

__all__ = ["STAGES", "linked_payload", "numbers_of"]

STAGES = {
    "source": "Source", "bytecode": "Bytecode", "capture": "Captured graph", "replacement": "Replacement",
    "joint": "Joint graph", "forward": "Forward graph", "backward": "Backward graph", "lower": "Loop IR",
    "fuse": "Fused", "kernels": "Kernels", "host": "Host program", "ttir": "TTIR", "ttgir": "TTGIR",
    "llir": "LLVM IR", "ptx": "PTX", "sass": "SASS", "asm": "Assembly",
}  # fmt: skip


def linked_payload(
    recording: Recording, title: str = "", show: Sequence[str] = ()
) -> dict[str, Any]:
    """`panes`, `handles` (by number), `links` (item → its origins), `facts`, `show` (stages open at first;
    none: as many as fit)."""
    shown = joined(recording)
    links = Links(s.record for s in shown)
    numbers = numbers_of(shown)
    order = {stage: n for n, stage in enumerate(STAGES)}
    records = sorted(
        (s for s in shown if s.record.name != "source"),
        key=lambda s: order.get(s.record.name, len(order)),
    )
    many = len(versions_of(recording)) > 1
    panes = [_pane(s, numbers, many) for s in records]
    return {
        "title": title or next((f.name for f, _ in versions_of(recording)), "nothing was compiled"),
        "panes": [ledger_pane(recording, shown, links, numbers), *panes],
        "handles": list(numbers),
        "links": [
            sorted(numbers[o] for o in links.origins[handle] if o in numbers) for handle in numbers
        ],
        "facts": facts_payload(recording, shown, numbers),
        "show": list(show),
    }


def numbers_of(shown: Sequence[Shown]) -> dict[Handle, int]:
    """A number per handle, in the order of the records."""
    numbers: dict[Handle, int] = {}
    for s in shown:
        for item in s.record.items:
            numbers.setdefault(item.handle, len(numbers))
    return numbers


def _pane(shown: Shown, numbers: dict[str, int], many: bool) -> dict[str, Any]:
    record = shown.record
    by_line: dict[int, list[int]] = {}
    for item in record.items:
        for line in item.lines:
            by_line.setdefault(line, []).append(numbers[item.handle])
    version = shown.version if many else ""
    language = record.language if record.name == "kernels" else ""
    pane = {
        "kind": "text",
        "stage": record.name,
        "title": STAGES.get(record.name, record.name),
        "detail": " · ".join(p for p in (version, record.part, record.target, language) if p),
        "lines": highlight_lines(
            record.text, "graph" if record.name in HAS_PICTURE else record.language
        ),
        "items": {str(line): items for line, items in by_line.items()},
    }
    if picture := graph_picture(record, numbers):
        pane["picture"] = picture
    return pane
