"""Iterators: each yields one value at a time, as Python's do; none is ever run ahead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler_core.capture.values.base import Value

if TYPE_CHECKING:
    from compiler_core.capture.frame import SymbolicFrame

__all__ = [
    "Chained", "CountIterator", "EnumerateIterator", "GeneratorValue", "MapIterator", "SequenceIterator", "ZipIterator",
]  # fmt: skip


@dataclass(slots=True, eq=False)
class SequenceIterator(Value):
    """Over a list (live), a tuple, a range's or string's items, dict keys …; `reverse` for reversed()."""

    of: Value
    position: int = 0
    reverse: bool = False
    items: list[Value] | None = None  # a snapshot, for what has no live model
    done: bool = False
    outside: bool = False  # a real iterator: taking an item is a side effect
    taken: int = 0  # items taken in this trace

    def python_type(self) -> type:
        return type(iter([]))

    def describe(self) -> str:
        return f"iterator at {self.position} of {self.of.describe()}"


@dataclass(slots=True, eq=False)
class ZipIterator(Value):
    parts: list[Value]
    strict: bool = False

    def python_type(self) -> type:
        return zip


@dataclass(slots=True, eq=False)
class EnumerateIterator(Value):
    part: Value
    count: int

    def python_type(self) -> type:
        return enumerate


@dataclass(slots=True, eq=False)
class MapIterator(Value):
    """map() and filter()."""

    function: Value
    parts: list[Value]
    is_filter: bool = False

    def python_type(self) -> type:
        return filter if self.is_filter else map


@dataclass(slots=True, eq=False)
class CountIterator(Value):
    """itertools.count and itertools.repeat."""

    start: Value
    step: Value | None
    left: int | None = None

    def python_type(self) -> type:
        import itertools

        return itertools.count if self.step is not None else itertools.repeat


@dataclass(slots=True, eq=False)
class Chained(Value):
    """itertools.chain."""

    parts: list[Value] = field(default_factory=list)

    def python_type(self) -> type:
        import itertools

        return itertools.chain


@dataclass(slots=True, eq=False)
class GeneratorValue(Value):
    """A generator made in the trace: its frame, suspended."""

    frame: SymbolicFrame
    birth: int  # the outer step that made it: a break while it is alive restarts there
    state: str = "created"  # created, suspended, running, closed

    def python_type(self) -> type:
        import types

        return types.GeneratorType
