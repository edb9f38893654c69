"""Built libraries on disk, found by what they were built from.

In: a key and a way to build. Out: the path of the library, complete or not there at all: it is built
under another name in the same folder and renamed. A folder that cannot be written is replaced by one for this process,
with a decision and a warning that say so.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from compiler_core.errors import NOT_KEPT, warning_text
from compiler_core.options import Context
from compiler_core.provenance import Handle
from compiler_core.recording import write_atomically
from compiler_core.runtime.keys import Key

__all__ = ["find_or_build", "folder_for", "say_not_kept"]


def find_or_build(
    key: Key, build: Callable[[Path], None], about: Iterable[Handle], context: Context
) -> Path:
    """The library of a key; `build(path)` writes one. A "cache" decision says hit or miss, and why."""
    folder = folder_for(context)
    path = folder / f"{key.name}.so"
    if path.exists():
        context.recorder.decide(
            "cache", about, "hit", "all parts of the key are equal", key=key.name
        )
        return path
    differing, reason = _nearest(key, folder)
    context.recorder.decide("cache", about, "miss", reason, key=key.name, differs=list(differing))
    _build_atomically(path, build)
    write_atomically(path.with_suffix(".json"), json.dumps(dict(key.parts)).encode())
    return path


def folder_for(context: Context) -> Path:
    """The cache folder, made and writable; else a temporary one and a decision."""
    wanted = context.options.cache_path() / "cpp"
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except OSError as error:
        reason = f"{wanted} cannot be written ({error.strerror}): built for this process only"
        context.recorder.decide("cache", (), "not kept", reason)
        say_not_kept(f"{wanted} ({error.strerror})")
        return _own_folder()


@cache
def say_not_kept(folder: str) -> None:
    """A warning, once for each folder: nothing that is built is kept, so every process builds anew."""
    warnings.warn(warning_text(NOT_KEPT, folder), RuntimeWarning, stacklevel=2)


@cache
def _own_folder() -> Path:
    """A folder that lives as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="cutaway-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _build_atomically(path: Path, build: Callable[[Path], None]) -> None:
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    os.close(number)
    try:
        build(Path(name))
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _nearest(key: Key, folder: Path) -> tuple[tuple[str, ...], str]:
    """In which parts the closest entry of the same kernels differs, and that as a sentence."""
    found = []
    for entry in folder.glob(f"{key.family}-*.json"):
        try:
            found.append(key.differs_in(json.loads(entry.read_text())))
        except (OSError, ValueError):
            continue  # an entry that another process removes or damaged: not comparable
    if not found:
        return (), "no entry for kernels of these names"
    closest = min(found, key=len)
    return (
        closest,
        f"the closest entry differs in: {', '.join(closest) or 'nothing; its library is gone'}",
    )
