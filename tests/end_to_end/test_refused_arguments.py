"""Arguments that eager refuses are refused the same way: same type, same message, and later calls work."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling, copied
from torch.nn import functional as F

import compiler_core as cc


def refusal(fn, args):
    with pytest.raises(Exception) as caught:
        fn(*args)
    return type(caught.value), str(caught.value)


def added(x, y):
    return (x + y).sin()


def product(x, y):
    return (x @ y).relu()


def viewed(x, y):
    return x.view(3, -1) * 2


def joined(x, y):
    return torch.cat([x, y]).exp()


def indexed(x, y):
    return x[y] + 1


def attribute(x, y):
    return x.nothing_of_this_name + 1


def in_place_on_leaf(x, y):
    x.add_(1)
    return x * y


CASES = {
    "shapes": (added, (torch.ones(3), torch.ones(4)), (torch.ones(3), torch.ones(3))),
    "no_tensor": (added, (torch.ones(3), "a"), (torch.ones(3), torch.ones(3))),
    "none": (added, (torch.ones(3), None), (torch.ones(3), torch.ones(3))),
    "inner_sizes": (product, (torch.ones(2, 3), torch.ones(2, 3)), (torch.ones(2, 3), torch.ones(3, 2))),
    "dtypes": (product, (torch.ones(2, 3), torch.ones(3, 2, dtype=torch.int64)),
               (torch.ones(2, 3), torch.ones(3, 2))),
    "view": (viewed, (torch.ones(4), None), (torch.ones(6), None)),
    "view_strides": (viewed, (torch.ones(2, 6).t(), None), (torch.ones(2, 6), None)),
    "cat": (joined, (torch.ones(2, 3), torch.ones(2, 4)), (torch.ones(2, 3), torch.ones(1, 3))),
    "index": (indexed, (torch.ones(3), torch.tensor([5])), (torch.ones(3), torch.tensor([2]))),
    "index_type": (indexed, (torch.ones(3), 2.5), (torch.ones(3), 1)),
    "attribute": (attribute, (torch.ones(3), None), None),
    "leaf_in_place": (in_place_on_leaf, (torch.ones(3, requires_grad=True), torch.ones(3)),
                      (torch.ones(3), torch.ones(3))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bad_first", [True, False], ids=["bad_first", "good_first"])
def test_same_exception_as_eager(name, bad_first):
    fn, bad, good = CASES[name]
    compiled = cc.compile(fn, options=STRICT)
    expected = refusal(fn, bad)
    for is_bad in (bad_first, not bad_first, True, False, True):
        if is_bad:
            assert refusal(compiled, bad) == expected
        elif good is not None:
            torch.testing.assert_close(compiled(*copied(good)), fn(*copied(good)))
    if good is not None:
        cc.reset()
        with compiling():  # the good arguments alone are compiled
            ours = cc.compile(fn, options=STRICT)(*copied(good))
            torch.testing.assert_close(ours, fn(*copied(good)))


def test_wrong_number_of_arguments():
    compiled = cc.compile(added, options=STRICT)
    with compiling(graphs=1):
        for _ in range(2):
            assert refusal(compiled, ()) == refusal(added, ())
            assert refusal(compiled, (1, 2, 3)) == refusal(added, (1, 2, 3))
            compiled(torch.ones(2), torch.ones(2))


def test_the_programs_own_exceptions_pass():
    class Refused(Exception):
        pass

    def f(x, limit):
        if x.shape[0] > limit:
            raise Refused(f"{x.shape[0]} > {limit}")
        return x.sin()

    compiled = cc.compile(f, options=STRICT)
    with compiling():
        for size, limit in ((2, 3), (5, 3), (3, 3), (5, 3), (9, 2)):
            x = torch.randn(size)
            if size > limit:
                assert refusal(compiled, (x, limit)) == refusal(f, (x, limit))
            else:
                torch.testing.assert_close(compiled(x, limit), f(x, limit))


def test_an_exception_after_effects_leaves_them_as_eager_does():
    def f(x, seen):
        seen.append(float(x.shape[0]))
        y = x.sin()
        seen.append("half")
        return y @ torch.ones(3)

    ours, theirs = [], []
    compiled = cc.compile(f, options=STRICT)
    with compiling():
        for size in (3, 4, 3, 4, 3):
            x = torch.ones(size)
            outcomes = []
            for fn, seen in ((compiled, ours), (f, theirs)):
                try:
                    outcomes.append(fn(x, seen))
                except RuntimeError as error:
                    outcomes.append(str(error))
            torch.testing.assert_close(*outcomes) if size == 3 else None
            assert size == 3 or outcomes[0] == outcomes[1]
    assert ours == theirs


def test_a_target_that_is_out_of_range():
    def f(x, target):
        return F.cross_entropy(x * 2, target)

    compiled = cc.compile(f, options=STRICT)
    x = torch.randn(3, 4)
    with compiling():
        for target in ([0, 1, 2], [0, 1, 9], [3, 2, 1]):
            target = torch.tensor(target)
            if target.max() > 3:
                with pytest.raises((IndexError, RuntimeError), match="9 is out of bounds"):
                    compiled(x, target)
            else:
                torch.testing.assert_close(compiled(x, target), f(x, target))
