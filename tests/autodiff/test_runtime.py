"""The differentiable callable: calls, tangents, several backwards, gradients of gradients."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler_core.autodiff import attach
from compiler_core.errors import NotSupportedYet

T = torch.Tensor


def draw(*shape: int, seed: int = 0, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def close(a: Any, b: Any) -> None:
    torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def two_outputs(x: T, w: T) -> tuple[T, T]:
    return (x * w).sin(), w.exp()


def test_gradients_not_asked_for_are_none(staged: Any) -> None:
    run = staged(two_outputs, draw(3), draw(3))
    x, w = draw(3, seed=1), draw(3, seed=2)
    _, b = run.call(x, w)
    b.sum().backward()
    assert x.grad is None
    close(w.grad, w.detach().exp())
    a, _ = run.call(x, w)
    a.sum().backward()
    close(x.grad, w.detach() * (x.detach() * w.detach()).cos())


@pytest.mark.parametrize(
    "tangent",
    [
        torch.ones((), dtype=torch.double).expand(3, 4),
        draw(4, 3, grad=False).t(),
        draw(6, 8, grad=False)[::2, ::2],
        torch.zeros(3, 4, dtype=torch.double),
    ],
)
def test_tangents_of_any_strides(tangent: T, staged: Any) -> None:
    def fn(x: T) -> T:
        return (x.sin() @ x.t()) @ x

    run = staged(fn, draw(3, 4))
    seen: list[tuple[int, ...]] = []

    def backward(args: list[Any]) -> Any:
        seen.append(args[-1].stride())
        return run.partitioned.backward(*args)

    call = attach(run.partitioned, lambda a: run.partitioned.forward(*a), backward)
    x, y = draw(3, 4, seed=1), draw(3, 4, seed=1)
    call(x)[0].backward(tangent)
    fn(y).backward(tangent)
    close(x.grad, y.grad)
    assert seen == [(4, 1)]


def test_backward_twice_with_retain_graph_and_once_without(staged: Any) -> None:
    run = staged(lambda x: x.sin() * x, draw(3))
    x, y = draw(3, seed=1), draw(3, seed=1)
    (a,), b = run.call(x), y.sin() * y
    for result in (a, b):
        result.sum().backward(retain_graph=True)
        result.sum().backward()
    close(x.grad, y.grad)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        a.sum().backward()


def test_saved_values_are_freed_after_backward(staged: Any) -> None:
    run = staged(lambda x, w: (x @ w).sin(), draw(3, 3), draw(3, 3))
    held: list[Any] = []

    def forward(args: list[Any]) -> Any:
        results = run.partitioned.forward(*args)
        import weakref

        held.append(weakref.ref(results[-1].untyped_storage()))
        args.clear()
        return results

    call = attach(run.partitioned, forward, lambda a: run.partitioned.backward(*a))
    (y,) = call(draw(3, 3), draw(3, 3))
    y.sum().backward()
    del y
    gc.collect()
    assert held[0]() is None


def test_an_input_written_before_backward_is_an_error_as_in_eager(staged: Any) -> None:
    run = staged(lambda x, w: x * w, draw(3), draw(3))
    x, w = draw(3), draw(3)
    buffer = x.detach()
    (y,) = run.call(x, w)
    buffer.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def smooth(x: T, w: T) -> T:
    return (F.gelu(x @ w).softmax(-1) * x.detach()).sum()


def test_gradient_of_a_gradient(staged: Any) -> None:
    run = staged(smooth, draw(3, 3), draw(3, 3))
    for seed in (1, 3):
        x, w = draw(3, 3, seed=seed), draw(3, 3, seed=seed + 1)

        def penalty(value: T, x: T = x) -> T:
            (g,) = torch.autograd.grad(value, x, create_graph=True)
            return (g * g).sum()

        found = torch.autograd.grad(penalty(run.call(x, w)[0]), [x, w])
        wanted = torch.autograd.grad(penalty(smooth(x, w)), [x, w])
        for a, b in zip(found, wanted):
            close(a, b)


def test_gradient_of_a_gradient_by_finite_differences(staged: Any) -> None:
    run = staged(lambda x, w: (x.sin() * w).exp(), draw(3), draw(3))
    assert torch.autograd.gradgradcheck(lambda x, w: run.call(x, w)[0], [draw(3), draw(3, seed=1)])


def test_gradient_of_a_gradient_needs_its_inputs(staged: Any) -> None:
    run = staged(lambda x, w: x.sin() * w, draw(3), draw(3, grad=False))
    x = draw(3)
    (y,) = run.call(x, draw(3, seed=1, grad=False))
    gc.collect()
    # The second input lives on in what the backward pass saved, so it is still the same tensor.
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    close(torch.autograd.grad(g.sum(), x)[0], -x.detach().sin() * draw(3, seed=1, grad=False))


def test_gradient_of_a_gradient_is_refused_when_an_input_is_gone(staged: Any) -> None:
    def fn(x: T, shift: T) -> T:
        return (x + shift.abs().log()).exp()

    many = 1 << 14  # small inputs are held
    run = staged(fn, draw(many), draw(many, grad=False))
    x = draw(many)
    shift = draw(many, seed=1, grad=False)
    (y,) = run.call(x, shift)
    if "shift" in {s.node for s in run.partitioned.saved}:
        pytest.fail("the program was chosen so that this input is not saved")
    del shift
    gc.collect()
    with pytest.raises(NotSupportedYet, match="CC207.*no longer alive"):
        torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.autograd.grad(run.call(x, draw(many, grad=False))[0].sum(), x)


def test_gradient_of_a_gradient_is_refused_when_an_input_was_written(staged: Any) -> None:
    run = staged(lambda x, b: (x + b.abs().log()).exp(), draw(3), draw(3, grad=False))
    x, b = draw(3), draw(3, seed=1, grad=False)
    (y,) = run.call(x, b)
    b.add_(1)
    with pytest.raises(NotSupportedYet, match="CC207.*written"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


def test_grad_mode_off_at_the_call(staged: Any) -> None:
    run = staged(lambda x: x.sin().cos(), draw(3))
    x = draw(3)
    with torch.no_grad():
        (y,) = run.call(x)
    assert not y.requires_grad
    (y,) = run.call(x)
    assert y.requires_grad


def test_backward_is_called_first_at_the_first_backward(staged: Any) -> None:
    run = staged(lambda x: x.sin(), draw(3))
    made: list[str] = []

    def backward(args: list[Any]) -> Any:
        made.append("called")
        return run.partitioned.backward(*args)

    call = attach(run.partitioned, lambda a: run.partitioned.forward(*a), backward)
    (y,) = call(draw(3))
    assert made == []
    y.sum().backward()
    assert made == ["called"]


def test_autocast_is_off_while_a_graph_that_holds_its_casts_runs(staged: Any) -> None:
    def fn(x: T, w: T, v: T) -> T:
        return F.linear(x, w).exp() @ v

    x, w, v = (draw(4, 4, seed=s).detach().float().requires_grad_() for s in range(3))
    with torch.autocast("cpu", torch.bfloat16):
        run = staged(fn, x, w, v)
        (ours,), eager = run.call(x, w, v), fn(x, w, v)
    assert ours.dtype == eager.dtype == torch.bfloat16
    torch.testing.assert_close(ours, eager)
    found = torch.autograd.grad(ours.float().sum(), [x, w, v])
    wanted = torch.autograd.grad(eager.float().sum(), [x, w, v])
    for a, b in zip(found, wanted):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b)


def test_results_written_in_place_by_the_forward_call_itself(staged: Any) -> None:
    """Generated code may write straight into the input and return it."""

    def fn(b: T) -> T:
        b.add_(1)
        return b * 2

    run = staged(fn, draw(3, grad=False))

    def forward(args: list[Any]) -> Any:
        args[0].data.add_(1)
        return (args[0] * 2, args[0])

    call = attach(run.partitioned, forward, None)
    b = draw(3, seed=1, grad=False)
    before, version = b.clone(), b._version
    (y,) = call(b)
    close(b, before + 1)
    close(y, b * 2)
    assert b._version > version


def test_an_output_that_was_a_view_inside_may_be_written(staged: Any) -> None:
    def fn(x: T) -> T:
        return x.sin().t()

    run = staged(fn, draw(3, 4))
    x, y = draw(3, 4, seed=1), draw(3, 4, seed=1)
    ours, eager = run.call(x)[0].mul_(x.detach().t()), fn(y).mul_(y.detach().t())
    close(ours, eager)
    assert ours.stride() == eager.stride()
    close(*(torch.autograd.grad(o.exp().sum(), leaf)[0] for o, leaf in ((ours, x), (eager, y))))


def test_a_backward_part_needs_a_backward_call(staged: Any) -> None:
    run = staged(lambda x: x.sin(), draw(3))
    with pytest.raises(ValueError, match="backward_call"):
        attach(run.partitioned, lambda args: run.partitioned.forward(*args), None)


def per_call(function: Any, *args: Any) -> float:
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(2000):
            function(*args)
        best = min(best, (time.perf_counter() - start) / 2000)
    return best


def test_without_gradients_the_wrapper_costs_next_to_nothing(staged: Any) -> None:
    run = staged(lambda x: x.sin(), draw(3), grad=False)
    x = draw(3)
    result = (x.detach(),)
    call = attach(run.partitioned, lambda args: result, None)
    overhead = per_call(call, x) - per_call(lambda x: tuple([x] and result), x)
    assert overhead < 3e-6  # 1 µs on a quiet machine
