"""How many kernels known programs become, and that they still compute the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from compiler_core.fuse.accesses import accesses

D = torch.float64


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=D)


def rotate(q: Any, cos: Any, sin: Any) -> Any:
    return q * cos + torch.cat([-q[..., 4:], q[..., :4]], -1) * sin


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v


PROGRAMS: dict[str, tuple[Any, tuple[torch.Tensor, ...], list[str]]] = {
    "softmax": (lambda x: F.softmax(x, -1), (rand(8, 16),), ["row"]),
    "softmax of 4 dimensions": (lambda x: F.softmax(x * 0.3, -1), (rand(2, 3, 4, 5),), ["row"]),
    "softmax down columns": (lambda x: F.softmax(x, 0), (rand(8, 16),), ["column"]),
    "log softmax": (lambda x: F.log_softmax(x, -1), (rand(8, 16),), ["row"]),
    "softmax under a mask": (
        lambda x, m: F.softmax(x.masked_fill(m > 0, -1e9), -1),
        (rand(2, 3, 4, 4), rand(1, 1, 4, 4)),
        ["row"],
    ),
    "softmax of transposed heads": (
        lambda q, b: F.softmax((q + b).view(2, 6, 4, 8).transpose(1, 2), -1),
        (rand(2, 6, 32), rand(32)),
        ["row"],
    ),
    "layer norm": (
        lambda x, w, b: F.layer_norm(x, (16,), w, b),
        (rand(4, 8, 16), rand(16), rand(16)),
        ["row"],
    ),
    "residual, kept, and layer norm": (
        lambda x, y: (lambda s: (s, F.layer_norm(s, (16,))))(x + y),
        (rand(8, 16), rand(8, 16)),
        ["row"],
    ),
    "gelu": (lambda x: F.gelu(x * 2 + 1), (rand(8, 16),), ["pointwise"]),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), (rand(8, 16),), ["pointwise"]),
    "rotary embedding": (rotate, (rand(2, 6, 8), rand(6, 8), rand(6, 8)), ["pointwise"]),
    "a step of Adam": (adam, tuple(rand(8, 16).abs() for _ in range(4)), ["pointwise"]),
    "transposed operand": (lambda x, y: (x.t() + y) * 2, (rand(8, 16), rand(16, 8)), ["pointwise"]),
    "rows and columns of one input": (
        lambda x: (x.sum(0), x.sum(1)),
        (rand(8, 16),),
        ["column", "row"],
    ),
    "bias gradient": (
        lambda dy, x: (dy * torch.where(x > 0, 1.0, 0.0).to(D)).sum(0),
        (rand(8, 16), rand(8, 16)),
        ["column"],
    ),
    "bias gradient of a value that is kept": (
        lambda dy, x: (lambda g: (g, g.sum(0)))(dy * x),
        (rand(8, 16), rand(8, 16)),
        ["column"],
    ),
    "two sums down columns": (
        lambda dy, x: (dy.sum(0), (dy * x).sum(0)),
        (rand(8, 16), rand(8, 16)),
        ["column"],
    ),
    "mean square": (lambda x, y: ((x - y) ** 2).mean(), (rand(8, 16), rand(8, 16)), ["row"]),
    "padding": (lambda x: F.pad(x * 2, (1, 2)), (rand(8, 16),), ["pointwise"]),
    "concatenation": (
        lambda x, y: torch.cat([x * 2, y * 3, x], 1),
        (rand(8, 16), rand(8, 4)),
        ["pointwise"],
    ),
    "a row that is read shifted": (lambda x: (lambda y: y[1:] - y[:-1])(x * 2), (rand(9),), ["pointwise"]),
    "a matrix product between": (
        lambda x, w: F.gelu(F.softmax(x, -1) @ w),
        (rand(8, 16), rand(16, 8)),
        ["row", "pointwise"],
    ),
    "sums of rows that meet as columns": (
        lambda x: x * x.sum(1)[None, :],
        (rand(8, 8),),
        ["row", "pointwise"],
    ),
    "sums of rows that meet each other": (
        lambda x: (lambda s: s[None, :] * s[:, None])(x.sum(1)),
        (rand(8, 8),),
        ["row", "pointwise"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_program(fusing: SimpleNamespace, name: str) -> None:
    call, inputs, strategies = PROGRAMS[name]
    case = fusing.call(call, *inputs)
    assert case.kernels == strategies
    case.check(*inputs)
    case.check(*(x * -1.5 for x in inputs))


def test_large_sum_keeps_the_elementwise_part_apart(fusing: SimpleNamespace) -> None:
    """A loop over a million elements inside one position would run alone."""
    case = fusing.call(lambda x: x / x.sum(), torch.empty(2048, 1024))
    assert case.kernels == ["row", "pointwise"]
    assert case.categories() == {"too little parallel work"}


def test_small_sum_takes_it_in(fusing: SimpleNamespace) -> None:
    x = rand(100)
    case = fusing.call(lambda x: x / x.sum(), x)
    assert case.kernels == ["row"]
    case.check(x)


def test_few_columns_stay_out_of_a_large_pointwise_kernel(fusing: SimpleNamespace) -> None:
    """On a GPU, 2048 columns are too few positions for a kernel that also writes 8 MB."""
    inputs = torch.empty(1024, 2048), torch.empty(1024, 2048)
    call = lambda dy, x: (lambda g: (g, g.sum(0)))(dy * x)  # noqa: E731
    assert fusing.call(call, *inputs, target="cuda:90").kernels == ["pointwise", "column"]


def test_parts_of_columns_take_the_elementwise_part_in(fusing: SimpleNamespace) -> None:
    """The parts of 4096 rows are many positions: one pass stores the product and adds it up."""
    inputs = torch.empty(4096, 512), torch.empty(4096, 512)
    call = lambda dy, x: (lambda g: (g, g.sum(0)))(dy * x)  # noqa: E731
    case = fusing.call(call, *inputs, target="cuda:90")
    first, _ = case.fused.kernels.values()
    assert case.kernels == ["column", "column"] and "buf_mul" in first.writes


def test_costly_operations_do_not_run_twice_down_columns(fusing: SimpleNamespace) -> None:
    call = lambda dy, x: (lambda g: (g, g.sum(0)))(dy * torch.exp(torch.erf(x)))  # noqa: E731
    case = fusing.call(call, rand(64, 32), rand(64, 32))
    assert case.kernels == ["pointwise", "column"]
    assert "would recompute too much" in case.categories()


def training_step(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, g: Any, b: Any, y: Any) -> Any:
    """Loss and gradients of layer norm, linear, GELU, linear, residual, softmax, mean square."""
    leaves = [p.detach().requires_grad_() for p in (x, w1, b1, w2, b2, g, b)]
    x, w1, b1, w2, b2, g, b = leaves
    h = F.gelu(F.layer_norm(x, (16,), g, b) @ w1 + b1) @ w2 + b2 + x
    loss = ((F.softmax(h, -1) - y) ** 2).mean()
    return (loss, *torch.autograd.grad(loss, leaves))


STEP = (
    rand(8, 16),
    rand(16, 32),
    rand(32),
    rand(32, 16),
    rand(16),
    rand(16),
    rand(16),
    rand(8, 16),
)


def test_training_step(fusing: SimpleNamespace) -> None:
    case = fusing.call(training_step, *STEP)
    nests = sum(hasattr(item, "axes") for item in case.lowered.program.body)
    assert nests > 50
    assert len(case.kernels) <= 10, case.fused.text()
    case.check(*STEP, rtol=1e-9)


def test_training_step_is_the_same_twice(fusing: SimpleNamespace) -> None:
    first, second = fusing.call(training_step, *STEP), fusing.call(training_step, *STEP)
    assert first.fused.text() == second.fused.text()
    assert first.fused.reuse == second.fused.reuse
    assert first.decisions == second.decisions


@pytest.mark.parametrize("name", ["rotary embedding", "padding", "concatenation"])
def test_masks_spare_divisions(fusing: SimpleNamespace, name: str) -> None:
    """Where the mask holds, the producer's position needs no quotient and no remainder."""
    call, inputs, _ = PROGRAMS[name]
    (nest,) = fusing.call(call, *inputs).fused.program.body
    offsets = [str(a.statement.offset) for a in accesses(nest)]
    assert not any("%" in offset or "//" in offset for offset in offsets), offsets
