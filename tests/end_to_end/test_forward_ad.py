"""Forward-mode tangents, and gradients of a batch of tangents: what a compiled graph does not compute is left to eager."""

from __future__ import annotations

import pytest
import torch
import torch.autograd.forward_ad as fw
from agreement import STRICT, compiling

import compiler_core as cc
from compiler_core.errors import NotSupportedYet


def product(x):
    return x.sin() * x


@pytest.mark.parametrize("order", [(0, 1, 0, 1), (1, 0, 1, 0)])
def test_a_tangent_is_never_lost(order):
    compiled = cc.compile(product, options=STRICT)
    with compiling(graphs=1):
        for is_dual in order:
            x = torch.randn(3)
            if not is_dual:
                assert torch.allclose(compiled(x), product(x))
                continue
            with fw.dual_level():
                dual = fw.make_dual(x, torch.ones(3))
                ours, eager = fw.unpack_dual(compiled(dual)), fw.unpack_dual(product(dual))
            assert torch.equal(ours.tangent, eager.tangent)
            assert torch.equal(ours.primal, eager.primal)


def test_a_graph_that_was_broken_resumes_in_eager_inside_the_level():
    def broken(x, log):
        y = x.sin()
        log.append(y.sum().item())
        return y * x

    compiled = cc.compile(broken, options=STRICT)
    compiled(torch.randn(3), [])
    with fw.dual_level():
        dual = fw.make_dual(torch.randn(3), torch.ones(3))
        ours, eager = fw.unpack_dual(compiled(dual, [])), fw.unpack_dual(broken(dual, []))
    assert torch.equal(ours.tangent, eager.tangent)


@pytest.mark.parametrize("create_graph", [False, True])
def test_batched_tangents(create_graph):
    """`is_grads_batched` runs the backward pass on tensors that have no memory of their own."""
    compiled = cc.compile(product, options=STRICT)
    x = torch.randn(3, requires_grad=True)
    rows = torch.eye(3)
    for _ in range(2):
        ours, eager = (
            torch.autograd.grad(f(x), x, rows, is_grads_batched=True, create_graph=create_graph)[0]
            for f in (compiled, product)
        )
        torch.testing.assert_close(ours, eager)
        assert ours.requires_grad is create_graph
        plain = torch.autograd.grad(compiled(x), x, rows[0])[0]
        torch.testing.assert_close(plain, ours[0])


def test_batched_tangents_where_the_graph_cannot_run_again():
    compiled = cc.compile(lambda x, y: y.add_(x.sin()), options=STRICT)
    x = torch.randn(3, requires_grad=True)
    result = compiled(x, torch.zeros(3))
    with pytest.raises(NotSupportedYet, match="CC207"):
        torch.autograd.grad(result, x, torch.eye(3), is_grads_batched=True)
