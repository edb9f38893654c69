"""Cached properties, `vars`, notes of exceptions and `dict.fromkeys` are followed."""

from __future__ import annotations

import functools
import types

import torch
from capturing import agree, captured

ONE = torch.ones(3)
CALLS = [(ONE * k, k) for k in (1, 2, 3)]


class Holder:
    def __init__(self, x):
        self.x = x
        self.asked = 0

    @functools.cached_property
    def doubled(self):
        self.asked += 1
        return self.x * 2

    @functools.cached_property
    def refuses(self):
        raise AttributeError("not now")


class Guarded(Holder):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name != "asked":
            super().__setattr__("asked", 50)


def _follow(make, calls=CALLS, **options):
    log = agree(make, calls, **options)
    assert log.graph_calls == len(calls) and not log.breaks, log.breaks


def test_a_cached_property_of_a_new_object():
    def f(x, k):
        one = Guarded(x + k)
        got = one.doubled, one.doubled, one.asked
        one.doubled = x
        try:
            one.refuses
        except AttributeError as error:
            return got, one.doubled, str(error), sorted(vars(one))

    _follow(lambda: f)


def test_a_cached_property_of_an_object_from_outside():
    def make():
        kept = [Holder(ONE), Guarded(ONE)]

        def f(x, k):
            return [x + one.doubled for one in kept], [one.doubled for one in kept], kept[0].asked

        f.kept = kept
        return f

    def before(i, f):
        if i == 2:
            del f.kept[0].doubled
            f.kept[0].x = ONE * 9

    def state(f):
        return [(one.asked, one.__dict__.get("doubled")) for one in f.kept]

    _follow(make, CALLS * 2, before=before, state=state)


def test_a_cached_property_that_is_asked_anew():
    def make():
        kept = Holder(ONE)

        def f(x, k):
            before = kept.doubled
            del kept.doubled
            kept.x = x
            return before + kept.doubled, kept.asked

        f.kept = kept
        return f

    _follow(make, CALLS * 2, state=lambda f: (f.kept.asked, f.kept.doubled))


def test_vars_of_objects():
    def make():
        kept = Holder(ONE)

        def f(x, k):
            kept.x = x * k
            new = Holder(x)
            new.more = k
            return x + vars(kept)["x"], list(vars(kept)), vars(new)["more"], dict(vars(new))

        f.kept = kept
        return f

    _follow(make, before=lambda i, f: setattr(f.kept, f"name{i}", i))


def test_notes_of_an_exception():
    def f(x, k):
        try:
            try:
                raise ValueError("a")
            except ValueError as error:
                error.add_note(f"seen {k}")
                error.add_note("again")
                raise
        except ValueError as error:
            return x * 2, error.__notes__, hasattr(ValueError("b"), "__notes__")

    _follow(lambda: f)


def test_fromkeys():
    def f(x, k):
        made = dict.fromkeys(["a", "b", "a"], x * k)
        empty = dict.fromkeys(range(k))
        shared = dict.fromkeys("ab", [])
        shared["a"].append(k)
        return made, empty, shared, made["a"] is made["b"]

    _follow(lambda: f)


def test_a_namespace():
    def f(x, k):
        space = types.SimpleNamespace(x=x, k=k)
        space.more = space.x * space.k
        del space.k
        inner = types.SimpleNamespace(space=space, empty=types.SimpleNamespace())
        found = isinstance(inner, types.SimpleNamespace), hasattr(space, "k"), bool(inner)
        return inner.space.more, found, vars(space), list(vars(inner)), type(inner).__name__

    _follow(lambda: f)


def test_a_namespace_that_is_returned():
    def f(x, k):
        space = types.SimpleNamespace(x=x * 2, k=k)
        space.itself = [space.k]
        return space

    compiled, log, _ = captured(f)
    for x, k in CALLS:
        ours, plain = compiled(x, k), f(x, k)
        assert type(ours) is types.SimpleNamespace and list(vars(ours)) == list(vars(plain))
        assert torch.equal(ours.x, plain.x) and (ours.k, ours.itself) == (plain.k, plain.itself)
    assert log.graph_calls == 3 and not log.breaks


def test_namespaces_are_compared_and_shown_as_python_does():
    def f(x, k):
        one, two = types.SimpleNamespace(k=k), types.SimpleNamespace(k=2)
        x = x * 2
        return x, one == two, one != two, repr(one), f"{two}", one in [two]

    agree(lambda: f, CALLS)
