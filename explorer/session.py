"""The one reader of recordings: live ones, and files that are opened later without torch.

In: a `Recording`, or a file that `Recording.save` wrote. Out: a `Recording` that is known to be
whole and of a schema that this version reads. Strings in it are data: nothing is evaluated.
"""

from __future__ import annotations

import gzip
import json
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from compiler_core.errors import CutawayError, register
from compiler_core.recording import SCHEMA, Recording

__all__ = ["RecordingError", "open_recording", "recording_of"]

UNREADABLE = register(
    "CC701",
    "the recording cannot be read",
    "A recording is gzipped JSON that `Recording.save` wrote; this file is cut short, damaged or something else.",
    "Save it again from the program that made it.",
)
NEWER = register(
    "CC702",
    "the recording was made by a newer version",
    "Its schema number is higher than the one that this version reads, so parts would be misread.",
    "Upgrade cutaway (`pip install -U cutaway`) and open it again.",
)


class RecordingError(CutawayError, ValueError):
    """A file that is no recording, is damaged, or is of a newer schema."""


def open_recording(path: str | Path) -> Recording:
    """Read a saved recording. Raises RecordingError, or OSError when the file cannot be opened."""
    data = Path(path).read_bytes()
    try:
        tree = json.loads(gzip.decompress(data))
    except (OSError, EOFError, ValueError) as error:
        raise RecordingError(UNREADABLE, f"{path}: {error}") from error
    schema = tree.get("schema") if isinstance(tree, dict) else None
    if not isinstance(schema, int):
        raise RecordingError(UNREADABLE, f"{path}: there is no schema number in it")
    if schema > SCHEMA:
        raise RecordingError(NEWER, f"{path}: schema {schema}, this version reads up to {SCHEMA}")
    try:
        return recording_of(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(UNREADABLE, f"{path}: {type(error).__name__}: {error}") from error


def recording_of(tree: dict[str, Any]) -> Recording:
    """A recording from its JSON tree. Raises KeyError, TypeError, ValueError for another tree."""
    recording: Recording = _read(Recording, tree)
    return recording


def _read(kind: Any, value: Any) -> Any:
    """JSON to the dataclass (or container of dataclasses) that an annotation names."""
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise TypeError(f"{kind} expected, {type(value).__name__} found")
        hints, make = get_type_hints(kind), cast(Any, kind)
        return make(**{f.name: _read(hints[f.name], value[f.name]) for f in fields(kind)})
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list:
        return [_read(inner[0], v) for v in value]
    if origin is tuple:
        kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_read(k, v) for k, v in zip(kinds, value, strict=True))
    if origin in (dict, types.UnionType) or kind is Any or isinstance(value, kind):
        return value
    raise TypeError(f"{kind.__name__} expected, {type(value).__name__} found")
