"""The buffers that the arguments of a library call look at.

In: arguments, nested. Out: buffer names. They must be in memory when the call runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compiler_core.ir.loop import View

__all__ = ["viewed_buffers"]


def viewed_buffers(argument: Any) -> tuple[str, ...]:
    """Names of the viewed buffers in order of appearance, each once."""
    return tuple(dict.fromkeys(_names(argument)))


def _names(argument: Any) -> Iterator[str]:
    if isinstance(argument, View):
        yield argument.buffer
    elif isinstance(argument, tuple | list):
        for item in argument:
            yield from _names(item)
