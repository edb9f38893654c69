"""Frames called in inference mode are compiled: results are what they are in eager, inference tensors among them."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc

W = torch.randn(4, 4, requires_grad=True)


def with_grad_switched_on(x):
    with torch.enable_grad():
        y = x @ W
    return y, y.requires_grad


def answers(x):
    inside, on = x.is_inference(), torch.is_inference_mode_enabled()
    return x * 2, (x * 2).is_inference(), x.view(-1).is_inference(), inside, on


def written(x):
    x[0].mul_(2)
    return x.add_(1)


PROGRAMS = {
    "product": lambda x: x @ W + 1,
    "views of a parameter": lambda x: (W.view(-1), W.t() + x, W[0]),
    "views and values": lambda x: (x.view(-1), x * 2, x.detach()),
    "new tensors": lambda x: (torch.zeros(3), torch.arange(x.shape[0])),
    "written": written,
    "answers": answers,
    "grad mode inside": with_grad_switched_on,
}
ORDER = [(True, False), (True, True), (False, False), (True, False), (False, True), (True, True)]


def outcome(fn, x, mode):
    """Result leaves (or the error's type) and the input, with what autograd knows of each."""
    try:
        with torch.inference_mode(mode):
            result = fn(x)
    except RuntimeError as error:
        return type(error)
    leaves = [*result, x] if isinstance(result, tuple) else [result, x]
    return [facts(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def facts(t):
    autograd = t.requires_grad, t.is_inference(), t.grad_fn is None
    return t.tolist(), t.dtype, t.stride(), autograd


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_and_out_of_inference_mode(name):
    """(mode, whether the input was made in the mode): every order finds its own version."""
    fn = PROGRAMS[name]
    compiled = cc.compile(fn, options=STRICT)
    with compiling(fallbacks=0, skipped_frames=0):
        for mode, inside in ORDER:
            with torch.inference_mode(inside):
                x = torch.randint(-3, 4, (4, 4)).float()
                twin = x.clone()
            ours, eager = outcome(compiled, x, mode), outcome(fn, twin, mode)
            assert str(ours) == str(eager), (mode, inside)


def test_a_graph_of_its_own_per_mode_and_no_backward():
    def product(x):
        return x @ W

    compiled = cc.compile(product, options=STRICT)
    with compiling(graphs=2, recompiles=1):
        for mode in (True, False, True, False):
            with torch.inference_mode(mode):
                y = compiled(torch.ones(2, 4))
            assert y.is_inference() is mode and y.requires_grad is not mode


def test_a_break_in_inference_mode_goes_on_compiled():
    def broken(x, log):
        y = x * 2
        log.append(y.sum().item())
        return y @ W

    compiled = cc.compile(broken, options=STRICT)
    with torch.inference_mode(), compiling(graphs=2, breaks=1):
        for k in (1.0, 2.0, 3.0):
            x, ours, eager = torch.full((2, 4), k), [], []
            assert torch.equal(compiled(x, ours), broken(x, eager)) and ours == eager


def test_an_inference_tensor_that_requires_grad_outside_the_mode():
    """Eager multiplies it by a number, for which nothing is saved."""
    compiled = cc.compile(lambda x: x * 2, options=STRICT)
    with torch.inference_mode():
        inside = torch.ones(3, requires_grad=True)
    with compiling():
        for x in (inside, torch.ones(3, requires_grad=True), inside):
            y = compiled(x)
            assert y.requires_grad and y.tolist() == [2.0] * 3
