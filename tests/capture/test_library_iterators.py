"""Iterators of the standard library are followed, as lazily as the originals, without a break."""

from __future__ import annotations

import itertools
import operator

import pytest
import torch
from capturing import agree

ONE = torch.ones(3)


def _noting(items, log):
    """An iterator that tells when an item is taken."""
    for item in items:
        log.append(item if isinstance(item, (int, str)) else "tensor")
        yield item


def _groups(x, log):
    kept = []
    for key, group in itertools.groupby(_noting(["a", "b", "aa", "bb", "c"], log), key=len):
        kept.append((key, next(group), group))
        log.append("turn")
    return x * len(kept), [list(group) for _, _, group in kept], [k[:2] for k in kept]


def _tee(x, log):
    one, two, three = itertools.tee(_noting([1, 2, 3], log), 3)
    return x * next(one), list(two), next(one), list(three), list(one)


PROGRAMS = {
    "accumulate": lambda x, log: list(itertools.accumulate([x, x * 2, x], lambda a, b: a + b, initial=x)),
    "accumulate adds": lambda x, log: (x * 2, list(itertools.accumulate(_noting([1, 2, 3], log)))),
    "takewhile": lambda x, log: (x * 2, list(itertools.takewhile(lambda k: k < 2, _noting([1, 2, 0], log)))),
    "dropwhile": lambda x, log: (x * 2, next(itertools.dropwhile(lambda k: k < 2, _noting([1, 2, 0, 3], log)))),
    "filterfalse": lambda x, log: (x * 2, list(itertools.filterfalse(None, [0, 1, "", "a"]))),
    "starmap": lambda x, log: list(itertools.starmap(torch.mul, [(x, 2), (x, 3)])),
    "compress": lambda x, log: list(itertools.compress(_noting([x, x * 2, x * 3], log), [1, 0])),
    "cycle": lambda x, log: [x * k for k, _ in zip(itertools.cycle(_noting([1, 2], log)), range(5))],
    "zip_longest": lambda x, log: (x * 2, list(itertools.zip_longest(_noting([1, 2], log), "abc", fillvalue=0))),
    "groupby": _groups,
    "tee": _tee,
    "product": lambda x, log: (x * 2, list(itertools.product([0, 1], "ab", repeat=2))),
    "combinations": lambda x, log: (x, list(itertools.combinations_with_replacement([1, 2], 2))),
    "iter": lambda x, log: (x * 2, list(iter([3, 2, 0, 1].pop, 0))),
    "concat": lambda x, log: (x * 2, operator.concat([1], [2]), operator.countOf([1, 2, 1], 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_followed(name):
    program = PROGRAMS[name]

    def make():
        def f(x, log):
            x = x + 1
            return program(x, log), log

        return f

    log = agree(make, [(ONE * k, []) for k in (1, 2, 3)])
    assert log.graph_calls == 3 and not log.breaks


def test_one_that_outlives_the_graph_is_the_originals():
    def f(x):
        steps = itertools.accumulate([x, x, x])
        first = next(steps)
        print(end="")
        return first * 2, next(steps), type(steps).__name__, steps

    log = agree(lambda: f, [(ONE,), (ONE * 2,)])
    assert log.graph_calls >= 2


def test_what_cannot_be_iterated_raises_at_once():
    def f(x):
        try:
            itertools.cycle(3)
        except TypeError as error:
            return x * 2, str(error)

    assert not agree(lambda: f, [(ONE,), (ONE * 2,)]).breaks
