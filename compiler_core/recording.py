"""What a compile leaves behind: the only thing that the explorer sees.

In: calls of `Recorder` from the stages. Out: a `Recording`, the tree session → frame → version →
stages, decisions, timings, links; plain data that goes to versioned JSON and back, atomically.
Decisions are always recorded; `step` and `rewrite` only under `options={"explore": True}`.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compiler_core.provenance import Handle, Origins

__all__ = [
    "FIRST_CALL", "SCHEMA", "Decision", "Frame", "Item", "Recorder", "Recording", "Rewrite", "StageRecord", "Step", "Timing",
    "Version", "write_atomically",
]  # fmt: skip

SCHEMA = 1

_UMASK = os.umask(0)
os.umask(_UMASK)
FIRST_CALL = "first call"  # the reason of a first version


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a stage consists of, with the line(s) of the stage's text that show it."""

    handle: Handle
    label: str
    origins: tuple[Handle, ...]
    lines: tuple[int, ...] = ()  # 1-based lines of StageRecord.text
    data: dict[str, Any] = field(default_factory=dict)  # dtype, shape, users … for graphs


@dataclass(slots=True)
class StageRecord:
    """A stage's value as text and items. `name` is the stage word, `part` forward, a kernel's name, or ''."""

    name: str
    part: str
    target: str
    language: str  # "python", "bytecode", "ir", "triton", "cpp", "ttir", "ptx", "sass" …
    text: str = field(repr=False)
    digest: str
    items: list[Item] = field(default_factory=list, repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, about what, and why: a break, a fusion, a value saved, a cache key."""

    kind: str
    about: tuple[Handle, ...]
    outcome: str
    reason: str
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall seconds of a phase; nested phases are named `outer/inner`."""

    phase: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of the symbolic interpretation, for the replay view."""

    instruction: Handle
    opname: str
    stack: tuple[str, ...]
    locals: tuple[tuple[str, str], ...]
    nodes: int  # nodes of the graph so far
    guards: int  # guards so far


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite of one pass, for the stepper."""

    pass_name: str
    rule: str
    where: str  # file:line of the rule
    before: str
    after: str
    about: tuple[Handle, ...] = ()


@dataclass(slots=True)
class Version:
    """One compile of one frame."""

    name: str  # "f/0"
    reason: str  # why it was compiled: FIRST_CALL, or the guard that failed
    stages: list[StageRecord] = field(default_factory=list, repr=False)
    guards: list[dict[str, Any]] = field(default_factory=list, repr=False)
    decisions: list[Decision] = field(default_factory=list, repr=False)
    timings: list[Timing] = field(default_factory=list, repr=False)
    steps: list[Step] = field(default_factory=list, repr=False)
    rewrites: list[Rewrite] = field(default_factory=list, repr=False)

    def stage(self, name: str, part: str = "", target: str = "") -> StageRecord:
        """The record of a stage. Raises KeyError with the names that exist."""
        for record in self.stages:
            if record.name == name and part in ("", record.part) and target in ("", record.target):
                return record
        have = ", ".join(f"{s.name}/{s.part}" for s in self.stages)
        raise KeyError(f"no stage {name}/{part} for {target or 'any target'}; recorded: {have}")


@dataclass(slots=True)
class Frame:
    """A function that was intercepted: its source and the versions compiled of it."""

    name: str
    file: str
    first_line: int
    source: str = field(repr=False)
    versions: list[Version] = field(default_factory=list)
    skipped: str = ""  # why nothing was compiled, if so


@dataclass(slots=True)
class Recording:
    """The tree of one session."""

    frames: list[Frame] = field(default_factory=list)
    machine: dict[str, str] = field(default_factory=dict)
    schema: int = SCHEMA

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=None, sort_keys=True)

    def save(self, path: str | Path) -> None:
        """Write gzipped JSON; the file is complete or not there."""
        write_atomically(Path(path), gzip.compress(self.to_json().encode(), mtime=0))


class Recorder:
    """Takes the events of compiles and builds the Recording. One per session of calls.

    Events outside a version (no frame open) go to a frame called `<none>`.
    """

    def __init__(self, explore: bool = False, keeps_text: bool = False, keeps_inputs: bool = False):
        self.explore = explore
        self.keeps_inputs = (
            keeps_inputs  # copies of each graph's first inputs, to run its stages on
        )
        self.inputs: dict[str, list[Any]] = {}  # by version name
        self.keeps_text = (
            keeps_text or explore
        )  # stages' texts cost time: only where somebody will look
        self.recording = Recording()
        self.compilations: dict[
            str, Any
        ] = {}  # live stage values by version name; never serialised
        self._version: Version | None = None
        self._phases: list[str] = []

    def __repr__(self) -> str:
        return f"<Recorder of {', '.join(self.compilations) or 'nothing yet'}>"

    @contextmanager
    def version(
        self, name: str, file: str, first_line: int, source: str, reason: str
    ) -> Iterator[Version]:
        """Everything recorded inside belongs to a new version of this frame."""
        frame = self.frame(name, file, first_line, source)
        outer, phases = self._version, self._phases
        self._version, self._phases = Version(self._new_name(name), reason), []
        frame.versions.append(self._version)
        try:
            yield self._version
        finally:
            self._version, self._phases = outer, phases

    def _new_name(self, name: str) -> str:
        """`f/0`, `f/1`: counted over all frames of this name, so that a version's name is its own."""
        frames = (frame for frame in self.recording.frames if frame.name == name)
        return f"{name}/{sum(len(frame.versions) for frame in frames)}"

    def frame(self, name: str, file: str, first_line: int, source: str = "") -> Frame:
        """The frame of a function, made at first sight."""
        for frame in self.recording.frames:
            if (frame.name, frame.file, frame.first_line) == (name, file, first_line):
                return frame
        frame = Frame(name, file, first_line, source)
        self.recording.frames.append(frame)
        return frame

    @contextmanager
    def inside(self, version: Version) -> Iterator[None]:
        """Later work for a version that was closed (a backward built on first use)."""
        outer, self._version = self._version, version
        try:
            yield
        finally:
            self._version = outer

    @property
    def here(self) -> Version:
        """The version now open."""
        if self._version is None:
            frame = self.frame("<none>", "", 0)
            self._version = Version("<none>/0", "outside any frame")
            frame.versions.append(self._version)
        return self._version

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; phases nest."""
        self._phases.append(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.here.timings.append(Timing("/".join(self._phases), time.perf_counter() - start))
            self._phases.pop()

    def decide(
        self, kind: str, about: Iterable[Handle], outcome: str, reason: str, **data: Any
    ) -> Decision:
        """Record a decision and return it, so that the code that decides returns the record."""
        decision = Decision(kind, tuple(sorted(about)), outcome, reason, data)
        self.here.decisions.append(decision)
        return decision

    def stage(self, record: StageRecord) -> None:
        self.here.stages.append(record)

    def step(self, step: Step) -> None:
        if self.explore:
            self.here.steps.append(step)

    def rewrite(self, rewrite: Rewrite) -> None:
        if self.explore:
            self.here.rewrites.append(rewrite)


def links(records: Iterable[StageRecord]) -> dict[Handle, Origins]:
    """item handle → origins, over stage records."""
    return {item.handle: frozenset(item.origins) for record in records for item in record.items}


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file that is complete or absent: a temporary beside it, then a rename.

    Raises OSError when the folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.chmod(name, 0o666 & ~_UMASK)  # a temporary file is private; the result is like any other
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
