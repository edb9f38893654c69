"""The table of handlers: canonical operation → function(frame, instruction)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler_core.capture.dialect import DIALECT
from compiler_core.stages import Instruction

if TYPE_CHECKING:
    from compiler_core.capture.frame import SymbolicFrame

__all__ = ["HANDLERS", "Handler", "handles"]

Handler = Callable[["SymbolicFrame", Instruction], None]

HANDLERS: dict[str, Handler] = {}


def handles(*operations: str) -> Callable[[Handler], Handler]:
    """Register a handler for operations of the dialect. Each has one handler."""

    def register(handler: Handler) -> Handler:
        for operation in operations:
            if operation not in DIALECT or operation in HANDLERS:
                raise ValueError(f"{operation} is not in the dialect, or has a handler already")
            HANDLERS[operation] = handler
        return handler

    return register
