"""Each decomposition: the same values, strides and gradients as the whole operator.

A row of PROGRAMS per operator of the table (a test names the missing ones): a program that reaches
the operator, forward and backward. Its joint graph may not contain an operator of the table any more.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compiler_core.autodiff.decompositions import decompositions

T = torch.Tensor
aten = torch.ops.aten


def draw(*shape: int, seed: int = 0, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def pair(**given: Any) -> Callable[[], list[T]]:
    return lambda: [draw(3, 4), draw(3, 4, seed=1, grad=given.get("grad", True))]


def one() -> list[T]:
    return [draw(3, 4)]


def complex_one() -> list[T]:
    return [torch.complex(draw(3, 4), draw(3, 4, seed=1)).detach().requires_grad_()]


def probabilities() -> list[T]:
    x, y = draw(3, 4).sigmoid().detach(), draw(3, 4, seed=1).sigmoid().detach()
    return [x.requires_grad_(), y]


def labels() -> list[T]:
    return [draw(4, 5), torch.tensor([1, 0, -100, 4]), draw(5, seed=2, grad=False).abs()]


def norm_inputs() -> list[T]:
    return [draw(2, 4, 3), draw(4, seed=1), draw(4, seed=2)]


def batch_norm_training(x: T, w: T, b: T, mean: T, var: T) -> T:
    return F.batch_norm(x, mean, var, w, b, True, 0.1, 1e-5)


def batch_norm_update(x: T, w: T, b: T, mean: T, var: T) -> T:
    return torch.ops.aten._batch_norm_with_update(x, w, b, mean, var, 0.1, 1e-5)[0]


Program = tuple[Callable[..., Any], Callable[[], list[T]], tuple[Any, ...]]

PROGRAMS: dict[str, Program] = {
    "mse": (F.mse_loss, pair(), (aten.mse_loss.default, aten.mse_loss_backward.default)),
    "mse_sum": (lambda x, y: F.mse_loss(x, y, reduction="sum"), pair(), ()),
    "mse_none": (lambda x, y: F.mse_loss(x, y, reduction="none"), pair(), ()),
    "smooth_l1": (
        lambda x, y: F.smooth_l1_loss(x, y, beta=0.7), pair(),
        (aten.smooth_l1_loss.default, aten.smooth_l1_loss_backward.default),
    ),
    "huber": (
        lambda x, y: F.huber_loss(x, y, delta=0.7), pair(),
        (aten.huber_loss.default, aten.huber_loss_backward.default),
    ),
    "bce": (
        F.binary_cross_entropy, probabilities,
        (aten.binary_cross_entropy.default, aten.binary_cross_entropy_backward.default),
    ),
    "bce_logits": (
        F.binary_cross_entropy_with_logits, lambda: [draw(3, 4), draw(3, 4, seed=1).detach().sigmoid()],
        (aten.binary_cross_entropy_with_logits.default,),
    ),
    "soft_margin": (
        F.soft_margin_loss, lambda: [draw(3, 4), draw(3, 4, seed=1, grad=False).sign()],
        (aten.soft_margin_loss.default, aten.soft_margin_loss_backward.default),
    ),
    "nll": (
        lambda x, t, w: F.nll_loss(x, t, w), labels,
        (aten.nll_loss_forward.default, aten.nll_loss_backward.default),
    ),
    "nll_none": (lambda x, t, w: F.nll_loss(x, t, w, reduction="none"), labels, ()),
    "nll_sum": (lambda x, t, w: F.nll_loss(x, t, reduction="sum"), labels, ()),
    "nll_one": (lambda x, t: F.nll_loss(x, t), lambda: [draw(5), torch.tensor(3)], ()),
    "nll_none_one": (
        lambda x, t: F.nll_loss(x, t, reduction="none"), lambda: [draw(5), torch.tensor(3)], (),
    ),
    "nll_plain": (lambda x, t, w: F.nll_loss(x, t), labels, ()),
    "cross_entropy": (lambda x, t, w: F.cross_entropy(x, t, w), labels, ()),
    "log_sigmoid": (
        F.logsigmoid, one, (aten.log_sigmoid_forward.default, aten.log_sigmoid_backward.default),
    ),
    "logit": (lambda x: torch.logit(x, 0.1), lambda: probabilities()[:1], (aten.logit_backward.default,)),
    "logit_plain": (torch.logit, lambda: probabilities()[:1], ()),
    "glu": (F.glu, one, (aten.glu.default, aten.glu_backward.default)),
    "softshrink": (F.softshrink, one, ()),  # torch takes these two apart above autograd
    "hardshrink": (F.hardshrink, one, ()),
    "prelu": (
        F.prelu, lambda: [draw(3, 4), draw(4, seed=1)], (aten._prelu_kernel_backward.default,),
    ),
    "group_norm": (
        lambda x, w, b: F.group_norm(x, 2, w, b), norm_inputs,
        (aten.native_group_norm.default, aten.native_group_norm_backward.default),
    ),
    "group_norm_plain": (lambda x: F.group_norm(x, 2), lambda: norm_inputs()[:1], ()),
    "batch_norm": (
        batch_norm_training, lambda: [*norm_inputs(), torch.zeros(4).double(), torch.ones(4).double()],
        (aten._native_batch_norm_legit_functional.default, aten.native_batch_norm_backward.default),
    ),
    "batch_norm_no_stats": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True), norm_inputs,
        (aten._native_batch_norm_legit.no_stats,),
    ),
    "batch_norm_eval": (
        lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False),
        lambda: [*norm_inputs(), torch.zeros(4).double(), torch.ones(4).double()],
        (aten._native_batch_norm_legit_no_training.default, aten._native_batch_norm_legit.default),
    ),
    "batch_norm_update": (
        batch_norm_update, lambda: [*norm_inputs(), torch.zeros(4).double(), torch.ones(4).double()],
        (aten._batch_norm_with_update_functional.default, aten.batch_norm_backward.default),
    ),
    "norm": (lambda x: aten.norm.Scalar(x, 2), one, (aten.norm.Scalar,)),
    "norm_dim": (
        lambda x: aten.norm.ScalarOpt_dim(x, 2, [1], True), one, (aten.norm.ScalarOpt_dim,),
    ),
    "dist": (torch.dist, pair(), (aten.dist.default,)),
    "trace": (torch.trace, one, (aten.trace.default,)),
    "select": (lambda x: x[1].sin(), one, (aten.select_backward.default,)),
    "slice": (lambda x: x[:, 1:3].sin(), one, (aten.slice_backward.default,)),
    "slice_step": (lambda x: x[::2].sin(), one, ()),
    "diagonal": (lambda x: x.diagonal(1).sin(), one, (aten.diagonal_backward.default,)),
    "stack": (lambda x, y: torch.stack([x, y], 1), pair(), (aten.stack.default,)),
    "tril": (lambda x: x.tril(-1) * 2, one, (aten.tril.default,)),
    "triu": (lambda x: x.triu(1) * 2, one, (aten.triu.default,)),
    "copy": (lambda x, y: (x * 1).copy_(y) * 2, lambda: [draw(3, 4), draw(4, seed=1)], (aten.copy.default,)),
    "copy_transposed": (lambda x, y: (x * 1).copy_(y.t()), lambda: [draw(3, 4), draw(4, 3, seed=1)], ()),
    "conjugate": (lambda x: torch.view_as_real(x.conj() * 2) * 1, complex_one, (aten._conj.default,)),
    "negative_view": (lambda x: torch._neg_view(x) * 2, one, (aten._neg_view.default,)),
    "repeat": (lambda x: x.repeat(2, 1, 3), one, (aten.repeat.default,)),
}  # fmt: skip


# Rows of operators that draw random numbers: what is left of them draws too.
DRAWN: dict[str, tuple[Callable[[T], T], tuple[Any, ...]]] = {
    "dropout": (
        lambda x: F.dropout(x.float(), 0.3),
        (aten.native_dropout.default, aten.native_dropout_backward.default, aten.bernoulli.p),
    ),
    "feature_dropout": (lambda x: F.feature_alpha_dropout(x.float(), 0.3, True), (aten.bernoulli.p,)),
    "random_": (lambda x: torch.empty_like(x).random_(2, 9) * x, (getattr(aten.random, "from"),)),
}  # fmt: skip


def flat(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple) else (outputs,)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_strides_and_gradients(name: str, staged: Any) -> None:
    fn, make, _ = PROGRAMS[name]
    run = staged(fn, *make())
    left = {n.target for n in run.joint.graph.graph.nodes} & set(decompositions())
    assert not left
    ours, eager = make(), make()
    results, expected = run.call(*ours), flat(fn(*eager))
    for a, b in zip([*results, *ours], [*expected, *eager], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
        assert a.stride() == b.stride()
    mine = [t for t in ours if t.requires_grad]
    theirs = [t for t in eager if t.requires_grad]
    weights = [draw(*b.shape, seed=9, grad=False) for b in expected]
    found = torch.autograd.grad(results, mine, weights)
    wanted = torch.autograd.grad(expected, theirs, weights)
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)
        assert a.stride() == b.stride()


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_by_finite_differences(name: str, staged: Any) -> None:
    fn, make, _ = PROGRAMS[name]
    inputs = make()
    run = staged(fn, *inputs)
    buffers = [t.clone() for t in inputs if not t.requires_grad]
    leaves = [t for t in inputs if t.requires_grad]

    def function(*given: T) -> Any:
        rest, again = iter(given), iter(t.clone() for t in buffers)
        return run.call(*(next(rest if t.requires_grad else again) for t in inputs))

    assert torch.autograd.gradcheck(function, leaves)


@pytest.mark.parametrize("fn", [F.mse_loss, F.smooth_l1_loss, lambda x, y: (x * 1).copy_(y)])
def test_half_types_round_as_eager(fn: Any, staged: Any) -> None:
    x, y = draw(3, 4).detach().bfloat16().requires_grad_(), draw(3, 4, seed=1).detach().bfloat16()
    (result,) = staged(fn, x, y).call(x, y)
    assert result.dtype == fn(x, y).dtype
    torch.testing.assert_close(result, fn(x, y))


def test_every_row_has_a_program() -> None:
    tested = {op for _, *_, ops in (*PROGRAMS.values(), *DRAWN.values()) for op in ops}
    assert sorted(map(str, set(decompositions()) - tested)) == []


@pytest.mark.parametrize("name", DRAWN)
def test_draws_are_those_of_eager(name: str, staged: Any) -> None:
    fn, _ = DRAWN[name]
    run = staged(fn, draw(3, 4))
    for seed in range(3):
        torch.manual_seed(seed)
        (ours,) = run.call(x := draw(3, 4))
        states = [torch.get_rng_state()]
        torch.manual_seed(seed)
        eager = fn(y := draw(3, 4))
        states.append(torch.get_rng_state())
        assert torch.equal(ours, eager) and torch.equal(*states)
        one, two = torch.autograd.grad(ours.sum(), x), torch.autograd.grad(eager.sum(), y)
        assert torch.equal(*one, *two)


@pytest.mark.parametrize("name", [n for n, (*_, ops) in {**PROGRAMS, **DRAWN}.items() if ops])
def test_the_program_reaches_the_row(name: str, staged: Any, monkeypatch: Any) -> None:
    fn, *_, ops = {**PROGRAMS, **DRAWN}[name]
    make = PROGRAMS[name][1] if name in PROGRAMS else one
    called: set[Any] = set()

    def spied(op: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            called.add(op)
            return function(*args, **kwargs)

        return run

    module = importlib.import_module("compiler_core.autodiff.trace_joint")
    table = {op: spied(op, function) for op, function in decompositions().items()}
    monkeypatch.setattr(module, "decompositions", lambda: table)
    staged(fn, *make())
    assert set(ops) <= called, (ops, called)
