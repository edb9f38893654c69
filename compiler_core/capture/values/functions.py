"""Things to call and what they close over."""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any

from compiler_core.capture.values.base import Value

__all__ = ["BoundRule", "Cell", "FunctionValue", "Getter", "GradMode", "MethodValue", "Partial"]


@dataclass(slots=True, eq=False)
class Cell(Value):
    """A closure cell. `name` is set for a free variable of the outermost frame (a real cell there)."""

    content: Value | None = None
    name: str = ""
    outside: bool = False

    def python_type(self) -> type:
        return types.CellType


@dataclass(slots=True, eq=False)
class FunctionValue(Value):
    """A Python function: made in the trace, or the readable inside of one from outside."""

    code: types.CodeType
    globals: dict[str, Any]
    name: str
    defaults: list[Value] = field(default_factory=list)
    kwdefaults: dict[str, Value] = field(default_factory=dict)
    closure: list[Cell] = field(default_factory=list)
    globals_source: Any = None  # Source of the globals dict; None for the frame's own
    trusted: bool = False  # library code: what it reads from its globals is not guarded
    attributes: dict[str, Value] = field(default_factory=dict)

    def python_type(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"function {self.name}"


@dataclass(slots=True, eq=False)
class MethodValue(Value):
    """A bound Python method."""

    function: Value
    bound: Value

    def python_type(self) -> type:
        return types.MethodType

    def describe(self) -> str:
        return f"method {self.function.describe()}"


@dataclass(slots=True, eq=False)
class BoundRule(Value):
    """A method of a modelled value (`list.append`, `Tensor.sum`): found by name when it is called."""

    receiver: Value
    name: str

    def python_type(self) -> type:
        return types.BuiltinMethodType

    def describe(self) -> str:
        return f".{self.name} of {self.receiver.describe()}"


@dataclass(slots=True, eq=False)
class Partial(Value):
    """functools.partial."""

    function: Value
    args: list[Value]
    keywords: dict[str, Value]

    def python_type(self) -> type:
        import functools

        return functools.partial


@dataclass(slots=True, eq=False)
class Getter(Value):
    """operator.itemgetter, attrgetter or methodcaller, and what it was made with."""

    cls: type
    args: list[Value]
    keywords: dict[str, Value] = field(default_factory=dict)

    def python_type(self) -> type:
        return self.cls


@dataclass(slots=True, eq=False)
class GradMode(Value):
    """`torch.no_grad()` and its kin: `mode` to enter, `previous` to go back to once entered."""

    cls: type
    mode: bool
    previous: bool | None = None

    def python_type(self) -> type:
        return self.cls
