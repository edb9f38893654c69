"""Reductions of the GPU target: kernels that are evaluated, against eager and float64, on sizes that are hard.

Sums must be well inside the promise: at most half of max(2 × eager's own error, 4 ulp of the output's scale).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import compiler_core as cc
from compiler_core.devtools.compare_stages import bounded_error
from compiler_core.pipeline import Compilation

pytestmark = pytest.mark.evaluated

STRICT = {"strict": True, "also": ("cuda:90",)}


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def compiled(fn: Callable[..., Any], *inputs: torch.Tensor, dynamic: bool = False) -> Compilation:
    """The version that a first call makes, for CPU and GPU."""
    before = cc.stats()
    with cc.record() as recorder:
        made = cc.compile(fn, options=STRICT)
        given = [x.clone() for x in inputs]
        for x in given if dynamic else ():
            cc.mark_dynamic(x, 0)
        made(*given)
    after = cc.stats()
    assert (after.graphs - before.graphs, after.fallbacks - before.fallbacks) == (1, 0)
    ((_, code),) = recorder.compilations.items()
    return code


def run(code: Compilation, *inputs: torch.Tensor) -> tuple[Any, ...]:
    """The GPU's kernels on inputs, in the evaluator."""
    part = code.targets["cuda:90"]["forward"]
    assert part.built.evaluates
    sizes = [x.shape[0] for x in inputs][: len(part.lowered.program.inputs) - len(inputs)]
    return part.built.run(*sizes, *inputs)


def within(
    code: Compilation, fn: Callable[..., Any], *inputs: torch.Tensor, share: float = 0.5
) -> None:
    """Every output within a share of its bound; twice the same bits."""
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    results = run(code, *inputs)
    listed = lambda v: v if isinstance(v, tuple) else (v,)  # noqa: E731
    for got, again, eager, truth in zip(
        results, run(code, *inputs), listed(fn(*inputs)), listed(fn(*wide)), strict=True
    ):
        assert (got.dtype, got.shape) == (eager.dtype, eager.shape)
        assert torch.equal(got.nan_to_num(7), again.nan_to_num(7))
        error, tolerance = bounded_error(got, eager, truth)
        assert error <= share * tolerance, f"{error:.3g} > {share} * {tolerance:.3g}"


def kernels(code: Compilation) -> int:
    return len(code.targets["cuda:90"]["forward"].generated.kernels)


# one value again and again rounds the same way each time; values of one sign do not cancel
HARD: dict[str, Callable[..., torch.Tensor]] = {
    "normal": normal,
    "a tenth": lambda *shape: torch.full(shape, 0.1),
    "uniform": lambda *shape: normal(*shape).abs() + 0.3,
    "large and small": lambda *shape: normal(*shape) + 1e4,
}


@pytest.mark.parametrize("values", HARD)
@pytest.mark.parametrize("shape", [(65_537,), (200_003,), (48, 1365), (263, 1000)])
def test_everything(values: str, shape: tuple[int, ...]) -> None:
    x = HARD[values](*shape)
    fn = lambda x: x.sum()  # noqa: E731
    code = compiled(fn, x)
    assert kernels(code) == (2 if x.numel() > 65_536 else 1)
    within(code, fn, x)
    within(code, fn, x.flip(0) * -3)


@pytest.mark.parametrize("values", HARD)
@pytest.mark.parametrize(
    "rows,columns", [(96, 48), (1000, 33), (1025, 64), (20_000, 7), (5003, 130)]
)
def test_columns(values: str, rows: int, columns: int) -> None:
    """As a bias gradient adds up a batch: few columns, any number of rows."""
    x = HARD[values](rows, columns)
    fn = lambda x: x.sum(0)  # noqa: E731
    within(compiled(fn, x), fn, x)


@pytest.mark.parametrize("values", HARD)
def test_long_rows(values: str) -> None:
    """Looped in one program each: what each addition loses is kept."""
    x = HARD[values](265, 20_001)
    fn = lambda x: x.sum(1)  # noqa: E731
    code = compiled(fn, x)
    assert kernels(code) == 1
    assert "add_exactly" in code.targets["cuda:90"]["forward"].generated.text()
    within(code, fn, x)


@pytest.mark.parametrize("shape", [(4, 16, 28, 28), (64, 3, 40, 40), (2, 300, 7, 7)])
def test_batch_statistics(shape: tuple[int, ...]) -> None:
    def fn(x: torch.Tensor) -> Any:
        return x.mean((0, 2, 3)), x.var((0, 2, 3))

    x = normal(*shape) * 3 + 5
    within(compiled(fn, x), fn, x, share=0.6)


def test_cross_entropy_over_a_vocabulary() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return -F.log_softmax(x, -1)[:, 7].mean()

    x = normal(5, 70_001)
    within(compiled(fn, x), fn, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [(0, 1), 0, 1])
def test_half_types_add_up_in_float32(dtype: torch.dtype, dim: Any) -> None:
    x = normal(3000, 50).to(dtype)
    fn = lambda x: x.sum(dim)  # noqa: E731
    within(compiled(fn, x), fn, x, share=1.0)


def test_one_kernel_for_any_length() -> None:
    fn = lambda x: (x.sum(), x.amax(), (x * 2).mean())  # noqa: E731
    code = compiled(fn, normal(40_001), dynamic=True)
    for n in (2, 3, 16_383, 16_384, 16_385, 70_000):
        within(code, fn, normal(n, seed=n), share=1.0)


def test_infinities_and_nan_in_sums() -> None:
    fn = lambda x: (x.sum(), x.sum(1), x.sum(0))  # noqa: E731
    x = normal(300, 20_000)
    code = compiled(fn, x)
    for special in ([math.inf], [math.inf, -math.inf], [-math.inf, math.nan], [3e38, 3e38]):
        y = x.clone()
        for k, value in enumerate(special):
            y[17, 9000 * k] = value
        for got, eager in zip(run(code, y), fn(y)):
            assert torch.equal(got.isnan(), eager.isnan())
            assert torch.equal(got.isinf(), eager.isinf())


@pytest.mark.parametrize("dynamic", [False, True])
def test_nan_wins_and_the_first_of_equals(dynamic: bool) -> None:
    fn = lambda x: (x.amax(), x.amin(), x.argmax(), x.argmin())  # noqa: E731
    x = normal(90_001).round()
    code = compiled(fn, x, dynamic=dynamic)
    n = 90_001 if not dynamic else 50_000
    cases = [x[:n].clone(), torch.full((n,), -math.inf), torch.full((n,), math.inf), -x[:n].abs()]
    for places in ([n - 1], [5, n // 2], [16_384, 16_385, n - 1]):
        cases.append(x[:n].clone().index_fill_(0, torch.tensor(places), math.nan))
        cases.append(x[:n].clone().index_fill_(0, torch.tensor(places), 99.0))
        cases.append(x[:n].clone().index_fill_(0, torch.tensor(places), -99.0))
    for y in cases:
        for got, eager in zip(run(code, y), fn(y), strict=True):
            assert torch.equal(got.nan_to_num(7), eager.nan_to_num(7)), (got, eager)


@pytest.mark.parametrize("shape", [(0,), (0, 70), (70, 0)])
def test_nothing_to_add(shape: tuple[int, ...]) -> None:
    fn = lambda x: (x.sum(), x.prod(), x.mean(), x.sum(0), (x > 0).any(), (x > 0).all())  # noqa: E731
    x = torch.empty(shape)
    for got, eager in zip(run(compiled(fn, x), x), fn(x), strict=True):
        torch.testing.assert_close(got, eager, rtol=0, atol=0, equal_nan=True)
