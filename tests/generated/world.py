"""Two worlds compared: everything that can be reached from a pair of roots, and where they differ.

In: two objects, of the plain run and of the compiled one. Out: texts of differences (none: equal).
Types, order of dict keys, which places hold one and the same object, tensors bit by bit (or within
a tolerance), functions by their code, defaults and closures, generators by where they stand.
"""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

__all__ = ["Comparison"]

_BY_VALUE = (
    int, float, str, bytes, bool, type(None), complex, slice, range, torch.dtype, torch.device, torch.Size, np.generic,
    type(...), type(NotImplemented),
)  # fmt: skip
_CLASS_FACTS = {"__dict__", "__weakref__", "__module__", "__doc__", "__abstractmethods__", "_abc_impl", "__annotations__"}  # fmt: skip
_OPAQUE = (types.ModuleType, types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType,
           types.MethodDescriptorType)  # fmt: skip
_WRAPPERS = {
    staticmethod: ("__func__",), classmethod: ("__func__",), property: ("fget", "fset", "fdel"),
    functools.partial: ("func", "args", "keywords"), types.MethodType: ("__func__", "__self__"),
    types.MappingProxyType: (), functools.cached_property: ("func",), functools.partialmethod: ("func", "args", "keywords"),
}  # fmt: skip


