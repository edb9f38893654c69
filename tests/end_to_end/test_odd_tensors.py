"""A version that exists because of an odd input is for such inputs only: plain ones are compiled later."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc


class Own(torch.Tensor):
    """A subclass that changes nothing."""


def scaled(x):
    return x * 2 + 1


def changed_first(x, log):
    """The break is found when the trace has changed something: a second attempt makes it earlier."""
    log.append(1)
    return x[0] * 2 if log else x


ODD = {
    "subclass": lambda: torch.ones(3).as_subclass(Own),
    "sparse": lambda: torch.ones(3).to_sparse(),
    "conjugated": lambda: torch.ones(3, dtype=torch.complex64).conj(),
}


@pytest.mark.parametrize("kind", ["subclass", "conjugated"])
def test_a_plain_tensor_after_an_odd_one_is_compiled(kind):
    compiled = cc.compile(scaled, options=STRICT)
    compiled(ODD[kind]())
    with compiling(graphs=1, breaks=0):
        for x in (torch.ones(3), ODD[kind](), torch.zeros(3)):
            assert torch.equal(compiled(x), scaled(x))


def test_after_a_break_that_was_made_earlier():
    compiled = cc.compile(changed_first, options=STRICT)
    compiled(ODD["subclass"](), [])
    with compiling(graphs=1):
        for x in (torch.ones(3), torch.zeros(3)):
            log = []
            assert torch.equal(compiled(x, log), changed_first(x, [])) and log == [1]


def test_separate_inputs_after_overlapping_ones():
    def written(x, y):
        x.add_(1)
        return x * y

    compiled = cc.compile(written, options=STRICT)
    memory = torch.zeros(6)
    together = memory[:4], memory[2:]
    assert torch.equal(compiled(*together), torch.tensor([1.0, 1.0, 0.0, 0.0]))
    with compiling(graphs=1, breaks=0):
        for _ in range(2):
            assert torch.equal(compiled(torch.ones(4), torch.ones(4)), torch.full((4,), 2.0))
    memory = torch.zeros(6)
    assert torch.equal(compiled(memory[:4], memory[2:]), torch.tensor([1.0, 1.0, 0.0, 0.0]))
