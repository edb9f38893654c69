"""What a request remembers of a function that it could not, or may no longer, compile.

In: a request and a code object. Out: its `FrameMemory`. Nothing is marked on the code itself, which
other requests compile too; the memory goes with the request and the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from weakref import WeakKeyDictionary

from compiler_core.request import Request

__all__ = ["FrameMemory", "forget_frames", "memory_of"]


@dataclass(slots=True)
class FrameMemory:
    """`left`: why the function runs in eager from now on, "" while it may be compiled."""

    refusals: int = 0  # times that the capture refused it
    left: str = ""
    is_limit_told: bool = False


_memory: WeakKeyDictionary[Request, WeakKeyDictionary[CodeType, FrameMemory]] = WeakKeyDictionary()


def memory_of(request: Request, code: CodeType) -> FrameMemory:
    """The memory of a function, kept from now on."""
    frames = _memory.setdefault(request, WeakKeyDictionary())
    return frames.setdefault(code, FrameMemory())


def forget_frames() -> None:
    _memory.clear()
