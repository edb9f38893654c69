"""Tensors with a lazy conjugate or negative bit: their memory holds other numbers than they stand for."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, agree, compiling

import compiler_core as cc

CALLS = [(torch.randn(4, 3, dtype=torch.complex64),) for _ in range(2)]


def written_through(x):
    y = x * 1
    y.conj().mul_(1j)
    y.conj().imag.add_(1)
    return y


MADE_INSIDE = {
    "product": lambda x: x.conj() * 2,
    "imaginary part": lambda x: x.conj().imag + 1,
    "resolved": lambda x: x.conj().resolve_conj(),
    "negative resolved": lambda x: (x * 1).conj().imag.resolve_neg(),
    "twice": lambda x: x.conj().conj() + 1,
    "transposed": lambda x: x.mH @ x,
    "returned": lambda x: (x * 2).conj(),
    "written through": written_through,
    "real view": lambda x: torch.view_as_real(x.conj().resolve_conj()) * 2,
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", MADE_INSIDE)
def test_made_inside(name, requires_grad):
    calls = [(x.clone().requires_grad_(requires_grad),) for (x,) in CALLS]
    agree(MADE_INSIDE[name], *calls)


def scaled(x):
    return x * 2 + 1


@pytest.mark.parametrize("order", [(0, 1, 0, 1), (1, 0, 1, 0)])
@pytest.mark.parametrize("lazy", [lambda z: z.conj(), lambda z: z.conj().imag])
def test_an_input_that_carries_the_bit(lazy, order):
    """A plain input has a version of its own, whichever comes first."""
    compiled = cc.compile(scaled, options=STRICT)
    with compiling(fallbacks=0):
        for bit in order:
            z = torch.randn(5, dtype=torch.complex64)
            x = lazy(z) if bit else lazy(z).resolve_conj().resolve_neg()
            assert torch.equal(compiled(x), scaled(x))


def test_a_tangent_that_carries_the_bit():
    def loss(z, fn, weight):
        return (fn(z).conj() * weight).real.sum()

    z, weight = torch.randn(2, 5, dtype=torch.complex64)
    gradients = []
    for fn in (scaled, cc.compile(scaled, options=STRICT)):
        leaf = z.clone().requires_grad_()
        loss(leaf, fn, weight).backward()
        gradients.append(leaf.grad)
    torch.testing.assert_close(*gradients)


def test_a_returned_view_is_never_a_copy():
    """Eager's shares memory with the input: the frame stays in eager."""
    compiled = cc.compile(lambda x: x.conj(), options={"strict": False})
    x = torch.randn(3, dtype=torch.complex64)
    y = compiled(x)
    x.mul_(2)
    assert y.is_conj() and torch.equal(y, x.conj())
