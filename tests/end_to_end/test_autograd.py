"""Autograd around compiled code: second derivatives, retained graphs, hooks, checkpoints, transforms."""

from __future__ import annotations

import copy

import pytest
import torch
from agreement import STRICT, compiling, outcome, same_outcome
from torch.utils.checkpoint import checkpoint

import compiler_core as cc


def test_backward_from_one_output_leaves_the_other_without_gradient():
    compiled = cc.compile(lambda x, y: (x * 2, y.sin()), options=STRICT)
    with compiling(graphs=1):
        for first in (True, False, True):
            x, y = (torch.randn(3, requires_grad=True) for _ in range(2))
            outputs = compiled(x, y)
            outputs[0 if first else 1].sum().backward()
            assert (x.grad is None, y.grad is None) == (not first, first)


def test_retain_graph_then_refusal_as_in_eager():
    def f(x):
        return (x.sin() * x).sum()

    compiled = cc.compile(f, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            messages, gradients = [], []
            for fn in (compiled, f):
                x = torch.linspace(-1, 1 + k, 5, requires_grad=True)
                y = fn(x)
                y.backward(retain_graph=True), y.backward()
                with pytest.raises(RuntimeError, match="a second time") as refusal:
                    y.backward()
                messages.append(str(refusal.value)), gradients.append(x.grad)
            torch.testing.assert_close(*gradients)
            assert messages[0] == messages[1]


def test_second_derivative():
    def f(x):
        return (x.sin() * x * x).sum()

    def gradient_of(fn):
        def run(x):
            (first,) = torch.autograd.grad(fn(x), x, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), x)
            return first.detach(), second

        return run

    compiled = cc.compile(f, options=STRICT)
    with compiling():
        for k in range(3):
            x = torch.linspace(-1, 1 + k, 5, requires_grad=True)
            runs = [
                outcome(gradient_of(fn), [a], False)
                for fn, a in ((compiled, x), (f, x), (f, x.detach().double().requires_grad_()))
            ]
            same_outcome(*runs, f"call {k}")


def test_numerical_derivatives_agree():
    compiled = cc.compile(lambda x, y: (x.sin() * y).sum(0) * y, options=STRICT)
    with compiling(breaks=0):
        for k in range(3):
            given = [
                torch.rand(3, 2 + k, dtype=torch.float64, requires_grad=True) for _ in range(2)
            ]
            assert torch.autograd.gradcheck(compiled, given)
            assert torch.autograd.gradgradcheck(compiled, given)


def test_gradient_penalty():
    """A loss made of a gradient: the second derivative reaches the parameters."""
    layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Softplus(), torch.nn.Linear(8, 1))
    eager, compiled = copy.deepcopy(layers), cc.compile(layers, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            x = torch.randn(3, 4) + k
            for model in (compiled, eager):
                model.zero_grad()
                given = x.clone().requires_grad_()
                (slope,) = torch.autograd.grad(model(given).sum(), given, create_graph=True)
                (slope.norm(dim=1) - 1).square().mean().backward()
            for mine, theirs in zip(layers.parameters(), eager.parameters()):
                torch.testing.assert_close(mine.grad, theirs.grad)


def test_checkpointed_compiled_module():
    layer = torch.nn.Linear(4, 4)
    eager, compiled = copy.deepcopy(layer), cc.compile(layer, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            results = []
            for model in (compiled, eager):
                model.zero_grad()
                x = torch.full((2, 4), k + 1.0, requires_grad=True)
                checkpoint(model, x, use_reentrant=False).sum().backward()
                results.append((x.grad, model.weight.grad.clone()))
            torch.testing.assert_close(*results)


def test_hooks_on_saved_tensors_see_those_of_the_program_alone():
    compiled = cc.compile(lambda x: (x.sin() * x).sum(), options=STRICT)
    counts = []
    with compiling(graphs=1):
        for k in range(3):
            packed = []
            x = torch.randn(4, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(
                lambda t: packed.append(t.shape) or t, lambda t: t
            ):
                y = compiled(x)
            y.backward()
            torch.testing.assert_close(x.grad, (x.cos() * x + x.sin()).detach())
            counts.append(len(packed))
    assert counts[0] == counts[1] == counts[2] > 0


def test_input_changed_before_backward_is_refused_as_in_eager():
    compiled = cc.compile(lambda x, w: (x * w).sum(), options=STRICT)
    w = torch.randn(3, requires_grad=True)
    with compiling(graphs=1):
        for _ in range(3):
            x = torch.randn(3)
            y = compiled(x, w)
            x.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.backward()


def test_gradient_hooks_of_tensors_run():
    compiled = cc.compile(lambda x: (x * 3).sum(), options=STRICT)
    with compiling(graphs=1):
        for factor in (1, 2, 3):
            x = torch.randn(3, requires_grad=True)
            x.register_hook(lambda g: g * factor)
            compiled(x).backward()
            assert torch.equal(x.grad, torch.full((3,), 3.0 * factor))


def test_transforms_of_torch_func_and_modes_run_in_eager_and_are_right():
    def f(x):
        return x.sin() * x

    compiled = cc.compile(f, options=STRICT)
    x = torch.randn(3, 4)
    with compiling(graphs=1):
        for _ in range(2):
            torch.testing.assert_close(torch.func.vmap(compiled)(x), f(x))
            ours = torch.func.grad(lambda x: compiled(x).sum())(x)
            torch.testing.assert_close(ours, torch.func.grad(lambda x: f(x).sum())(x))
            torch.testing.assert_close(compiled(x), f(x))
