"""One joint graph for many sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

T = torch.Tensor


def draw(*shape: int, seed: int = 0, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def size(x: Any, axis: int) -> Any:
    if isinstance(x, torch.fx.Proxy):
        return x.tracer.create_proxy("call_function", torch.ops.aten.sym_size.int, (x, axis), {})
    return x.size(axis)


def mlp(x: T, w: T, v: T) -> tuple[T, T]:
    h = F.gelu(F.linear(x, w))
    return F.layer_norm(h, (6,)).softmax(0).mean(), F.linear(h, v)


def sizes(x: T) -> tuple[T, Any, Any]:
    n = size(x, 0)
    m = n * 2
    return x.sum(0) / n + m, n, m


def reshaped(x: T) -> tuple[T, T, T]:
    y = x.sin()
    return y.view(-1), y, x.view(-1)[2:]


def chunks(x: T, w: T) -> tuple[T, T]:
    parts = torch.chunk(x @ w, 2, -1)
    return parts[0], parts[1]


def written(x: T, buffer: T) -> T:
    buffer.view(-1)[1:].add_(1)
    return (x * buffer).sum(0)


PROGRAMS = {
    "mlp": (mlp, lambda n: [draw(n, 4, seed=n), draw(6, 4, seed=1), draw(2, 6, seed=2)]),
    "sizes": (sizes, lambda n: [draw(n, 3, seed=n)]),
    "reshaped": (reshaped, lambda n: [draw(n, 3, seed=n)]),
    "chunks": (chunks, lambda n: [draw(n, 3, seed=n), draw(3, 4, seed=1)]),
    "written": (written, lambda n: [draw(n, 3, seed=n), draw(n, 3, seed=n + 1, grad=False)]),
}


@pytest.mark.parametrize("recompute", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_from_one_joint(name: str, recompute: bool, staged: Any) -> None:
    fn, make = PROGRAMS[name]
    dynamic = {0: (0,), 1: (0,)} if name == "written" else {0: (0,)}
    if name == "written":
        fn = lambda x, b: written(x, b)  # noqa: E731
    run = staged(fn, *make(5), dynamic=dynamic, recompute=recompute)
    for batch in range(2, 10):
        ours, eager = make(batch), make(batch)
        results, expected = run.call(*ours), fn(*eager)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(results, expected, strict=True):
            if not isinstance(other, torch.Tensor):
                assert one == other
                continue
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
            assert one.stride() == other.stride() and one.requires_grad == other.requires_grad
        roots = [(a, b) for a, b in zip(results, expected) if getattr(b, "requires_grad", False)]
        leaves = [(a, b) for a, b in zip(ours, eager) if b.requires_grad]
        found = torch.autograd.grad([(a * a).sum() for a, _ in roots], [a for a, _ in leaves])
        wanted = torch.autograd.grad([(b * b).sum() for _, b in roots], [b for _, b in leaves])
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_sizes_are_saved_first_and_named(staged: Any) -> None:
    run = staged(sizes, draw(5, 3), dynamic={0: (0,)})
    kinds = [
        isinstance(n.meta["val"], torch.Tensor)
        for n in run.partitioned.backward.graph.nodes
        if n.op == "placeholder"
    ]
    assert kinds == sorted(kinds)
    assert kinds[0] is False
    assert run.partitioned.saved[0].bytes == 0


def test_size_nodes_come_from_the_captured_size(staged: Any) -> None:
    run = staged(sizes, draw(5, 3), dynamic={0: (0,)})
    nodes = {
        str(n.meta["val"]): n.meta["origins"]
        for n in run.joint.graph.graph.nodes
        if isinstance(n.meta.get("val"), torch.SymInt)
    }
    captured = {n.name: n for n in run.captured.graph.graph.nodes}
    for origins in nodes.values():
        (origin,) = origins
        assert isinstance(captured[origin.removeprefix("capture:")].meta["val"], torch.SymInt)


def test_no_guard_is_added_for_an_open_size(staged: Any) -> None:
    run = staged(mlp, *PROGRAMS["mlp"][1](5), dynamic={0: (0,)})
    assert run.joint.graph.meta["guards"] == ()


def test_symbolic_bytes_are_unknown_not_zero(staged: Any) -> None:
    run = staged(mlp, *PROGRAMS["mlp"][1](5), dynamic={0: (0,)})
    by_name = {s.node: s.bytes for s in run.partitioned.saved}
    assert by_name["x"] is None and by_name["w"] == 6 * 4 * 8
