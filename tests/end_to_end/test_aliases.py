"""Who shares memory with whom: one object given twice, arguments written in place, outputs that are views."""

from __future__ import annotations

import torch
from agreement import STRICT, agree, compiling

import compiler_core as cc


def test_the_same_object_given_twice():
    def f(x, y):
        return x * y + x

    x = torch.randn(3, 4, requires_grad=True)
    agree(f, (x, x), (x, torch.randn(3, 4)), (x, x), graphs=2)


def test_the_same_object_written_through_one_of_two_names():
    def f(x, y):
        x.add_(1)
        return x * y

    x = torch.randn(4)
    agree(f, (x, torch.randn(4)), (x, x), (torch.randn(4), x))


def test_overlapping_arguments_one_of_them_written():
    def f(x, y):
        x.mul_(2)
        return x + y

    compiled = cc.compile(f, options=STRICT)
    with compiling():
        for first, second in ((slice(0, 4), slice(4, 8)), (slice(0, 4), slice(2, 6))) * 2:
            memory = torch.arange(8.0)
            other = memory.clone()
            ours = compiled(memory[first], memory[second])
            assert torch.equal(ours, f(other[first], other[second]))
            assert torch.equal(memory, other)


def test_arguments_written_in_place():
    def f(x, y):
        x.add_(y)
        y[0] = 5.0
        y[1:].mul_(x[1:])
        return x.sum()

    agree(f, *[(torch.randn(4) + k, torch.randn(4)) for k in range(3)], graphs=1)


def test_written_argument_and_gradient():
    def f(x, memory):
        memory.copy_(x.detach() * 2)
        return (x * memory).sum()

    calls = [(torch.randn(4, requires_grad=True), torch.zeros(4)) for _ in range(3)]
    agree(f, *calls, graphs=1)


def test_outputs_that_are_the_input():
    def f(x):
        return x, x * 2, x

    compiled = cc.compile(f, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            x = torch.randn(3) + k
            first, _, third = compiled(x)
            assert first is x and third is x


def test_outputs_that_are_views_of_the_input():
    def f(x):
        return x.view(-1), x[1:], x.t(), x * 2

    compiled = cc.compile(f, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            x = torch.randn(3, 4) + k
            flat, rest, turned, _ = compiled(x)
            for view, eager in zip((flat, rest, turned), f(x)):
                assert view.data_ptr() == eager.data_ptr() and view._is_view()
                assert (view.shape, view.stride()) == (eager.shape, eager.stride())
            flat[5] = 7.0
            assert x[1, 1] == 7.0 and rest[0, 1] == 7.0 and turned[1, 1] == 7.0
    agree(f, *[(torch.randn(3, 4, requires_grad=k == 1),) for k in range(3)])


def test_writing_to_a_returned_view_reaches_autograd():
    def f(x):
        return x.view(-1), x + 1

    compiled = cc.compile(f, options=STRICT)
    with compiling():
        for factor in (2.0, 3.0, 4.0):
            gradients = []
            for fn in (compiled, f):
                x = torch.ones(2, 2, requires_grad=True)
                inner = x * 1
                fn(inner)[0].mul_(factor)
                inner.sum().backward()
                gradients.append(x.grad)
            assert torch.equal(*gradients)


def test_outputs_that_share_memory_with_each_other():
    def f(x):
        y = x.sin()
        return y, y.view(-1), y[0]

    compiled = cc.compile(f, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            y, flat, row = compiled(torch.randn(3, 4) + k)
            flat[0] = 9.0
            assert y[0, 0] == 9.0 and row[0] == 9.0


def test_results_of_one_call_survive_the_next():
    compiled = cc.compile(lambda x: (x * 2, (x * 2).sum()), options=STRICT)
    with compiling(graphs=1):
        kept = [compiled(torch.full((4,), float(k))) for k in range(4)]
    assert [(a[0].item(), b.item()) for a, b in kept] == [(2.0 * k, 8.0 * k) for k in range(4)]


def test_slices_written_and_views_updated():
    def f(x):
        y = x.clone()
        y[1:3] += 1
        y.view(-1)[0] = -1
        z = y.t()
        z.mul_(2)
        return y, z.sum(0)

    agree(f, *[(torch.randn(4, 3) + k,) for k in range(3)], graphs=1)
    agree(f, *[(torch.randn(4, 3, requires_grad=True),) for _ in range(3)], graphs=1)


def test_a_view_of_an_input_written_in_the_function():
    def f(x):
        x[0].zero_()
        x.view(-1)[-1:].add_(3)
        return x * 2

    agree(f, *[(torch.randn(3, 4) + k,) for k in range(3)], graphs=1)


def test_a_view_of_an_input_without_gradient_names_it_as_its_base():
    def f(x):
        return x.view(-1), x[1:].t(), x.detach().view(-1), x + 1

    compiled = cc.compile(f, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            x = torch.randn(3, 4) + k
            for ours, eager in zip(compiled(x), f(x)):
                assert (ours._base is x) == (eager._base is x)
            version = x._version
            compiled(x)[0].add_(1)
            assert x._version == version + 1
