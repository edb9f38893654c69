"""What a built library depends on, as named parts, so that a miss can say which part differs.

In: sources, flags, the compiler, the machine. Out: a `Key`: a digest per part, and one of them all.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Key", "digest", "machine"]


def digest(text: str | bytes) -> str:
    """First 16 hex digits of the SHA-256."""
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Key:
    """Named parts, each a digest. `family` groups entries that are worth comparing: the kernels' names."""

    family: str
    parts: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, family: str, parts: Mapping[str, str | bytes]) -> Key:
        """A key from the parts' contents."""
        return cls(digest(family), tuple((name, digest(text)) for name, text in parts.items()))

    @property
    def name(self) -> str:
        """The file name of the entry, without ending."""
        everything = "\n".join(f"{name} {value}" for name, value in self.parts)
        return f"{self.family}-{digest(everything)}"

    def differs_in(self, other: Mapping[str, str]) -> tuple[str, ...]:
        """Names of the parts in which a stored entry differs."""
        return tuple(name for name, value in self.parts if other.get(name) != value)


@cache
def machine() -> str:
    """What `-march=native` depends on: the processor's features, as the system names them."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    features = [x for x in lines if x.startswith(("flags", "Features", "model name"))]
    return "\n".join([platform.machine(), platform.processor(), *sorted(set(features))])
