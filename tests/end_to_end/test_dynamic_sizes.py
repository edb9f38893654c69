"""Sizes that change: marked ones, ones that the compiler learns of, and the recompile limit."""

from __future__ import annotations

import warnings

import pytest
import torch
from agreement import STRICT, agree, compiling
from programs import normalised

import compiler_core as cc
from compiler_core.errors import OptionError


def weighted(x):
    return (x.sin() * x.shape[0]).sum(0)


def marked(*shape, dims=(0,), **kwargs):
    x = torch.randn(*shape, **kwargs)
    cc.mark_dynamic(x, *dims)
    return x


def check(compiled, fn, x):
    torch.testing.assert_close(compiled(x), fn(x))


def test_one_version_serves_all_marked_sizes_from_two_on():
    compiled = cc.compile(weighted, options=STRICT)
    with compiling(graphs=1, recompiles=0):
        for size in range(2, 10):
            check(compiled, weighted, marked(size, 3))


def test_sizes_one_and_zero_have_versions_of_their_own():
    compiled = cc.compile(weighted, options=STRICT)
    with compiling(graphs=3, recompiles=2):
        for size in (5, 1, 0, 7, 1, 0, 2):
            check(compiled, weighted, marked(size, 3))


def test_two_marked_dimensions_forward_and_backward():
    compiled = cc.compile(normalised, options=STRICT)
    with compiling(graphs=1):
        for rows, columns in ((2, 3), (5, 4), (4, 8), (3, 3)):
            given = [marked(rows, columns, dims=(0, 1), requires_grad=True),
                     marked(columns, requires_grad=True), marked(columns, requires_grad=True)]  # fmt: skip
            eager = [v.detach().clone().requires_grad_() for v in given]
            ours, theirs = compiled(*given), normalised(*eager)
            torch.testing.assert_close(ours, theirs)
            ours.square().sum().backward(), theirs.square().sum().backward()
            for a, b in zip(given, eager):
                torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)


def test_a_size_that_changed_becomes_symbolic_at_the_second_version():
    calls = [(torch.randn(size, 3),) for size in (4, 5, 6, 9, 4)]
    agree(weighted, *calls, graphs=2, recompiles=1)


def test_sizes_of_transposed_and_sliced_tensors_that_changed():
    def f(x):
        return x.sin().sum(0), x * 2

    calls = [
        torch.randn(6, 4).t(),
        torch.randn(8, 4)[::2].t(),
        torch.randn(3, 4).t(),
        torch.randn(5, 7),
    ]
    agree(f, *((x,) for x in calls), breaks=0)


def test_a_number_that_changed_becomes_symbolic_at_the_second_version():
    def f(x, n):
        return x * n + n

    calls = [(torch.randn(4), n) for n in (3, 4, 5, 17, 3)]
    agree(f, *calls, graphs=2, recompiles=1)


def test_marking_a_dimension_that_is_not_there():
    with pytest.raises(OptionError, match="dimension 2 of a tensor with 2 dimensions"):
        cc.mark_dynamic(torch.randn(3, 4), 2)
    x = torch.randn(3, 4)
    cc.mark_dynamic(x, -1)
    with compiling(graphs=1):
        compiled = cc.compile(weighted, options=STRICT)
        for _ in range(3):
            check(compiled, weighted, x)


def by_name(x, name):
    return x * len(name) + 1


def test_at_the_recompile_limit_one_message_then_eager_and_right():
    compiled = cc.compile(by_name, options={**STRICT, "recompile_limit": 3})
    names = ["n" * k for k in range(1, 8)]
    x = torch.randn(4)
    with warnings.catch_warnings(record=True) as messages, compiling(graphs=3, recompiles=2):
        warnings.simplefilter("always")
        for name in names + names:
            assert torch.equal(compiled(x, name), by_name(x, name))
    (message,) = messages
    text = str(message.message)
    assert text.startswith("by_name was compiled 3 times, the limit") and "Last: name (" in text
    assert "recompile_limit" in text
    assert message.lineno == by_name.__code__.co_firstlineno


def test_another_request_is_not_held_by_the_limit_of_the_first():
    limited = cc.compile(by_name, options={**STRICT, "recompile_limit": 1})
    x = torch.randn(4)
    with pytest.warns(RuntimeWarning, match="limit"):
        limited(x, "a"), limited(x, "b")
    roomy = cc.compile(by_name, options=STRICT)
    with compiling(graphs=3):
        for name in ("a", "b", "cc", "a"):
            assert torch.equal(roomy(x, name), by_name(x, name))
            assert torch.equal(limited(x, name), by_name(x, name))
