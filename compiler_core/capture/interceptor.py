"""How frames come to the capture: the protocol that an interception mechanism fulfils.

In: functions to watch. Out: for every Python frame that runs inside them, a question to
`compile_frame`, and its decision carried out. `torch_hook.py` is the mechanism in use; nothing
else in the compiler knows which one it is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, Protocol

from compiler_core.capture.frames import Entry

__all__ = ["Interceptor"]


class Interceptor(Protocol):
    """Watches frames. A decision holds for a code object, in every function that has it."""

    def wrap(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` with interception on while it runs, and as before when it ends, however it ends."""

    def disable(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` with interception off while it runs."""

    def opaque(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A callable, such as a compiled graph, of which no frame is ever asked about."""

    def entries(self, code: CodeType) -> list[Entry]:
        """The versions kept of a code object, the last used first."""

    def forget(self, code: CodeType) -> None:
        """Drop the versions and decisions of one code object."""

    def reset(self) -> None:
        """Drop everything."""
