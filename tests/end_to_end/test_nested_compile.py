"""A compiled function or module called inside a compiled one is part of the same graph."""

from __future__ import annotations

import functools

import torch
from agreement import STRICT, compiling

import compiler_core as cc


def test_a_function_inside_a_function():
    inner = cc.compile(lambda x: x.sin(), options=STRICT)
    outer = cc.compile(lambda x: inner(x) + 1, options=STRICT)
    with compiling(graphs=1, breaks=0):
        for x in (torch.ones(3), torch.zeros(3)):
            assert torch.allclose(outer(x), x.sin() + 1)


def test_another_function_under_the_name_is_seen():
    functions = [cc.compile(f, options=STRICT) for f in (torch.nn.functional.relu, lambda x: x * 3)]

    def outer(x, inner):
        return inner(x) + 1

    compiled = cc.compile(outer, options=STRICT)
    with compiling():
        for inner in (functions[1], cc.compile(lambda x: x * 5, options=STRICT), functions[1]):
            x = torch.randn(3)
            assert torch.allclose(compiled(x, inner), inner(x) + 1)


def test_a_child_module():
    class Parent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.child = cc.compile(torch.nn.Linear(3, 3), options=STRICT)

        def forward(self, x):
            return self.child(x).relu()

    parent = Parent()
    compiled = cc.compile(parent, options=STRICT)
    with compiling(graphs=1, breaks=0):
        for x in torch.randn(2, 2, 3):
            weight, bias = parent.child.weight, parent.child.bias
            expected = torch.nn.functional.linear(x, weight, bias).relu()
            torch.testing.assert_close(compiled(x), expected)


def test_other_options_keep_their_own_graph():
    inner = cc.compile(lambda x: x.sin(), backend="eager", options=STRICT)
    outer = cc.compile(lambda x: inner(x) + 1, options=STRICT)
    with compiling(graphs=2, breaks=1):
        for x in (torch.ones(3), torch.zeros(3)):
            assert torch.allclose(outer(x), x.sin() + 1)


def test_a_wrapper_that_copies_the_mark_is_itself_called():
    inner = cc.compile(lambda x: x.sin(), options=STRICT)

    @functools.wraps(inner)
    def doubled(x):
        return inner(x) * 2

    outer = cc.compile(lambda x: doubled(x) + 1, options=STRICT)
    with compiling(graphs=1, breaks=0):
        assert torch.allclose(outer(torch.ones(3)), torch.ones(3).sin() * 2 + 1)
