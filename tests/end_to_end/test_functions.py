"""What can be compiled as a function: functions, methods, callables, compiled functions, and not."""

from __future__ import annotations

import functools

import pytest
import torch
from agreement import STRICT, agree, compiling
from programs import wave

import compiler_core as cc
from compiler_core.errors import BackendNotFound, NotSupportedYet, OptionError

SCALE = 2.0


def scaled(x):
    return x * SCALE + 1


def test_function_takes_new_values_without_a_new_version():
    x = torch.randn(3, 4, requires_grad=True)
    agree(wave, (x, x.detach() + 1), (x * 2, x), (-x, x + 3), graphs=2)


def test_decorator_with_and_without_arguments():
    @cc.compile
    def bare(x):
        """What it does."""
        return x.sin() + 1

    @cc.compile(options=STRICT)
    def called(x):
        return x.cos() - 1

    assert (bare.__name__, bare.__doc__) == ("bare", "What it does.")
    with compiling(graphs=2, breaks=0):
        for k in range(3):
            x = torch.full((5,), float(k))
            torch.testing.assert_close(bare(x), x.sin() + 1)
            torch.testing.assert_close(called(x), x.cos() - 1)


def test_bound_method_sees_attributes_change():
    class Gain:
        def __init__(self):
            self.factor = 2.0

        def apply(self, x):
            return x * self.factor + 1

    gain = Gain()
    compiled = cc.compile(gain.apply, options=STRICT)
    with compiling(breaks=0):
        for gain.factor in (2.0, 3.0, 2.0, 0.5):
            x = torch.randn(4)
            assert torch.equal(compiled(x), gain.apply(x))


def test_global_rebinding_is_seen(monkeypatch):
    compiled = cc.compile(scaled, options=STRICT)
    with compiling(breaks=0):
        for value in (2.0, -1.0, 2.0):
            monkeypatch.setitem(globals(), "SCALE", value)
            assert torch.equal(compiled(torch.ones(3)), torch.ones(3) * value + 1)


def test_defaults_keywords_and_containers():
    def f(x, *rest, scale=2.0, **named):
        total = sum(rest, x) * scale
        return {"total": total, "named": [named[k] + 1 for k in sorted(named)]}

    compiled = cc.compile(f, options=STRICT)
    x = torch.randn(3)
    with compiling(breaks=0):
        for given in ({}, {"scale": 3.0}, {"b": x, "a": x * 2}):
            ours, eager = compiled(x, x + 1, **given), f(x, x + 1, **given)
            assert list(ours) == list(eager)
            torch.testing.assert_close(ours, eager)


def test_methods_of_every_kind():
    class Gain:
        factor = 2

        @cc.compile(options=STRICT)
        def decorated(self, x):
            return x * self.factor

        @classmethod
        def of_class(cls, x):
            return x - cls.factor

        @staticmethod
        def static(x):
            return x + 3

    of_class, static = (cc.compile(f, options=STRICT) for f in (Gain.of_class, Gain.static))
    with compiling(breaks=0):
        for Gain.factor in (2, 5, 2):
            x = torch.randn(3)
            assert torch.equal(Gain().decorated(x), x * Gain.factor)
            assert torch.equal(of_class(x), x - Gain.factor)
            assert torch.equal(static(x), x + 3)


def test_users_wrapper_around_a_compiled_function_is_kept():
    inner = cc.compile(lambda x: x * 2, options=STRICT)

    @functools.wraps(inner)
    def wrapper(x):
        return inner(x) + 1

    compiled = cc.compile(wrapper, options=STRICT)
    with compiling():
        for k in range(3):
            assert torch.equal(compiled(torch.ones(2) * k), torch.ones(2) * k * 2 + 1)


def test_partial_and_callable_object():
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x.exp() + self.n

    partial = functools.partial(wave, torch.ones(3))
    for made in (partial, Adder(3)):
        compiled = cc.compile(made, options=STRICT)
        with compiling(graphs=1):
            for k in range(3):
                x = torch.full((3,), float(k))
                torch.testing.assert_close(compiled(x), made(x))


def test_closure_contents_are_seen():
    def make():
        factor = 2.0

        def f(x):
            return x * factor

        def change(value):
            nonlocal factor
            factor = value

        return f, change

    f, change = make()
    compiled = cc.compile(f, options=STRICT)
    with compiling(breaks=0):
        for value in (2.0, 5.0, 2.0):
            change(value)
            assert torch.equal(compiled(torch.ones(2)), f(torch.ones(2)))


def test_compiled_function_called_by_a_compiled_function():
    @cc.compile(options=STRICT)
    def inner(x):
        return x.sin() * 2

    @cc.compile(options=STRICT)
    def outer(x):
        return inner(x + 1) + x.cos()

    with compiling():
        for k in range(3):
            x = torch.randn(4) + k
            torch.testing.assert_close(outer(x), (x + 1).sin() * 2 + x.cos())
            torch.testing.assert_close(inner(x), x.sin() * 2)


def test_of_two_compiles_the_outer_is_in_force():
    seen = []

    def backend(graph, examples):
        seen.append(len(examples))
        return graph.forward

    once = cc.compile(wave, options=STRICT)
    twice = cc.compile(once, backend=backend, options=STRICT)
    x = torch.randn(3)
    with compiling(graphs=2):
        for k in range(3):
            torch.testing.assert_close(once(x, x + k), wave(x, x + k))
            torch.testing.assert_close(twice(x, x + k), wave(x, x + k))
    assert seen == [2]


def test_disabled_function_runs_in_eager_within_a_compiled_one():
    compiling_inside = []

    @cc.disable
    def inner(x):
        compiling_inside.append(torch.compiler.is_compiling())
        return x.sin() * 2

    def outer(x):
        return inner(x + 1) * x

    compiled = cc.compile(outer, options=STRICT)
    with compiling(graphs=2, breaks=1):
        for k in range(3):
            x = torch.randn(4) + k
            torch.testing.assert_close(compiled(x), ((x + 1).sin() * 2) * x)
    assert compiling_inside == [False] * 3


def test_disable_argument_gives_the_function_itself():
    assert cc.compile(wave, disable=True) is wave
    assert cc.compile(disable=True)(wave) is wave


def test_reset_compiles_again():
    compiled = cc.compile(wave, options=STRICT)
    x, y = torch.randn(4), torch.randn(4)
    for _ in range(3):
        assert cc.stats().graphs == 0
        torch.testing.assert_close(compiled(x, y), wave(x, y))
        torch.testing.assert_close(compiled(y, x), wave(y, x))
        assert cc.stats().graphs == 1
        cc.reset()


def test_wrong_arguments_of_compile_say_what_is_valid():
    with pytest.raises(OptionError, match="did you mean 'strict'"):
        cc.compile(wave, options={"strct": True})
    with pytest.raises(OptionError, match="takes bool, not str"):
        cc.compile(wave, options={"strict": "yes"})
    with pytest.raises(BackendNotFound, match="did you mean 'eager'"):
        cc.compile(wave, backend="eeger")
    with pytest.raises(OptionError, match="fullgraph takes True or False"):
        cc.compile(wave, fullgraph="yes")
    with pytest.raises(OptionError, match="not int"):
        cc.compile(3)
    with pytest.raises(NotSupportedYet, match="max-autotune"):
        cc.compile(wave, mode="max-autotune")
    with pytest.raises(OptionError, match="takes a mapping"):
        cc.compile(wave, options=["strict"])
