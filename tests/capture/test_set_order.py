"""The order of a set's members is a matter of hashes and history: the trace goes through the same steps."""

from __future__ import annotations

import pytest
import torch

import compiler_core as cc


def display(x, out, s):
    for k in {33, 1, 64, 17}:
        out.append(k)
    return x * 2


def grown_and_shrunk(x, out, s):
    t = set()
    for name in ("zebra", "ape", "cow", "gnu"):
        t.add(name)
    t.discard("ape")
    out.extend(t)
    return x + len(t)


def with_another(x, out, s):
    out.extend(s | {5})
    out.append(list({k * 3 for k in s}))
    return x + 1


def combined(x, out, s):
    a = set([40, 3, 9])
    a.update({100: 1, 8: 2})
    a |= {77, 5}
    for t in (a, a & s, frozenset(s) ^ a, a.copy(), set(a), a - {3}, a.union(s)):
        out.append(list(t))
        out.append(",".join(map(str, t)))
        out.append(sorted(t))
    return x + len(a)


def from_iterators(x, out, s):
    t = set(k * 5 for k in (40, 3, 9, 77))
    t.update(k + 1 for k in (100, 8, 2))
    t.update(iter([12, 13]))
    out.extend(t)
    out.append([list(frozenset(map(abs, (-7, 9, 64)))), len(t)])
    return x + len(t)


def changed(x, out, s):
    s.add(17)
    s.discard(9)
    for k in s:
        out.append(k)
    return x + len(s)


@pytest.mark.parametrize(
    "fn", [display, grown_and_shrunk, with_another, combined, from_iterators, changed]
)
def test_the_order_is_that_of_python(fn):
    cc.reset()
    compiled = cc.compile(fn, options={"strict": True})
    for start in ({9, 33, 1}, {100, 41, 3, 9}, {9, 33, 1}, {2**40, 7, 8}):
        x, expected, found = torch.randn(3), [], []
        theirs, ours = set(start), set(start)
        torch.testing.assert_close(compiled(x, found, ours), fn(x, expected, theirs))
        assert found == expected and list(ours) == list(theirs)
    assert cc.stats().graphs >= 1 and cc.stats().fallbacks == 0


@pytest.mark.parametrize("fn", [display, grown_and_shrunk, with_another, from_iterators])
def test_a_known_order_breaks_no_graph(fn):
    cc.reset()
    cc.compile(fn, options={"strict": True}, fullgraph=True)(torch.randn(3), [], {9, 33, 1})
    assert cc.stats().breaks == 0 and cc.stats().graphs == 1
