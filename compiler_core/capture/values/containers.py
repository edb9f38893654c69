"""Lists, tuples, dicts and sets as models: their items are values.

`outside` marks a container that exists before the frame runs: writing to it is a side effect.
Keys are held as hashable *keys* (`key_of`): the real object where it hashes by value or identity.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

__all__ = [
    "DictValue",
    "DictView",
    "ListValue",
    "SetValue",
    "TupleValue",
    "UnhashableKey",
    "key_of",
]


class UnhashableKey(Exception):
    """A value whose hash and equality are not known while tracing."""


@dataclass(slots=True, eq=False)
class ListValue(Value):
    """A list. Looking at `items` of an outside list guards its length; `push` does not look."""

    _items: list[Value]
    outside: bool = False
    on_structure: Callable[[], None] | None = None

    @property
    def items(self) -> list[Value]:
        if self.on_structure is not None:
            action, self.on_structure = self.on_structure, None
            action()
        return self._items

    def push(self, *values: Value) -> None:
        """Append values: what is there before is not looked at."""
        self._items.extend(values)

    def python_type(self) -> type:
        return list

    def describe(self) -> str:
        return f"list of {len(self._items)}"


@dataclass(slots=True, eq=False)
class TupleValue(Value):
    """A tuple, or an instance of a subclass such as a named tuple or torch.Size."""

    items: tuple[Value, ...]
    cls: type = tuple
    attributes: dict[str, Value] = field(default_factory=dict)

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"{self.cls.__name__} of {len(self.items)}"


@dataclass(slots=True, eq=False)
class DictValue(Value):
    """A dict or OrderedDict: key → (value of the key, value)."""

    items: dict[Hashable, tuple[Value, Value]]
    cls: type = dict
    outside: bool = False
    read_only: bool = False  # types.MappingProxyType and the like
    factory: Value | None = None  # of a defaultdict
    owner: Value | None = None  # of the `__dict__` of an instance made in the trace
    #: called before the structure (length, order, absence of a key) is looked at
    on_structure: Callable[[], None] | None = None

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"{self.cls.__name__} of {len(self.items)}"

    def look(self) -> None:
        """Guard the set of keys, once, if the dict comes from outside."""
        if self.on_structure is not None:
            action, self.on_structure = self.on_structure, None
            action()


@dataclass(slots=True, eq=False)
class DictView(Value):
    """The result of `.keys()`, `.values()` or `.items()`: live, as in Python."""

    of: DictValue
    kind: str
    owner: Value | None = None  # an object of a class derived from dict, whose items `of` are

    def python_type(self) -> type:
        return type(getattr({}, self.kind)())


@dataclass(slots=True, eq=False)
class SetValue(Value):
    """`made` is a real set of the keys that went through the same steps, so that its order is the
    order of iteration (a matter of hashes and history); None where that is not known.
    """

    items: dict[Hashable, Value]
    cls: type = set
    outside: bool = False
    made: set[Any] | frozenset[Any] | None = None

    def in_order(self) -> list[Value] | None:
        """The members as iteration gives them; None where the order is not known."""
        if len(self.items) < 2:
            return list(self.items.values())
        if self.made is None or any(isinstance(key, Value) for key in self.items):
            return None
        return [self.items[key] for key in self.made]

    def changes(self) -> set[Any] | None:
        """`made`, to be changed as the set is. A real set of the program stays as it is."""
        if self.outside:
            self.made = None
        return self.made if isinstance(self.made, set) else None

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"{self.cls.__name__} of {len(self.items)}"


_OBJECT_HASHES: tuple[Any, ...] = (object.__hash__, torch.nn.Module.__hash__)
_BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, enum.Enum)


def key_of(value: Value) -> Hashable:
    """The real hashable that stands for a value as a key. Raises UnhashableKey."""
    if isinstance(value, Lazy):
        value = value.resolved or value
    if isinstance(value, Constant) and not isinstance(value.real, slice):
        return value.real  # type: ignore[no-any-return]
    if isinstance(value, TensorValue):  # tensors hash by identity
        return value.real if value.real is not None else value
    if isinstance(value, SymbolicNumber):  # a key must be known: the number is specialised
        specialised: Hashable = value.python_type()(value.real)
        return specialised
    if isinstance(value, TupleValue) and value.cls in (tuple, torch.Size):
        return tuple(key_of(item) for item in value.items)
    if isinstance(value, ObjectValue) and _hashes_by_identity(value.real):
        return value.real  # type: ignore[no-any-return]
    if isinstance(value, Instance) and value.cls.__hash__ in _OBJECT_HASHES:
        return value
    if isinstance(value, SetValue) and value.cls is frozenset:
        return frozenset(value.items)
    raise UnhashableKey(value.describe())


def _hashes_by_identity(real: Any) -> bool:
    return isinstance(real, _BY_IDENTITY) or type(real).__hash__ in _OBJECT_HASHES


def keyed(values: Iterable[Value]) -> dict[Hashable, Value]:
    """A set's items from values, the first of equal ones kept, as `set()` does."""
    items: dict[Hashable, Value] = {}
    for value in values:
        items.setdefault(key_of(value), value)
    return items
