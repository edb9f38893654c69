"""Programs through the whole stage: outputs, metadata and gradients equal eager's, call after call."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

T = torch.Tensor


def leaf(*shape: int, seed: int = 0, dtype: torch.dtype = torch.double, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_(grad)


def call(function: Callable[..., Any], *args: Any, near: Any = None, **kwargs: Any) -> Any:
    """Call, or record the call as capture does where `torch.fx` would not."""
    proxy = args[0] if near is None else near
    if isinstance(proxy, torch.fx.Proxy):
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)
    return function(*args, **kwargs)


def sin_cos(x: T) -> T:
    return x.sin().cos()


def mlp(x: T, w1: T, b1: T, g: T, b: T, w2: T, t: T) -> tuple[T, T]:
    h = F.layer_norm(F.linear(x, w1, b1), (w1.shape[0],), g, b)
    y = F.linear(F.gelu(h), w2)
    return F.mse_loss(y, t), y.softmax(-1)


def classify(x: T, w: T, target: T) -> T:
    return F.cross_entropy(F.linear(x, w), target, label_smoothing=0.1)


def in_place(x: T, s: T) -> T:
    y = x * 2
    y.mul_(s)
    y.view(-1)[0].add_(1.0)
    y[:, 1].copy_(x[:, 0])
    return torch.relu_(y) + y.exp()


def index_assign(x: T, v: T) -> T:
    y = x.clone()
    call(operator.setitem, y, (slice(1, None), 2), v)
    return y * x


def broadcast(x: T, row: T) -> T:
    return (x.unsqueeze(0).expand(3, 2, 4) * row).sum((0, 2))


def some_need_no_grad(x: T, w: T) -> tuple[T, T, T]:
    y = x @ w
    return y, y.argmax(-1), y.detach().mean() + 1


def constants(x: T) -> tuple[Any, ...]:
    return x + 1, None, 3, 2.5


def no_grad_region(x: T, w: T) -> T:
    y = x * w
    call(torch._C._set_grad_enabled, False, near=x)
    scale = y.abs().amax()
    call(torch._C._set_grad_enabled, True, near=x)
    return y / scale


def detached(x: T) -> T:
    return x.detach().exp() * x


def scalars_from_python(x: T) -> T:
    two = call(torch.tensor, 2.0, dtype=torch.double, near=x)
    return x * two + call(torch.ones, 3, dtype=torch.double, near=x)


def table_from_python(x: T) -> T:
    table = call(torch.tensor, [1.0, 2.0, 4.0], near=x)
    return x * table.exp() + table


def chunks(x: T, w: T) -> tuple[T, T, T]:
    parts = torch.chunk(x @ w, 3, -1)
    return parts[0], parts[1], parts[2]


def view_and_base(x: T) -> tuple[T, T, T]:
    y = x.sin()
    return y[0], y, y.detach()


def views_without_gradient(x: T) -> tuple[T, T, T]:
    y = x.sin()
    return y.detach()[0], y.detach()[1:], (y * 2).sum()


def same_twice(x: T) -> tuple[T, T, T]:
    y = x.cos()
    return y, x, y


def views_of_inputs(x: T) -> tuple[T, T, T, T]:
    return x.view(-1), x[1:, ::2], x.t(), x.detach()


def copy_of_input(x: T) -> tuple[T, T]:
    y = torch.empty_like(x)
    y.copy_(x)
    return y, y + 1


def attention(q: T, k: T, v: T) -> T:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def integer_index(table: T, index: T) -> T:
    return F.embedding(index, table).sum(0) * (index.double().mean())


def nothing_depends(x: T) -> T:
    return torch.zeros_like(x)


def reuse(x: T) -> T:
    y = x.exp()
    return y * y + y.sin() + x


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[int], list[Any]]]] = {
    "sin_cos": (sin_cos, lambda s: [leaf(3, 4, seed=s)]),
    "mlp": (
        mlp,
        lambda s: [
            leaf(5, 4, seed=s), leaf(6, 4, seed=s + 1), leaf(6, seed=s + 2), leaf(6, seed=s + 3),
            leaf(6, seed=s + 4), leaf(2, 6, seed=s + 5), leaf(5, 2, seed=s + 6, grad=False),
        ],
    ),
    "classify": (
        classify,
        lambda s: [leaf(4, 3, seed=s), leaf(5, 3, seed=s + 1), torch.tensor([0, 4, s % 5, 1])],
    ),
    "in_place": (in_place, lambda s: [leaf(3, 4, seed=s), leaf(4, seed=s + 1)]),
    "index_assign": (index_assign, lambda s: [leaf(3, 4, seed=s), leaf(2, seed=s + 1)]),
    "broadcast": (broadcast, lambda s: [leaf(2, 4, seed=s), leaf(4, seed=s + 1)]),
    "some_need_no_grad": (some_need_no_grad, lambda s: [leaf(3, 4, seed=s), leaf(4, 2, seed=s + 1)]),
    "constants": (constants, lambda s: [leaf(3, seed=s)]),
    "no_grad_region": (no_grad_region, lambda s: [leaf(3, 4, seed=s), leaf(4, seed=s + 1)]),
    "detached": (detached, lambda s: [leaf(3, seed=s)]),
    "scalars_from_python": (scalars_from_python, lambda s: [leaf(2, 3, seed=s)]),
    "table_from_python": (table_from_python, lambda s: [leaf(2, 3, seed=s)]),
    "chunks": (chunks, lambda s: [leaf(2, 4, seed=s), leaf(4, 6, seed=s + 1)]),
    "view_and_base": (view_and_base, lambda s: [leaf(3, 4, seed=s)]),
    "views_without_gradient": (views_without_gradient, lambda s: [leaf(3, 4, seed=s)]),
    "same_twice": (same_twice, lambda s: [leaf(3, seed=s)]),
    "views_of_inputs": (views_of_inputs, lambda s: [leaf(3, 4, seed=s)]),
    "views_of_part": (views_of_inputs, lambda s: [leaf(6, 4, seed=s).detach()[3:].requires_grad_()]),
    "copy_of_input": (copy_of_input, lambda s: [leaf(3, 4, seed=s)]),
    "attention": (
        attention, lambda s: [leaf(1, 2, 5, 4, seed=s + i, dtype=torch.float) for i in range(3)],
    ),
    "integer_index": (
        integer_index, lambda s: [leaf(5, 3, seed=s), torch.tensor([0, 2, 2, s % 5])],
    ),
    "nothing_depends": (nothing_depends, lambda s: [leaf(3, seed=s)]),
    "reuse": (reuse, lambda s: [leaf(3, 4, seed=s)]),
    "zero_size": (reuse, lambda s: [leaf(0, 4, seed=s)]),
    "transposed": (reuse, lambda s: [leaf(4, 3, seed=s).detach().t().requires_grad_()]),
    "not_dense": (reuse, lambda s: [leaf(6, 3, seed=s).detach()[::2].requires_grad_()]),
}  # fmt: skip


def flat(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def same(ours: Any, eager: Any) -> None:
    """Equal values and equal metadata."""
    assert type(ours) is type(eager)
    if not isinstance(eager, torch.Tensor):
        assert ours == eager
        return
    torch.testing.assert_close(ours, eager, rtol=1e-12, atol=1e-12)
    assert ours.stride() == eager.stride()
    assert ours.requires_grad == eager.requires_grad
    assert ours.is_leaf == eager.is_leaf


def gradients(outputs: tuple[Any, ...], inputs: list[Any], seed: int = 0) -> list[Any]:
    roots = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
    leaves = [i for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]
    if not roots:
        return []
    generator = torch.Generator().manual_seed(seed)
    tangents = [torch.randn(o.shape, dtype=o.dtype, generator=generator) for o in roots]
    return list(torch.autograd.grad(roots, leaves, tangents, allow_unused=True))


def sharing(inputs: list[Any], outputs: tuple[Any, ...]) -> list[int]:
    """Which tensors share memory, as a canonical labelling."""
    keys = [
        t.untyped_storage().data_ptr()
        for t in (*inputs, *outputs)
        if isinstance(t, T) and t.numel()
    ]
    return [keys.index(key) for key in keys]


@pytest.mark.parametrize("recompute", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_equals_eager(name: str, recompute: bool, staged: Any) -> None:
    fn, make = PROGRAMS[name]
    run = staged(fn, *make(0), recompute=recompute)
    for seed in (0, 7, 21):
        inputs, again = make(seed), make(seed)
        ours, eager = run.call(*inputs), flat(fn(*again))
        assert len(ours) == len(eager)
        for one, other in zip(ours, eager):
            same(one, other)
        assert sharing(inputs, ours) == sharing(again, eager)
        assert [any(o is i for i in inputs) for o in ours] == [
            any(o is i for i in again) for o in eager
        ]
        for one, other in zip(gradients(ours, inputs), gradients(eager, again), strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert torch.is_grad_enabled()


def test_views_of_inputs_that_start_elsewhere_in_memory(staged: Any) -> None:
    run = staged(views_of_inputs, leaf(3, 4))
    base, other = leaf(9, 4, seed=1, grad=False), leaf(9, 4, seed=1, grad=False)
    for start in (0, 2, 6):
        x, y = base[start : start + 3], other[start : start + 3]
        for one, wanted in zip(run.call(x), views_of_inputs(y)):
            same(one, wanted)
            assert one.storage_offset() == wanted.storage_offset()


@pytest.mark.parametrize("name", PROGRAMS)
def test_joint_graph_runs_by_itself(name: str, staged: Any) -> None:
    """The joint graph, called with inputs and tangents, gives outputs and gradients."""
    fn, make = PROGRAMS[name]
    joint = staged(fn, *make(0)).joint
    inputs = make(3)
    eager = flat(fn(*make(3)))
    tangents = [n.meta["val"] for n in joint.graph.graph.nodes if n.op == "placeholder"]
    given = [torch.ones(t.shape, dtype=t.dtype) for t in tangents[joint.primals :]]
    with torch.no_grad():
        results = joint.run(*inputs, *given)
    for one, other in zip(results, eager):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(one, other.detach(), rtol=1e-12, atol=1e-12)
        else:
            assert one == other
    assert len(results) == joint.outputs + len(joint.mutated) + len(joint.diff_inputs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_grad_has_no_backward(name: str, staged: Any) -> None:
    fn, make = PROGRAMS[name]
    run = staged(fn, *make(0), grad=False)
    assert run.partitioned.backward is None and run.partitioned.saved == ()
    with torch.no_grad():
        ours, eager = run.call(*make(5)), flat(fn(*make(5)))
    for one, other in zip(ours, eager):
        same(one, other)


def test_inference_mode(staged: Any) -> None:
    x, w = leaf(3, 4), leaf(4, 2, seed=1)
    with torch.inference_mode():
        run = staged(lambda x, w: (x @ w, x.t()), x, w, grad=False, inference=True)
        ours, eager = run.call(x, w), (x @ w, x.t())
        for one, other in zip(ours, eager):
            same(one, other)
            assert one.is_inference() == other.is_inference()
    assert run.partitioned.backward is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_bytes_are_the_bytes_held(name: str, staged: Any) -> None:
    fn, make = PROGRAMS[name]
    run = staged(fn, *make(0))
    if run.partitioned.backward is None:
        assert run.partitioned.saved == ()
        return
    held: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    inputs = make(1)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        run.call(*inputs)
    assert sum(held.values()) == sum(s.bytes or 0 for s in run.partitioned.saved)


@pytest.mark.parametrize("name", PROGRAMS)
def test_tracing_twice_gives_the_same_text(name: str, staged: Any) -> None:
    fn, make = PROGRAMS[name]
    first, second = staged(fn, *make(0)), staged(fn, *make(1))
    assert first.partitioned.digest() == second.partitioned.digest()
    assert first.joint.digest() == second.joint.digest()