@dataclass(slots=True)
class Comparison:
    """One walk. `tolerance`: relative and absolute, for floating point numbers in tensors."""

    tolerance: float = 0.0
    twins: dict[int, int] = field(default_factory=dict)
    origins: dict[int, int] = field(default_factory=dict)
    alive: list[Any] = field(default_factory=list)

    def differences(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        """What differs below `path`."""
        if plain is ours and isinstance(plain, type):
            return
        if type(plain) is not type(ours) and not _same_class(type(plain), type(ours)):
            yield f"{path}: {_short(ours)} instead of {_short(plain)}"
            return
        if isinstance(plain, _BY_VALUE) and type(plain).__module__ in ("builtins", "torch", "numpy"):  # fmt: skip
            yield from self._values(plain, ours, path)
            return
        if type(plain) is tuple:  # Python may make one tuple of two equal ones
            yield from self._containers(plain, ours, path)
            return
        if id(plain) in self.twins or id(ours) in self.origins:
            if self.twins.get(id(plain)) != id(ours):
                yield f"{path}: another object than the one met before"
            return
        self.twins[id(plain)], self.origins[id(ours)] = id(ours), id(plain)
        self.alive += [plain, ours]
        yield from self._inside(plain, ours, path)

    def _values(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        if plain == ours or (plain != plain and ours != ours):
            return
        if self.tolerance and isinstance(plain, float) and abs(plain - ours) <= self.tolerance * (1 + abs(plain)):  # fmt: skip
            return
        yield f"{path}: {ours!r} instead of {plain!r}"

    def _inside(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        match plain:
            case torch.Tensor():
                yield from self._tensors(plain, ours, path)
                return
            case np.ndarray():
                if not np.array_equal(plain, ours):
                    yield f"{path}: {ours!r} instead of {plain!r}"
                return
            case type():
                yield from self._classes(plain, ours, path)
                return
            case types.FunctionType():
                yield from self._functions(plain, ours, path)
                return
            case types.GeneratorType():
                yield from self._generators(plain, ours, path)
                return
            case types.CellType():
                yield from self._cells(plain, ours, path)
                return
            case functools._lru_cache_wrapper():
                yield from self.differences(plain.cache_info(), ours.cache_info(), f"{path}.cache")
                return
        if isinstance(plain, _OPAQUE):
            return
        yield from self._containers(plain, ours, path)
        yield from self._attributes(plain, ours, path)

    def _containers(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        if isinstance(plain, (dict, types.MappingProxyType)):
            yield from self._dicts(dict(plain.items()), dict(ours.items()), path)
        elif isinstance(plain, (list, tuple, collections.deque)):
            if len(plain) != len(ours):
                yield f"{path}: {len(ours)} items instead of {len(plain)}: {_short(ours)} instead of {_short(plain)}"  # fmt: skip
            for i, (a, b) in enumerate(zip(plain, ours)):
                yield from self.differences(a, b, f"{path}[{i}]")
        elif isinstance(plain, (set, frozenset)):
            if sorted(map(repr, plain)) != sorted(map(repr, ours)):
                yield f"{path}: {ours!r} instead of {plain!r}"
        elif isinstance(plain, BaseException):
            for name in ("args", "__cause__", "__context__", "__suppress_context__"):
                yield from self.differences(getattr(plain, name), getattr(ours, name), f"{path}.{name}")  # fmt: skip
        for name in _WRAPPERS.get(type(plain), ()):
            yield from self.differences(getattr(plain, name), getattr(ours, name), f"{path}.{name}")

    def _dicts(self, plain: dict[Any, Any], ours: dict[Any, Any], path: str) -> Iterator[str]:
        if len(plain) != len(ours):
            yield f"{path}: keys {[_short(k) for k in ours]} instead of {[_short(k) for k in plain]}"  # fmt: skip
            return
        for (k, a), (q, b) in zip(plain.items(), ours.items()):
            before = self.twins.copy(), self.origins.copy()
            wrong = list(self.differences(k, q, f"{path}.key({_short(k)})"))
            if wrong:
                self.twins, self.origins = before
                yield from wrong
            else:
                yield from self.differences(a, b, f"{path}[{_short(k)}]")

    def _attributes(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        if hasattr(plain, "__dict__") and not isinstance(plain, type):
            yield from self._dicts(vars(plain), vars(ours), f"{path}.__dict__")
        for cls in type(plain).__mro__:
            if cls.__module__ == "builtins":
                continue
            for slot in _slots(cls):
                a, b = getattr(plain, slot, _ABSENT), getattr(ours, slot, _ABSENT)
                yield from self.differences(a, b, f"{path}.{slot}")

    def _tensors(self, plain: torch.Tensor, ours: torch.Tensor, path: str) -> Iterator[str]:
        for name in ("dtype", "shape", "requires_grad", "is_leaf"):
            if getattr(plain, name) != getattr(ours, name):
                yield f"{path}.{name}: {getattr(ours, name)} instead of {getattr(plain, name)}"
                return
        if plain.stride() != ours.stride() and not self.tolerance:
            yield f"{path}: strides {ours.stride()} instead of {plain.stride()}"
        if not torch.allclose(
            plain.detach(), ours.detach(), self.tolerance, self.tolerance, equal_nan=True
        ):
            yield f"{path}: {ours.tolist()} instead of {plain.tolist()}"
        yield from self.differences(plain.grad if plain.is_leaf else None, ours.grad if ours.is_leaf else None, f"{path}.grad")  # fmt: skip

    def _classes(self, plain: type, ours: type, path: str) -> Iterator[str]:
        facts = [{k: v for k, v in vars(c).items() if k not in _CLASS_FACTS} for c in (plain, ours)]
        yield from self._dicts(*facts, path)

    def _functions(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        if plain.__qualname__ != ours.__qualname__:
            yield f"{path}: {ours.__qualname__} instead of {plain.__qualname__}"
            return
        for name in ("__defaults__", "__kwdefaults__", "__dict__", "__closure__"):
            if name == "__dict__" and "__cutaway_compiled__" in vars(ours):
                continue
            yield from self.differences(getattr(plain, name), getattr(ours, name), f"{path}.{name}")

    def _cells(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        values = []
        for cell in (plain, ours):
            try:
                values.append(cell.cell_contents)
            except ValueError:
                values.append(_ABSENT)
        yield from self.differences(*values, f"{path}.cell")

    def _generators(self, plain: Any, ours: Any, path: str) -> Iterator[str]:
        frames = plain.gi_frame, ours.gi_frame
        if (frames[0] is None) != (frames[1] is None):
            yield f"{path}: {'live' if frames[1] else 'closed'} generator"
        elif frames[0] is not None:
            yield from self._dicts(frames[0].f_locals, frames[1].f_locals, f"{path}.locals")


class _Absent:
    """Stands for what is not there."""


_ABSENT = _Absent()


def _same_class(a: type, b: type) -> bool:
    """One class statement of the program, run in two modules."""
    return a.__qualname__ == b.__qualname__ and a.__module__ == b.__module__ and a.__module__ != "builtins"  # fmt: skip


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(s for s in slots if s not in ("__dict__", "__weakref__"))


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, torch.Tensor) else f"a {tuple(value.shape)} tensor"
    return text if len(text) < 70 else f"{text[:67]}..."
