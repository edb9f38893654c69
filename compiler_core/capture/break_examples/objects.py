"""Breaks because of objects and classes: what is read, made and written that has no model."""

from __future__ import annotations

import decimal
import weakref
from typing import Any

import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import objects as kinds

Tensor = torch.Tensor


class Scale:
    """Where examples keep a number, and what grows it."""

    factor = 2.0
    grow: Any = None


def with_scale(call: int) -> tuple[Any, ...]:
    return (*vector(call), Scale())


def sets_on_class(x: Tensor, scale: Scale) -> Tensor:
    y = x * 2
    Scale.grow = lambda self: 3.0  # breaks
    return y + 1


def sets_on_instance(x: Tensor, scale: Scale) -> Tensor:
    y = x * 2
    scale.grow = lambda: 3.0
    return y + 1


class Kept(type):
    """A metaclass that decides what a call makes."""

    kept: Any

    def __call__(cls, *args: Any) -> Any:
        return cls.kept


class PlainOffset:
    def __init__(self, size: float):
        self.size = size


class Offset(metaclass=Kept):
    """Calling it makes nothing new."""

    kept = PlainOffset(1.0)


def makes(x: Tensor) -> Tensor:
    y = x * 2
    offset: Any = Offset()  # breaks
    return y + offset.size  # type: ignore[no-any-return]


def makes_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + PlainOffset(1.0).size


def defines(x: Tensor) -> Tensor:
    y = x * 2

    class Local:  # breaks
        size = 1.0

    return y + Local.size


def defines_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + {"size": 1.0}["size"]


def makes_decimal(x: Tensor) -> tuple[Tensor, decimal.Decimal]:
    y = x * 2
    return y, decimal.Decimal("1.5")  # breaks


def makes_decimal_fixed(x: Tensor) -> tuple[Tensor, float]:
    y = x * 2
    return y, 1.5


def with_reference(call: int) -> tuple[Any, ...]:
    scale = Scale()
    return (*vector(call), weakref.ref(scale), [scale])


def follows(x: Tensor, reference: Any, keeps: list[Scale]) -> Tensor:
    y = x * 2
    scale = reference()  # breaks
    return y * scale.factor  # type: ignore[no-any-return]


def follows_fixed(x: Tensor, reference: Any, keeps: list[Scale]) -> Tensor:
    y = x * 2
    return y * keeps[0].factor


def tags(x: Tensor) -> Tensor:
    y = x * 2
    y.scale = 3.0  # type: ignore[attr-defined]  # breaks
    return y


def tags_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y


EXAMPLES = (
    Example(kinds.CLASS_WRITTEN, sets_on_class, sets_on_instance, with_scale),
    Example(kinds.METACLASS, makes, makes_fixed),
    Example(kinds.CLASS_MADE, defines, defines_fixed),
    Example(kinds.FOREIGN_OBJECT, makes_decimal, makes_decimal_fixed, alternative="a float"),
    Example(kinds.WEAK, follows, follows_fixed, with_reference),
    Example(kinds.TENSOR_WRITTEN, tags, tags_fixed, alternative="the caller keeps the number"),
)
