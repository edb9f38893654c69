"""Inputs written in place: values, versions, histories and errors equal eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from compiler_core.autodiff import attach, partition, trace_joint
from compiler_core.errors import InternalError
from compiler_core.options import Context, Options
from compiler_core.recording import Recorder
from compiler_core.stages import Joint

T = torch.Tensor


def call(function: Callable[..., Any], *args: Any, near: Any = None) -> Any:
    proxy = args[0] if near is None else near
    if isinstance(proxy, torch.fx.Proxy):
        return proxy.tracer.create_proxy("call_function", function, args, {})
    return function(*args)


def draw(*shape: int, seed: int = 0, grad: bool = False) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def running_mean(x: T, mean: T, count: T) -> T:
    call(torch._C._set_grad_enabled, False, near=x)
    mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
    count.add_(1)
    call(torch._C._set_grad_enabled, True, near=x)
    return (x - mean).square().sum()


def step(w: T, g: T) -> None:
    call(torch._C._set_grad_enabled, False, near=w)
    w.sub_(g, alpha=0.1)
    call(torch._C._set_grad_enabled, True, near=w)
    return w * 2


def through_view(x: T) -> tuple[T, T]:
    x.view(-1)[1].mul_(3)
    return x, x.t()


def buffer_gets_history(w: T, buffer: T) -> T:
    buffer.add_(w)
    return buffer * w


def exchange(x: T, y: T) -> T:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)
    return x - y


def through_data(x: T, w: T) -> T:
    y = w * x.data
    x.data.add_(1)
    return y


CASES: dict[str, tuple[Callable[..., Any], Callable[[int], list[Any]]]] = {
    "running_mean": (running_mean, lambda s: [draw(4, 3, seed=s, grad=True), draw(3, seed=s + 1), torch.tensor(s)]),
    "step": (step, lambda s: [draw(3, seed=s, grad=True), draw(3, seed=s + 1)]),
    "through_view": (through_view, lambda s: [draw(3, 2, seed=s)]),
    "buffer_gets_history": (buffer_gets_history, lambda s: [draw(3, seed=s, grad=True), draw(3, seed=s + 1)]),
    "through_data": (through_data, lambda s: [draw(3, seed=s), draw(3, seed=s + 1, grad=True)]),
    "exchange": (exchange, lambda s: [draw(3, seed=s), draw(3, seed=s + 1)]),
}  # fmt: skip


def flat(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple) else (outputs,)


def same(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert (one.requires_grad, one.is_leaf) == (other.requires_grad, other.is_leaf)
    assert one.stride() == other.stride()


@pytest.mark.parametrize("name", CASES)
def test_writes_equal_eager(name: str, staged: Any) -> None:
    fn, make = CASES[name]
    run = staged(fn, *make(0))
    for seed in (1, 4):
        ours, eager = make(seed), make(seed)
        versions = [t._version for t in ours]
        results, expected = flat(run.call(*ours)), flat(fn(*eager))
        for one, other in zip([*results, *ours], [*expected, *eager], strict=True):
            same(one, other)
        for before, one, other in zip(versions, ours, eager):
            assert name == "through_data" or (one._version > before) == (other._version > 0)
        roots = [(a, b) for a, b in zip([*results, *ours], [*expected, *eager]) if b.grad_fn]
        leaves = [(a, b) for a, b in zip(ours, eager) if b.requires_grad and b.is_leaf]
        if roots and leaves:
            found = torch.autograd.grad([a.sum() for a, _ in roots], [a for a, _ in leaves])
            wanted = torch.autograd.grad([b.sum() for _, b in roots], [b for _, b in leaves])
            for one, other in zip(found, wanted):
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_a_non_leaf_written_in_place_keeps_its_history(staged: Any) -> None:
    def scale(x: T, w: T) -> T:
        x.mul_(w)
        return x.sin()

    def make(seed: int) -> tuple[T, T, T]:
        x, w = draw(3, seed=seed, grad=True), draw(3, seed=seed + 1, grad=True)
        return x, x * 1, w

    run = staged(scale, *make(0)[1:])
    for seed in (2, 5):
        x, y, w = make(seed)
        (result,) = run.call(y, w)
        other_x, other_y, other_w = make(seed)
        expected = scale(other_y, other_w)
        same(result, expected)
        same(y, other_y)
        (result.sum() + (y * y).sum()).backward()
        (expected.sum() + (other_y * other_y).sum()).backward()
        torch.testing.assert_close(x.grad, other_x.grad, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(w.grad, other_w.grad, rtol=1e-12, atol=1e-12)


def test_a_view_of_a_written_non_leaf(staged: Any) -> None:
    def scale(x: T, w: T) -> tuple[T, T]:
        x.mul_(w)
        return x[0], x

    run = staged(scale, draw(2, 3, grad=True) * 1, draw(3, seed=1, grad=True))
    for seed in (2, 5):
        found, wanted = [], []
        for fn, results in ((run.call, found), (scale, wanted)):
            x, w = draw(2, 3, seed=seed, grad=True), draw(3, seed=seed + 1, grad=True)
            y = x * 1
            part, whole = fn(y, w)
            assert whole is y and part._base is y
            (part.exp().sum() + y.sin().sum()).backward()
            results += [part.detach(), y.detach(), x.grad, w.grad]
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_forward_graph_says_which_output_goes_into_which_input(staged: Any) -> None:
    run = staged(exchange, draw(3), draw(3))
    assert run.partitioned.forward.meta["mutated"] == ((0, 1), (1, 2))


def test_an_overwritten_input_is_not_saved(staged: Any) -> None:
    def fn(x: T, w: T) -> T:
        y = w * x.exp()
        x.add_(1)
        return y

    run = staged(fn, draw(3), draw(3, grad=True))
    assert "x" not in {s.node for s in run.partitioned.saved}
    x, w = draw(3, seed=3), draw(3, seed=4, grad=True)
    expected = x.exp()
    run.call(x, w)[0].sum().backward()
    torch.testing.assert_close(w.grad, expected, rtol=1e-12, atol=1e-12)


def test_an_overwritten_input_that_backward_reads_is_saved_as_a_copy(staged: Any) -> None:
    """A pass may remove the clone that eager makes; then the backward pass reads the input itself."""

    def fn(x: T, w: T) -> T:
        y = x.clone()
        x.add_(1)
        return y * w

    run = staged(fn, draw(3), draw(3, grad=True))
    joint = without_clones(run.joint)
    parts = partition(joint, Context(Options(strict=True), Recorder()))
    (record,) = parts.saved
    assert (record.node, record.reason) == ("x", "a copy of an input that is overwritten")
    call_ = attach(parts, lambda a: parts.forward(*a), lambda a: parts.backward(*a))
    x, w = draw(3, seed=3), draw(3, seed=4, grad=True)
    old = x.clone()
    call_(x, w)[0].sum().backward()
    torch.testing.assert_close(w.grad, old, rtol=0, atol=0)
    torch.testing.assert_close(x, old + 1, rtol=0, atol=0)


def test_results_that_a_pass_merged_have_memory_of_their_own(staged: Any) -> None:
    def fn(x: T, b: T) -> tuple[T, T, T]:
        b.copy_(x.exp().sum(0))
        return x.clone(), x.exp(), b.clone()

    run = staged(fn, draw(2, 3, grad=True), draw(3, grad=True) * 1)
    parts = partition(without_clones(run.joint), Context(Options(strict=True), Recorder()))
    call_ = attach(parts, lambda a: parts.forward(*a), lambda a: parts.backward(*a))
    found, wanted = [], []
    for function, results in ((call_, found), (fn, wanted)):
        x, b = draw(2, 3, seed=3, grad=True), draw(3, seed=4, grad=True)
        c = b * 1
        outputs = function(x, c)
        pointers = {t.untyped_storage().data_ptr() for t in (x, b, c, *outputs)}
        assert len(pointers) == 6
        sum((o * (i + 1)).sum() for i, o in enumerate((*outputs, c))).backward()
        results += [*(o.detach() for o in outputs), c.detach(), x.grad]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def without_clones(joint: Joint) -> Joint:
    """The joint with every clone, and every second computation of one value, taken out."""
    graph = copy.deepcopy(joint.graph)
    seen: dict[str, torch.fx.Node] = {}
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        is_clone = node.target is torch.ops.aten.clone.default
        same = node.args[0] if is_clone else seen.setdefault(f"{node.target}{node.args}", node)
        if same is not node:
            node.replace_all_uses_with(same)
            graph.graph.erase_node(node)
    graph.recompile()
    return replace(joint, graph=graph)


def test_leaf_written_in_place_is_left_to_eager(captured_of: Any) -> None:
    captured = captured_of(lambda x: x.add_(1), draw(3))
    (x,) = (n for n in captured.graph.graph.nodes if n.op == "placeholder")
    x.meta["requires_grad"] = True
    with pytest.raises(InternalError, match="CC204"):
        trace_joint(captured, Context(Options(strict=True), Recorder()))


def test_views_of_one_memory_are_refused_when_written(staged: Any) -> None:
    base = draw(4)
    with pytest.raises(InternalError, match=r"CC202.*a and b"):
        staged(lambda a, b: a.add_(b), base[:3], base[1:])
    staged(lambda a, b: a + b, base[:3], base[1:])


def test_metadata_written_in_place_is_refused(staged: Any) -> None:
    with pytest.raises(InternalError, match="CC203"):
        staged(lambda x: x.t_(), draw(3, 2))
