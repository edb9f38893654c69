"""Training with compiled code: optimizer steps, accumulation, frozen inputs, grad modes."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from agreement import STRICT, agree, compiling
from programs import Layer

import compiler_core as cc


def product(x, w):
    return (x @ w).tanh()


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_steps_follow_eager(optimizer):
    layer = Layer()
    eager, wide = copy.deepcopy(layer), copy.deepcopy(layer).double()
    models = (cc.compile(layer, options=STRICT), eager, wide)
    steppers = [optimizer(m.parameters(), lr=0.1) for m in models]
    with compiling(graphs=1, breaks=0):
        for _ in range(4):
            x = torch.randn(6, 4)
            for model, stepper in zip(models, steppers):
                stepper.zero_grad()
                model(x.to(model.shift.dtype)).square().sum().backward()
                stepper.step()
    for mine, theirs, truth in zip(*(m.state_dict().values() for m in models), strict=True):
        ours_off, eager_off = (abs(v.double() - truth).max() for v in (mine, theirs))
        assert ours_off <= max(4 * eager_off, 1e-5)  # errors add up over four steps


def test_gradients_accumulate_over_calls():
    eager_w, our_w = (torch.ones(4, 3, requires_grad=True) for _ in range(2))
    compiled = cc.compile(product, options=STRICT)
    with compiling(graphs=1):
        for k in range(3):
            x = torch.randn(2, 4) + k
            compiled(x, our_w).sum().backward(), product(x, eager_w).sum().backward()
            torch.testing.assert_close(our_w.grad, eager_w.grad)


def test_which_arguments_need_a_gradient_may_change():
    x, w = torch.randn(2, 4), torch.randn(4, 3)
    calls = [
        (x.clone().requires_grad_(a), w.clone().requires_grad_(b))
        for a, b in itertools.product((True, False), repeat=2)
    ]
    agree(product, *calls, *calls, breaks=0)


def test_grad_mode_and_inference_mode_between_training_calls():
    compiled, w = cc.compile(product, options=STRICT), torch.randn(4, 3, requires_grad=True)
    training, plain, inference = torch.enable_grad, torch.no_grad, torch.inference_mode
    with compiling(fallbacks=0):
        for mode in (training, plain, inference, training, inference, plain, training):
            x = torch.randn(2, 4)
            with mode():
                ours, eager = compiled(x, w), product(x, w)
            torch.testing.assert_close(ours, eager)
            assert ours.requires_grad is eager.requires_grad
            assert ours.is_inference() is eager.is_inference()
            if ours.requires_grad:
                mine, theirs = (torch.autograd.grad(o.sum(), w) for o in (ours, eager))
                torch.testing.assert_close(mine, theirs)


def test_inference_mode_has_a_version_of_its_own():
    compiled = cc.compile(product, options=STRICT)
    x, w = torch.randn(2, 4), torch.randn(4, 3)
    with compiling(graphs=2, breaks=0):
        for k in range(3):
            with torch.inference_mode():
                inside = compiled(x + k, w)
            outside = compiled(x + k, w)
            assert inside.is_inference() and not outside.is_inference()
            for ours in (inside, outside):
                torch.testing.assert_close(ours, product(x + k, w))


def test_inference_tensors_as_inputs():
    compiled = cc.compile(product, options=STRICT)
    with torch.inference_mode():
        inside = torch.randn(2, 4)
    w = torch.randn(4, 3)
    with compiling():
        for x in (inside, torch.randn(2, 4), inside):
            ours = compiled(x, w)
            torch.testing.assert_close(ours, product(x, w))
            assert not ours.is_inference()


def test_no_grad_inside_the_function():
    def partly(x):
        with torch.no_grad():
            scale = x.sin()
        return x * scale

    @torch.no_grad()
    def wholly(x):
        return x.sin()

    x = torch.randn(4, requires_grad=True)
    for f in (partly, wholly):
        agree(f, (x,), (x * 2,), (x.detach(),))


def test_detached_and_mixed_outputs_keep_their_flags():
    def f(x, y):
        return x * 2, y * 3, (x * y).detach(), x.detach() + 1

    x, y = torch.randn(4, requires_grad=True), torch.randn(4)
    agree(f, (x, y), (y, x), (y, y), (x, x.detach()), breaks=0)


def test_a_whole_training_step_as_one_function():
    """`backward` and the optimizer break the graph; what lies between is compiled."""
    layer = torch.nn.Linear(3, 2)
    eager = copy.deepcopy(layer)

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    compiled = cc.compile(step, options=STRICT)
    steppers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (layer, eager)]
    with compiling():
        for k in range(4):
            x = torch.randn(4, 3) + k
            ours, theirs = compiled(layer, steppers[0], x), step(eager, steppers[1], x)
            assert ours == pytest.approx(theirs, rel=1e-5)
            torch.testing.assert_close(layer.weight, eager.weight)
