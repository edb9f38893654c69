"""Gradients where few programs go: empty inputs, decompositions of matrices, errors, grad mode on inside."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from agreement import STRICT, compiling

import compiler_core as cc


def leaf(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def positive(seed):
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(seed))
    return (x @ x.t() + 3 * torch.eye(3)).requires_grad_()


LOSSES = {
    "smooth_l1": F.smooth_l1_loss,
    "mse": F.mse_loss,
    "huber": F.huber_loss,
    "l1": F.l1_loss,
    "soft margin": F.soft_margin_loss,
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_nothing(name, reduction):
    def fn(x, y):
        return LOSSES[name](x, y, reduction=reduction)

    compiled = cc.compile(fn, options=STRICT)
    with compiling(fallbacks=0):
        for rows in (0, 3, 0):
            mine, theirs = leaf(rows, 4), leaf(rows, 4)
            ours, eager = compiled(mine, torch.ones(rows, 4)), fn(theirs, torch.ones(rows, 4))
            torch.testing.assert_close(ours, eager, equal_nan=True)
            ours.sum().backward()
            eager.sum().backward()
            torch.testing.assert_close(mine.grad, theirs.grad)


MATRICES = {
    "inv": lambda a: torch.linalg.inv(a) * 2,
    "inverse": lambda a: torch.inverse(a.sin() + 5 * torch.eye(3)),
    "solve": lambda a: torch.linalg.solve(a, a.sin()),
    "solve from the right": lambda a: torch.linalg.solve(a, a.sin(), left=False),
    "cholesky": lambda a: torch.linalg.cholesky(a).exp(),
    "upper": lambda a: torch.linalg.cholesky(a, upper=True).exp(),
    "qr": lambda a: torch.linalg.qr(a)[1].abs(),
    "svd": lambda a: torch.linalg.svd(a)[1] * 2,
    "eigh": lambda a: torch.linalg.eigh(a)[0] * 2,
    "det": lambda a: torch.linalg.det(a) + torch.linalg.slogdet(a)[1],
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name):
    fn = MATRICES[name]
    compiled = cc.compile(fn, options=STRICT)
    with compiling(fallbacks=0):
        for seed in (1, 2):
            mine, theirs = positive(seed), positive(seed)
            ours, eager = compiled(mine), fn(theirs)
            torch.testing.assert_close(ours, eager)
            ours.sum().backward()
            eager.sum().backward()
            torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("name", ["inv", "solve", "cholesky"])
def test_a_matrix_that_has_no_result_raises_when_it_is_given(name):
    fn = MATRICES[name]
    compiled = cc.compile(fn, options=STRICT)
    with compiling(fallbacks=0):
        for _ in range(2):
            torch.testing.assert_close(compiled(positive(1)), fn(positive(1)))
            with pytest.raises(torch.linalg.LinAlgError):
                compiled(torch.zeros(3, 3, requires_grad=True))


def overwritten(x):
    y = x.sigmoid()
    z = y * y
    y.add_(1)
    return z


def doubled(x):
    y = x.exp()
    y.mul_(2)
    return y


@pytest.mark.parametrize("fn", [overwritten, doubled])
def test_an_overwritten_value_raises_at_the_backward_and_not_before(fn):
    compiled = cc.compile(fn, options=STRICT)
    with compiling(fallbacks=0):
        for seed in (1, 2):
            x = leaf(4, seed=seed)
            ours = compiled(x)
            torch.testing.assert_close(ours, fn(x))
            assert ours.requires_grad
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                ours.sum().backward()
            assert x.grad is None
            torch.testing.assert_close(compiled(x.detach()), fn(x.detach()))


def recorded(x):
    before = x.cos()
    with torch.enable_grad():
        y = x.sin() * before
    return y, before, y.detach() * 2


def test_grad_mode_on_inside_a_call_without_it():
    compiled = cc.compile(recorded, options=STRICT)
    with compiling(fallbacks=0):
        for seed in (1, 2):
            x, twin = leaf(4, seed=seed), leaf(4, seed=seed)
            with torch.no_grad():
                ours, eager = compiled(x), recorded(twin)
                assert not torch.is_grad_enabled()
            assert [o.requires_grad for o in ours] == [o.requires_grad for o in eager]
            torch.testing.assert_close(ours, eager)
            ours[0].sum().backward()
            eager[0].sum().backward()
            torch.testing.assert_close(x.grad, twin.grad)
