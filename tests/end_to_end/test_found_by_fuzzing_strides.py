"""Strides that generated programs got wrong: inputs that are no leaves, have gaps, or are expanded."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc


def made(rows, columns):
    return torch.arange(float(rows * columns)).reshape(rows, columns).requires_grad_()


# Views of a leaf: inputs that require grad and are no leaves, whose strides a clone would not keep.
VIEWS = {
    "every other row": lambda n: made(2 * n, 4)[::2],
    "some columns": lambda n: made(n, 4)[:, 1:3],
    "expanded": lambda n: made(1, 4).expand(n, 4),
    "transposed": lambda n: made(4, n).t(),
}


def flat_and_more(x):
    return x.reshape(-1), x.is_contiguous(), x.sin()


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_an_input_that_is_no_leaf_keeps_its_strides(name, marked):
    compiled = cc.compile(flat_and_more, options=STRICT)
    with compiling(fallbacks=0):
        for n in (4, 6, 3, 4):
            x = VIEWS[name](n)
            if marked:
                cc.mark_dynamic(x, 0)
            ours, eager = compiled(x), flat_and_more(x)
            assert torch.equal(ours[0], eager[0]) and ours[1] is eager[1]
            torch.testing.assert_close(ours[2], eager[2])
            shares = [o.untyped_storage()._cdata == x.untyped_storage()._cdata for o in (ours[0], eager[0])]  # fmt: skip
            assert shares[0] == shares[1]
            mine, theirs = (torch.autograd.grad(o[0].square().sum() + o[2].sum(), x, retain_graph=True) for o in (ours, eager))  # fmt: skip
            torch.testing.assert_close(mine, theirs)


def rows(x):
    return x.sin().sum(0), x.max(0).values


def test_a_stride_that_follows_from_no_size_is_fixed_when_sizes_are_symbolic():
    compiled = cc.compile(rows, options=STRICT)
    with compiling(graphs=4):
        for n in (4, 5, 7):  # two strides with static rows, the same two with symbolic ones
            for step in (1, 2):
                x = torch.randn(n, 6)[:, : 3 * step : step]
                for mine, theirs in zip(compiled(x), rows(x)):
                    torch.testing.assert_close(mine, theirs)


EXPANDED = {
    "log_softmax": lambda x: x.log_softmax(0),
    "softmax in double": lambda x: x.softmax(0, dtype=torch.float64),
    "variance": lambda x: x.var(0),
    "maximum": lambda x: x.max(0),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_a_reduction_down_columns_that_are_all_one_element(name):
    fn = EXPANDED[name]
    compiled = cc.compile(fn, options=STRICT)
    with compiling():
        for x in (torch.randn(1, 3).expand(4, 3), torch.randn(1, 300).expand(500, 300), torch.randn(4, 3)):  # fmt: skip
            ours, eager = compiled(x), fn(x)
            torch.testing.assert_close(ours, eager)
