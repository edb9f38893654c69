"""Objects: real ones that are named by identity, and instances that the trace makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compiler_core.capture.values.base import Value

__all__ = ["Instance", "ObjectValue", "SuperValue"]


@dataclass(slots=True, eq=False)
class ObjectValue(Value):
    """A real object of any other kind: class, module, function, builtin, user object."""

    real: Any
    content: Value | None = None  # of an object derived from dict or list: its items

    def python_type(self) -> type:
        return type(self.real)

    def describe(self) -> str:
        if self.source:
            return self.source.expr()
        return getattr(self.real, "__qualname__", type(self.real).__name__)


@dataclass(slots=True, eq=False)
class Instance(Value):
    """An instance of a user class made during the trace; exceptions too (`args` is set then)."""

    cls: type
    attributes: dict[str, Value] = field(default_factory=dict)
    args: tuple[Value, ...] | None = None
    real: BaseException | None = None  # an exception that a host function really raised
    raise_step: int = 0  # of an exception: the outer step that first raised it
    content: Value | None = None  # of a class derived from dict, list or set: its items
    dict_value: Value | None = None  # its `__dict__`, once it was asked for

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a {self.cls.__name__}"


@dataclass(slots=True, eq=False)
class SuperValue(Value):
    """`super(after, self)`: attribute look-up starts behind `after` in the MRO of `start`."""

    after: type
    start: type
    bound: Value

    def python_type(self) -> type:
        return super
