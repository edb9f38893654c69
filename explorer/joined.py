"""The versions of a recording side by side, under handles that are unique among them.

In: a recording. Out: its stage records, in order. Handles of the first version stay as they are;
those of a later one carry its name in front (`f/1|capture:mul`). Source spans are shared: one line of
the program may be in several graphs, and lights up in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from compiler_core.provenance import Handle
from compiler_core.recording import Frame, Item, Recording, StageRecord, Version

__all__ = ["Shown", "graph_numbers", "joined", "stage_name", "versions_of"]

_SHARED = ("src:", "synthetic:")
_NOTABLE = ("break", "fallback", "skip", "limit")


@dataclass(frozen=True, slots=True)
class Shown:
    """A stage record as it is shown: with unique handles, and the version that it is of."""

    version: str
    record: StageRecord


def versions_of(recording: Recording) -> list[tuple[Frame, Version]]:
    """The versions that there is something to say about, in the order of the compiles within each frame.

    Frames that a program only passes through (what `print` calls in a notebook) compute nothing and break
    nothing: they are left out, as are entries that hold only times. The first version always stays.
    """
    pairs = [(frame, version) for frame in recording.frames for version in frame.versions]
    return [(f, v) for n, (f, v) in enumerate(pairs) if not n or _matters(v)]


def _matters(version: Version) -> bool:
    return any(d.kind in _NOTABLE for d in version.decisions) or any(
        record.name == "capture" and _computes(record) for record in version.stages
    )


def joined(recording: Recording) -> list[Shown]:
    """The records of every version."""
    return list(_joined(recording))


def _joined(recording: Recording) -> Iterator[Shown]:
    for number, (_, version) in enumerate(versions_of(recording)):
        prefix = f"{version.name}|" if number else ""
        for record in version.stages:
            yield Shown(version.name, _prefixed(record, prefix) if prefix else record)


def graph_numbers(shown: Iterable[Shown]) -> dict[str, int]:
    """Version name → the number of its graph, from 1. A frame that captured no operation has no graph."""
    names = [s.version for s in shown if s.record.name == "capture" and _computes(s.record)]
    return {name: n for n, name in enumerate(names, start=1)}


def _computes(record: StageRecord) -> bool:
    return any(str(item.data.get("op", "")).startswith("call") for item in record.items)


def _prefixed(record: StageRecord, prefix: str) -> StageRecord:
    return replace(record, items=[_item(item, prefix) for item in record.items])


def _item(item: Item, prefix: str) -> Item:
    data = item.data
    if inputs := data.get("inputs"):
        data = {**data, "inputs": [_handle(h, prefix) for h in inputs]}
    origins = tuple(_handle(h, prefix) for h in item.origins)
    return replace(item, handle=_handle(item.handle, prefix), origins=origins, data=data)


def _handle(handle: Handle, prefix: str) -> Handle:
    return handle if handle.startswith(_SHARED) else prefix + handle


def stage_name(handle: Handle) -> str:
    """The stage word of a handle, with or without a version in front."""
    return handle.partition(":")[0].rpartition("|")[2]
