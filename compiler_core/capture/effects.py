"""The ledger of side effects: what the trace wrote to objects that exist outside of it.

In: writes, as they happen in the trace. Out: what later reads in the trace see, and after the
graph a list of statements that make the same writes, in program order. A store to the same place
replaces the earlier one when nothing in between depends on the order.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import SIDE_EFFECT, Break
from compiler_core.capture.sources import Source
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.containers import DictValue, ListValue, SetValue
from compiler_core.capture.values.functions import Cell
from compiler_core.capture.values.iterators import SequenceIterator
from compiler_core.capture.values.objects import ObjectValue
from compiler_core.provenance import Origins

if TYPE_CHECKING:
    from compiler_core.capture.frame import SymbolicFrame
    from compiler_core.capture.trace import Trace

__all__ = ["Entry", "Ledger", "Render"]

Render = Callable[[Value], str]


@dataclass(slots=True, eq=False)
class Entry:
    """One write: `text(render)` is the statement, `values` what it needs."""

    kind: str  # attribute, item, method, cell, global, iterator, call
    text: Callable[[Render], str]
    values: tuple[Value, ...]
    origins: Origins
    target: Value | None = None


_DELETED = Value()


@dataclass(slots=True, eq=False)
class Ledger:
    """Writes of one trace."""

    trace: Trace
    entries: list[Entry] = field(default_factory=list)
    _attributes: dict[tuple[int, str], Value] = field(default_factory=dict)
    _globals: dict[tuple[int, str], Value] = field(default_factory=dict)
    _latest: dict[tuple[Any, ...], Entry] = field(default_factory=dict)
    _written: dict[int, Value] = field(default_factory=dict)
    _on_classes: dict[tuple[int, str], Value] = field(default_factory=dict)

    # ------------------------------------------------------------------ recording

    def _add(
        self, kind: str, text: Callable[[Render], str], values: tuple[Value, ...],
        target: Value | None = None, place: tuple[Any, ...] | None = None,
    ) -> None:  # fmt: skip
        self.trace.touch()
        entry = Entry(kind, text, values, self.trace.origins(), target)
        previous = self._latest.get(place) if place else None
        if previous is not None and previous is not self.entries[-1]:
            previous = previous if _commutes(self.entries, previous) else None
        if previous is not None:
            entry.origins |= previous.origins
            self.entries[self.entries.index(previous)] = entry
        else:
            self.entries.append(entry)
        if place:
            self._latest[place] = entry
        if target is not None:
            self._written[id(target)] = target

    def written(self) -> list[Value]:
        """The outside objects and containers that were written to."""
        return list(self._written.values())

    def is_written(self, value: Value) -> bool:
        return id(value) in self._written

    # ------------------------------------------------------------------ attributes

    def attribute(self, value: Value, name: str) -> Value | None:
        """What the trace wrote to an attribute; None if it wrote nothing."""
        if isinstance(value, ObjectValue) and isinstance(value.real, types.ModuleType):
            return self.global_(value.real.__dict__, name)
        written = self._attributes.get((id(value), name))
        return None if written is _DELETED else written

    def attributes_of(self, value: Value) -> dict[str, Value | None]:
        """All that the trace wrote to an object; None for what it deleted."""
        return {
            name: None if written is _DELETED else written
            for (owner, name), written in self._attributes.items()
            if owner == id(value)
        }

    def decides(self, value: Value, name: str) -> bool:
        """Whether the trace wrote or deleted the attribute: what the object had before is no matter."""
        return (id(value), name) in self._attributes

    def is_deleted(self, value: Value, name: str) -> bool:
        return self._attributes.get((id(value), name)) is _DELETED

    def on_class(self, cls: type, name: str) -> Value | None:
        """What the trace wrote to an attribute of this very class."""
        return self._on_classes.get((id(cls), name))

    def has_class_writes(self) -> bool:
        return bool(self._on_classes)

    def store_attribute(
        self, target: ObjectValue, name: str, value: Value, raw: bool = False
    ) -> None:
        """`target.name = value` on an outside object; `raw`: past the class's own `__setattr__`."""
        self._attributes[id(target), name] = value
        if isinstance(target.real, type):
            self._on_classes[id(target.real), name] = value
        if isinstance(target.real, types.ModuleType):
            self._globals[id(target.real.__dict__), name] = value
        place = ("attribute", id(target), name)
        self._add("attribute", _store_text(target, name, value, raw), (target, value), target, place)  # fmt: skip

    def delete_attribute(self, target: ObjectValue, name: str) -> None:
        self._attributes[id(target), name] = _DELETED
        self._latest.pop(("attribute", id(target), name), None)
        text = _attribute_text(name)
        self._add("attribute", lambda r: f"del {text.format(r(target))}", (target,), target)

    # ------------------------------------------------------------------ cells and globals

    def store_cell(self, cell: Cell, value: Value | None) -> None:
        """A new content; of an outside cell it is an effect."""
        self.trace.touch()
        cell.content = value
        if not cell.outside:
            return
        if value is None:
            raise Break(SIDE_EFFECT, "a variable of an outer function is deleted")
        name = cell.name
        if name:
            self._add("cell", lambda r: f"{name} = {r(value)}", (value,), cell, ("cell", id(cell)))
        elif cell.source is None:
            raise Break(SIDE_EFFECT, "a variable of a function that cannot be reached by name")
        else:
            self._add("cell", lambda r: f"{r(cell)}.cell_contents = {r(value)}", (cell, value), cell, ("cell", id(cell)))  # fmt: skip

    def global_(self, globals_: dict[str, Any], name: str) -> Value | None:
        """What the trace wrote to a global; None if it wrote nothing, or deleted it."""
        written = self._globals.get((id(globals_), name))
        return None if written is _DELETED else written

    def is_global_deleted(self, globals_: dict[str, Any], name: str) -> bool:
        return self._globals.get((id(globals_), name)) is _DELETED

    def store_global(self, frame: SymbolicFrame, name: str, value: Value) -> None:
        """`global name; name = value`."""
        self._globals[id(frame.globals), name] = value
        place = ("global", id(frame.globals), name)
        if frame.globals is self.trace.view.globals:
            target = f"globals()[{name!r}]"
            self._add("global", lambda r: f"{target} = {r(value)}", (value,), None, place)
            return
        module = self._globals_of(frame)
        self._add("global", lambda r: f"{module.expr()}[{name!r}] = {r(value)}", (value,), None, place)  # fmt: skip

    def delete_global(self, frame: SymbolicFrame, name: str) -> None:
        """`global name; del name`, of one that exists."""
        self._globals[id(frame.globals), name] = _DELETED
        self._latest.pop(("global", id(frame.globals), name), None)
        is_own = frame.globals is self.trace.view.globals
        scope = "globals()" if is_own else self._globals_of(frame).expr()
        self._add("global", lambda r: f"del {scope}[{name!r}]", ())

    def _globals_of(self, frame: SymbolicFrame) -> Source:
        return self.trace.inject(frame.globals, "globals")

    # ------------------------------------------------------------------ containers

    def write(
        self,
        target: ListValue | DictValue | SetValue,
        text: Callable[[Render], str],
        values: tuple[Value, ...] = (),
        place: tuple[Any, ...] | None = None,
    ) -> None:
        """Announce a write to a container, before it is made. Nothing is recorded for a local one."""
        self.trace.touch()
        if isinstance(target, DictValue):
            if target.read_only:
                raise Break(SIDE_EFFECT, "a write through __dict__ or a read-only mapping")
            target.look()
        if target.outside:
            if target.source is None:
                raise Break(SIDE_EFFECT, "a write to a container that cannot be reached by name")
            key = (id(target), *place) if place else None
            self._add("item", text, (target, *values), target, key)

    def call(self, function: Callable[..., Any], args: Sequence[Value]) -> None:
        """`function(*args)`, of which nothing but what it leaves outside is wanted."""
        name = self.trace.inject(function, function.__name__)
        self._add("call", lambda r: f"{name.expr()}({', '.join(map(r, args))})", tuple(args))

    def advance(self, iterator: SequenceIterator) -> None:
        """Items are taken from a real iterator; how many is known when the statement is written."""

        def text(r: Render) -> str:
            source = r(iterator)
            if iterator.done:
                return f"for _ in {source}: pass"
            return f"for _ in zip(range({iterator.taken}), {source}): pass"

        if not any(entry.target is iterator for entry in self.entries):
            self._add("iterator", text, (), iterator)


def _commutes(entries: list[Entry], previous: Entry) -> bool:
    """Whether a later store may take the place of `previous`: only plain stores lie in between."""
    start = next(i for i, entry in enumerate(entries) if entry is previous)
    return all(e.kind in ("attribute", "cell", "global", "iterator") for e in entries[start:])


def _store_text(target: Value, name: str, value: Value, raw: bool) -> Callable[[Render], str]:
    if raw:
        return lambda r: f"object.__setattr__({r(target)}, {name!r}, {r(value)})"
    text = _attribute_text(name)
    return lambda r: f"{text.format(r(target))} = {r(value)}"


def _attribute_text(name: str) -> str:
    return f"{{}}.{name}"
