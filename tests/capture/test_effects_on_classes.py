"""Writes to classes of the program and deletions of globals are effects, replayed in order."""

from __future__ import annotations

import torch
from capturing import agree

ONE = torch.ones(3)
CALLS = [(ONE * k, k) for k in (1, 2, 3)]
TOKEN = PASSING = 1


def _classes():
    class Base:
        made = 0
        last = None

    class Derived(Base):
        pass

    class Other(Derived):
        made = 10

        def count(self):
            return super().made

    return Base, Derived, Other


def _state(f):
    return [(dict(c.__dict__).get("made"), c.last) for c in f.classes], TOKEN


def _follow(body, mutate=lambda i, f: None):
    def make():
        classes = _classes()

        def f(x, k):
            return body(x + 1, k, *classes)

        f.classes = classes
        return f

    log = agree(make, CALLS, state=_state, before=mutate)
    assert log.graph_calls == 3 and not log.breaks, log.breaks
    return log


def _mutate(i, f):
    base, derived, _ = f.classes
    base.made += 5
    if i == 1:
        derived.made = 100


def test_a_counter_on_a_class():
    def body(x, k, base, derived, other):
        base.made += k
        one = derived()
        return (
            x * base.made,
            one.made,
            derived.made,
            other.made,
            other().count(),
            hasattr(one, "made"),
        )

    _follow(body)
    _follow(body, _mutate)


def test_an_instance_writes_to_its_class():
    def body(x, k, base, derived, other):
        for one in (base(), derived(), other()):
            before = one.made, type(one).last
            type(one).made += 1
            type(one).last = x * k
            one.__class__.made *= 2
            x = x + one.made
        return x, before, base.made, derived.made, other.made, other().count()

    _follow(body)
    _follow(body, _mutate)


def test_an_instance_hides_what_its_class_is_given():
    def body(x, k, base, derived, other):
        one = derived()
        one.made = 7
        derived.made = k
        return x * one.made, derived().made, base.made, getattr(derived, "new", 3)

    _follow(body)


def test_an_attribute_that_the_class_did_not_have():
    def body(x, k, base, derived, other):
        if not hasattr(derived, "kept"):
            derived.kept = k
            x = x * 2
        try:
            seen = base.seen
        except AttributeError:
            seen = base.seen = k
        return x, derived.kept, other.kept, seen

    _follow(body)


def test_what_binds_and_what_protocols_ask_for_still_breaks():
    def functions(x, k, base):
        x = x * 2
        base.last = lambda self: 3
        return x + base().last()

    def protocols(x, k, base):
        x = x * 2
        base.__len__ = lambda self: k
        return x + len(base())

    def dicts(x, k, base):
        shown = base.__dict__
        x = x * 2
        base.made = k
        return x, shown["made"]

    for body in (functions, protocols, dicts):

        def make(body=body):
            base = _classes()[0]
            return lambda x, k: body(x, k, base)

        assert agree(make, CALLS).breaks


def test_a_class_attribute_that_is_deleted():
    def make():
        base, derived, _ = _classes()

        def f(x, k):
            x = x * 2
            derived.made = k
            del derived.made
            return x, derived.made

        return f

    agree(make, CALLS)


def test_a_global_is_deleted():
    def f(x, k):
        global TOKEN
        seen = TOKEN
        del TOKEN
        try:
            x = x * TOKEN
        except NameError as error:
            x = x + 1
            text = str(error)
        try:
            del TOKEN
        except NameError as error:
            text += str(error)
        TOKEN = seen + k
        return x, text, TOKEN

    log = agree(
        lambda: f, CALLS, state=lambda fn: TOKEN, before=lambda i, fn: globals().update(TOKEN=i)
    )
    assert log.graph_calls == 3 and not log.breaks


def test_a_global_that_comes_and_goes():
    def f(x, k):
        global PASSING
        try:
            seen = PASSING
            del PASSING
        except NameError:
            seen = 100
            PASSING = k
            seen += PASSING
        return x * seen

    def before(i, fn):
        globals().pop("PASSING", None)
        if i % 2:
            globals()["PASSING"] = 3

    log = agree(
        lambda: f, [*CALLS, *CALLS], state=lambda fn: globals().get("PASSING"), before=before
    )
    assert log.graph_calls == 6 and not log.breaks
