"""Everything that shaped a trace is guarded: one row for each kind of thing that may change."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from changing import Row, notices
from torch import nn
from torch.nn import functional as F

import compiler_core as cc

X = torch.tensor([-0.5, 0.25, 0.75])
ROWS: dict[str, Callable[[], Row]] = {}


def row(make: Callable[[], Row]) -> Callable[[], Row]:
    ROWS[make.__name__] = make
    return make


def program(text: str, **names: Any) -> dict[str, Any]:
    """The globals of a module of its own, with a function `f`."""
    space = {"torch": torch, "F": F, "math": math, **names}
    exec(text, space)
    return space


def of_globals(name: str, text: str, before: Any = None, after: Any = None) -> None:
    def make() -> Row:
        space = program(text, **({name: before} if before is not None else {}))
        return Row(space["f"], (X,), lambda: space.__setitem__(name, after))

    ROWS[f"global {name}: {text}"] = make


of_globals("k", "def f(x): return x * k", 2, 3)
of_globals("g", "def g(x): return x * 2\ndef f(x): return g(x)", None, lambda x: x * 3)
of_globals("abs", "def f(x): return x * abs(-2)", None, lambda v: 7)
of_globals("len", "def f(x): return x * len([1, 2])", None, lambda v: 7)
of_globals("c", "def f(x): return x * c.k", types.SimpleNamespace(k=2), types.SimpleNamespace(k=3))


def of_function(name: str, value: Any) -> None:
    """An attribute of an inner function is replaced."""

    def make() -> Row:
        def g(x, k=2, *, m=1):
            return x * k + m

        return Row(lambda x: g(x), (X,), lambda: setattr(g, name, value))

    ROWS[f"function {name}"] = make


def _tripled(x, k=2, *, m=1):
    return x * 3


of_function("__defaults__", (5,))
of_function("__kwdefaults__", {"m": 4})
of_function("__code__", _tripled.__code__)


@row
def own_default():
    def f(x, k=2):
        return x * k

    return Row(f, (X,), lambda: setattr(f, "__defaults__", (3,)))


@row
def closure():
    k = 2

    def f(x):
        return x * k

    def change():
        nonlocal k
        k = 5

    return Row(f, (X,), change)


@row
def inner_closure():
    k = 2

    def g(x):
        return x * k

    def change():
        nonlocal k
        k = 5

    return Row(lambda x: g(x), (X,), change)


def of_patch(owner: Any, name: str, text: str, value: Any) -> None:
    def make() -> Row:
        before = getattr(owner, name)
        return Row(
            program(text)["f"], (X,), lambda: setattr(owner, name, value), None,
            lambda: setattr(owner, name, before),
        )  # fmt: skip

    ROWS[f"patched {name}"] = make


of_patch(F, "relu", "def f(x): return F.relu(x)", lambda x: x * 7)
of_patch(torch, "sin", "def f(x): return torch.sin(x)", lambda x: x * 7)
of_patch(math, "sqrt", "def f(x): return x * math.sqrt(4.0)", lambda x: 7.0)


class A:
    k = 2

    def __init__(self, k=None):
        if k is not None:
            self.k = k

    def scaled(self, x):
        return x * self.k

    def __call__(self, x):
        return x * self.k

    @property
    def square(self):
        return 4


def of_class(
    name: str, fn: Callable[[Any, Any], Any], change: Callable[[Any, type], Any], **own: Any
) -> None:
    """An object of a fresh subclass of A changes, or its class does."""

    def make() -> Row:
        cls = type("B", (A,), {})
        thing = cls()
        thing.__dict__.update(own)
        return Row(lambda x: fn(thing, x), (X,), lambda: change(thing, cls))

    ROWS[name] = make


of_class("class attribute", lambda a, x: x * a.k, lambda a, cls: setattr(cls, "k", 9))
of_class("instance attribute shadows", lambda a, x: x * a.k, lambda a, cls: setattr(a, "k", 9))
of_class("write to __dict__", lambda a, x: x * a.k, lambda a, cls: a.__dict__.update(k=9))
of_class("attribute deleted", lambda a, x: x * a.k, lambda a, cls: delattr(a, "k"), k=7)
of_class(
    "hasattr", lambda a, x: x * (2 if hasattr(a, "z") else 3), lambda a, cls: setattr(a, "z", 1)
)
of_class(
    "property",
    lambda a, x: x * a.square,
    lambda a, cls: setattr(cls, "square", property(lambda s: 5)),
)
of_class(
    "method", lambda a, x: a.scaled(x), lambda a, cls: setattr(cls, "scaled", lambda s, x: x * 8)
)
of_class(
    "method of an instance",
    lambda a, x: a.scaled(x),
    lambda a, cls: setattr(a, "scaled", lambda x: x * 8),
)
of_class("__call__", lambda a, x: a(x), lambda a, cls: setattr(cls, "__call__", lambda s, x: x * 8))
of_class(
    "class of an object",
    lambda a, x: x * a.k,
    lambda a, cls: setattr(a, "__class__", type("C", (A,), {"k": 6})),
)


class Slots:
    __slots__ = ("k",)


@row
def slot():
    thing = Slots()
    thing.k = 2
    return Row(lambda x: x * thing.k, (X,), lambda: setattr(thing, "k", 3))


@row
def field_of_a_dataclass():
    thing = dataclasses.make_dataclass("D", [("k", int, 2)])()
    return Row(lambda x: x * thing.k, (X,), lambda: setattr(thing, "k", 3))


def of_arguments(
    name: str, fn: Callable[..., Any], first: tuple[Any, ...], then: tuple[Any, ...]
) -> None:
    ROWS[name] = lambda: Row(fn, first, then=then)


Color = enum.Enum("Color", ["RED", "GREEN"])


def scaled(x, k):
    return x * k


class Subclass(torch.Tensor):
    pass


of_arguments("int", scaled, (X, 2), (X, 3))
of_arguments("bool is no int", lambda x, k: (x * k, type(k).__name__), (X, 1), (X, True))
of_arguments("NaN", scaled, (X, math.nan), (X, 0.0))
of_arguments("negative zero", lambda x, k: 1 / torch.full((3,), k), (X, 0.0), (X, -0.0))
of_arguments("code", lambda x, p: p(x), (X, lambda v: v * 2), (X, lambda v: v * 3))
of_arguments("bound self", lambda x, p: p(x), (X, A(2).scaled), (X, A(3).scaled))
of_arguments("callable object", lambda x, p: p(x), (X, A(2)), (X, A(3)))
of_arguments("order of a dict", lambda d: [v * i for i, v in enumerate(d.values())][1], ({"a": X, "b": X + 1},), ({"b": X + 1, "a": X},))  # fmt: skip
of_arguments("keys of a dict", lambda d: sum(d.values()), ({"a": X},), ({"a": X, "b": X},))
of_arguments(
    "absent key", lambda d: d["a"] * (2 if "z" in d else 3), ({"a": X},), ({"a": X, "z": 1},)
)
of_arguments("length", lambda a: sum(a) * len(a), ([X, X],), ([X, X, X],))
of_arguments(
    "type of a container", lambda a: a[0] * (2 if isinstance(a, list) else 3), ([X],), ((X,),)
)
of_arguments("members of a set", lambda x, s: x * (len(s) + (3 in s)), (X, {1, 2}), (X, {1, 3}))
of_arguments(
    "deque", lambda x, d: x * sum(d), (X, collections.deque([1])), (X, collections.deque([1, 4]))
)
of_arguments("strides", lambda x: (x * 2, x.stride()), (torch.ones(3, 4),), (torch.ones(4, 3).t(),))
of_arguments("dtype", lambda x: x * 2, (X,), (X.double(),))
of_arguments(
    "parameter", lambda x: x * (2 if isinstance(x, nn.Parameter) else 3), (X,), (nn.Parameter(X),)
)
of_arguments("subclass", lambda x: x * 2, (X,), (X.as_subclass(Subclass),))
of_arguments("requires_grad", lambda x: x * 2, (X,), (X.clone().requires_grad_(),))


@row
def leaf():
    x = X.clone().requires_grad_()
    return Row(lambda x: x * (2 if x.is_leaf else 3), (x,), then=(x * 1,))


def of_memory(name: str, fn: Callable[..., Any], then: Callable[[], tuple[Any, ...]]) -> None:
    ROWS[name] = lambda: Row(fn, (X.clone(), X + 1), then=then())


def _same_twice() -> tuple[Any, ...]:
    one = X.clone()
    return one, one


def _overlapping() -> tuple[Any, ...]:
    buffer = torch.arange(4.0)
    return buffer[1:], buffer[:3]


def _writes(x, y):
    x.mul_(3)
    return x * y


of_memory("one tensor twice", _writes, _same_twice)
of_memory("overlap", _writes, _overlapping)
of_memory("identity", lambda x, y: x * 2 if x is y else x * 3 + y, _same_twice)


def of_state(
    name: str, fn: Callable[..., Any], change: Callable[[], Any], undo: Callable[[], Any]
) -> None:
    ROWS[name] = lambda: Row(fn, (X.clone().requires_grad_(),), change, None, undo)


def of_context(name: str, fn: Callable[..., Any], context: Any) -> None:
    of_state(name, fn, lambda: context.__enter__(), lambda: context.__exit__(None, None, None))


of_state(
    "grad mode",
    lambda x: x * 2,
    lambda: torch.set_grad_enabled(False),
    lambda: torch.set_grad_enabled(True),
)
of_state("default dtype", lambda x: torch.ones(3) * x.sum(), lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32))  # fmt: skip
of_state("default device", lambda x: (x * 2, torch.ones(3)), lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None))  # fmt: skip
of_state("determinism", lambda x: x * (2 if torch.are_deterministic_algorithms_enabled() else 3), lambda: torch.use_deterministic_algorithms(True), lambda: torch.use_deterministic_algorithms(False))  # fmt: skip
of_state("matmul precision", lambda x: x * (2 if torch.get_float32_matmul_precision() == "highest" else 3), lambda: torch.set_float32_matmul_precision("medium"), lambda: torch.set_float32_matmul_precision("highest"))  # fmt: skip
of_context("autocast", lambda x: x[None] @ x[:, None], torch.autocast("cpu", torch.bfloat16))
of_context("no autocast", lambda x: x.sum() * (2 if torch.is_autocast_enabled("cpu") else 3), torch.autocast("cpu", torch.float16))  # fmt: skip
of_context("inference mode", lambda x: x * 2, torch.inference_mode())


@pytest.mark.parametrize("name", ROWS)
def test_change_is_noticed(name):
    notices(ROWS[name])


def test_patched_operator_is_noticed_by_generated_code():
    notices(ROWS["patched relu"], "cutaway")


def test_throw_away_callables_do_not_recompile():
    """A lambda or partial made for each call is the same callable when it does the same."""
    cc.reset()

    def f(x, g, h):
        return g(x) + h(x)

    compiled = cc.compile(f, options={"strict": True})
    for _ in range(6):
        compiled(X, lambda v: v * 2, functools.partial(scaled, k=3))
    assert (cc.stats().graphs, cc.stats().recompiles) == (1, 0)
