"""Long reductions on a real GPU: the accuracy of split and looped sums, the same bits each time, large grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import compiler_core as cc
from compiler_core.devtools.compare_stages import bounded_error

pytestmark = pytest.mark.gpu

STRICT = {"strict": True}


def normal(*shape: int) -> torch.Tensor:
    generator = torch.Generator("cuda").manual_seed(sum(shape))
    return torch.randn(shape, device="cuda", generator=generator)


# name → (function, input shapes, share of the bound that the error may take)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], float]] = {
    "everything": (lambda x: x.sum(), [(100_000_000,)], 0.5),
    "everything, a prime": (lambda x: (x + 0.1).mean(), [(10_000_019,)], 0.5),
    "everything, of rows": (lambda x: torch.softmax(x, -1).square().sum(), [(8192, 4096)], 0.5),
    "columns": (lambda x: x.sum(0), [(65_536, 1024)], 0.5),
    "columns, odd": (lambda x: (x + 0.1).sum(0), [(70_001, 333)], 0.5),
    "channels": (lambda x: x.var((0, 2, 3)), [(64, 128, 56, 56)], 1.0),
    "long rows": (lambda x: x.sum(1), [(300, 100_001)], 0.5),
    "few long rows": (lambda x: torch.log_softmax(x, -1), [(8, 128_256)], 1.0),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (4096,), w, b), [(8192, 4096), (4096,), (4096,)], 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_accuracy_and_the_same_bits(name: str) -> None:
    fn, shapes, share = PROGRAMS[name]
    before, compiled = cc.stats(), cc.compile(fn, options=STRICT)
    for round_ in range(2):
        inputs = [normal(*shape) * (1 + 3 * round_) for shape in shapes]
        got, again = compiled(*inputs), compiled(*inputs)
        assert torch.equal(got, again)
        error, tolerance = bounded_error(got, fn(*inputs), fn(*(x.double() for x in inputs)))
        assert error <= share * tolerance, f"{error:.3g} > {share} * {tolerance:.3g}"
    after = cc.stats()
    assert after.graphs == before.graphs + 1 and after.fallbacks == before.fallbacks


def test_any_length() -> None:
    fn = lambda x: (x.sum(), x.amax(), x.argmax(), (x > 3).any())  # noqa: E731
    compiled = cc.compile(fn, options=STRICT)
    before = cc.stats()
    for n in (50_000_017, 2, 16_384, 16_385, 3_000_000):
        x = normal(n)
        cc.mark_dynamic(x, 0)
        got, eager, truth = compiled(x), fn(x), fn(x.double())
        error, tolerance = bounded_error(got[0], eager[0], truth[0])
        assert error <= tolerance
        assert all(torch.equal(a, b) for a, b in zip(got[1:], eager[1:], strict=True))
    assert cc.stats().graphs == before.graphs + 1


def test_more_than_two_to_the_31_elements() -> None:
    """Offsets of 64 bits, and parts that are split again."""
    x = torch.ones(2**31 + 12_345, dtype=torch.int8, device="cuda")
    x[-1] = 7
    fn = lambda x: (x.sum(), x.amax())  # noqa: E731
    got = cc.compile(fn, options=STRICT)(x)
    assert [value.item() for value in got] == [2**31 + 12_345 + 6, 7]
