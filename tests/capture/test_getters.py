"""`itemgetter`, `attrgetter` and `methodcaller` are followed, from inside and from outside."""

from __future__ import annotations

import operator
from operator import attrgetter, itemgetter, methodcaller
from types import SimpleNamespace

import pytest
import torch
from capturing import agree

ONE = torch.ones(3)


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.next = None

    def scaled(self, by, *, plus=0):
        return self.x * by + plus


def _points(x):
    a, b = Point(x, 2), Point(x * 2, 1)
    a.next = b
    return a, b


def _missing(x):
    out = []
    for getter, target in (
        (itemgetter("b"), {"a": x}),
        (attrgetter("next.z"), _points(x)[0]),
        (methodcaller("no"), x),
    ):
        try:
            getter(target)
        except (KeyError, AttributeError) as error:
            out.append(type(error).__name__)
    return x * len(out), out


PROGRAMS = {
    "one item": lambda x: itemgetter(1)([x, x * 2]),
    "items": lambda x: itemgetter("a", "b")({"a": x, "b": 2}),
    "a slice": lambda x: itemgetter(slice(1, None))([x, x * 2, x * 3]),
    "of a tensor": lambda x: itemgetter(0)(x),
    "attributes": lambda x: attrgetter("x", "next.y")(_points(x)[0]),
    "a method": lambda x: methodcaller("scaled", 3, plus=x)(_points(x)[0]),
    "of a list": lambda x: (x * 2, methodcaller("index", 2)([1, 2])),
    "sorted": lambda x: [p.x for p in sorted(_points(x), key=attrgetter("y"))],
    "max and map": lambda x: (x, max([(1, 2), (0, 3)], key=itemgetter(1)), list(map(itemgetter(0), [(x, 1)]))),
    "missing": _missing,
    "typed": lambda x: (x * 2, isinstance(itemgetter(1), itemgetter), type(attrgetter("a")), callable(itemgetter(0))),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_followed(name):
    program = PROGRAMS[name]
    log = agree(lambda: lambda x: program(x + 1), [(ONE * k,) for k in (1, 2, 3)])
    assert log.graph_calls == 3 and not log.breaks, log.breaks


def test_one_from_outside_is_guarded():
    def make():
        space = SimpleNamespace(
            get=itemgetter(0), of=attrgetter("x"), call=methodcaller("scaled", 2)
        )

        def f(x):
            return space.get([x + 1, x + 2]), space.of(Point(x, 1)), space.call(Point(x, 1))

        f.space = space
        return f

    def before(i, f):
        f.space.get = itemgetter(i % 2)
        f.space.of = (attrgetter("x"), attrgetter("y"), attrgetter("x", "y"))[i]
        f.space.call = methodcaller("scaled", i + 1)

    log = agree(make, [(ONE * k,) for k in (1, 2, 3)], before=before)
    assert log.graph_calls == 3 and not log.breaks


def test_one_with_keywords_from_outside_still_gives_what_it_gives():
    getter = methodcaller("scaled", 2, plus=5)
    agree(lambda: lambda x: getter(Point(x * 2, 1)), [(ONE,), (ONE * 2,)])


def test_one_that_is_returned_is_an_original():
    def f(x):
        return x * 2, operator.itemgetter(1, "a"), operator.methodcaller("scaled", 1, plus=2)

    def make():
        return lambda x: [
            repr(part) if not isinstance(part, torch.Tensor) else part for part in f(x)
        ]

    agree(make, [(ONE,), (ONE * 2,)])
    import compiler_core as cc

    result = cc.compile(f, options={"strict": True}, backend="eager")(ONE)
    assert type(result[1]) is itemgetter and result[1]({1: 2, "a": 3}) == (2, 3)
    assert result[2](Point(1, 2)) == 3
