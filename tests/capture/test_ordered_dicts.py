"""Both ends of an OrderedDict, made inside and from outside, are followed."""

from __future__ import annotations

from collections import OrderedDict

import torch
from capturing import agree

ONE = torch.ones(3)


def _turn(kept, x, k):
    kept["new"] = x * k
    kept.move_to_end("new", last=False)
    kept.move_to_end("a")
    seen = list(kept)
    first, last = kept.popitem(last=False), kept.popitem()
    other = kept.popitem(False) if k > 1 else None
    kept["b"] = k
    kept.move_to_end("b", False)
    return x + first[1], last, other, seen, list(kept.items())


def _errors():
    found = []
    for ask in (
        OrderedDict().popitem,
        {}.popitem,
        lambda: OrderedDict(a=1).move_to_end("z", False),
    ):
        try:
            ask()
        except KeyError as error:
            found.append(str(error))
    return found


def test_one_made_inside():
    def f(x, k):
        kept = OrderedDict(a=x, b=1, c=2)
        return _turn(kept, x + 1, k), kept, _errors()

    log = agree(lambda: f, [(ONE, k) for k in (1, 2, 3)])
    assert log.graph_calls == 3 and not log.breaks


def test_one_from_outside():
    def make():
        kept = OrderedDict(a=ONE, b=1, c=2, d=3)

        def f(x, k):
            return _turn(kept, x + 1, k)

        f.kept = kept
        return f

    def before(i, f):
        f.kept.update({f"more{i}": i, "a": ONE * i})

    log = agree(
        make, [(ONE, k) for k in (1, 2, 3)], state=lambda f: list(f.kept.items()), before=before
    )
    assert log.graph_calls == 3 and not log.breaks
