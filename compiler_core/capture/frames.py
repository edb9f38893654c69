"""What the interceptor and the capture say to each other about one frame.

In: a `FrameView`, all that may be read of an intercepted frame. Out: one of four decisions. Every
version that was kept is an `Entry`, shown to the capture when it is asked about the frame again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler_core.capture.guard_check import GuardTable

__all__ = ["CompileFrame", "Decision", "Entry", "FrameView", "Keep", "RunOnly", "Skip", "SkipOnce"]


@dataclass(frozen=True, slots=True)
class FrameView:
    """A frame about to run. `locals` holds arguments and the contents of cells and free variables.

    `closure` are the cells of `code.co_freevars`, in that order. The dicts belong to the program:
    read them, do not write (names for the replacement go into `globals` when it is assembled).
    """

    code: CodeType
    locals: dict[str, Any]
    globals: dict[str, Any]
    builtins: dict[str, Any]
    closure: tuple[CellType, ...]

    @property
    def where(self) -> str:
        return f"{self.code.co_filename}:{self.code.co_firstlineno}"


@dataclass(frozen=True, slots=True)
class Keep:
    """Run `code` in place of the frame whenever `guard_table` holds. `name` is the version's, `f/0`."""

    code: CodeType
    guard_table: GuardTable
    name: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Never ask about this code again; with `recursive`, nor about anything it calls."""

    reason: str
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class SkipOnce:
    """Run the original this time; ask again on the next call."""

    reason: str


@dataclass(frozen=True, slots=True)
class RunOnly:
    """Use the versions that exist, never make another (the recompile limit)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One kept version of a code object."""

    guard_table: GuardTable
    name: str
    code: CodeType

    @property
    def hits(self) -> int:
        """Calls that ran this version."""
        return self.guard_table.hits


Decision = Keep | Skip | SkipOnce | RunOnly
CompileFrame = Callable[[FrameView, list[Entry]], Decision]
