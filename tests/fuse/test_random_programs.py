"""Random programs compute the same before and after fusion, and in reused memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

SHAPES = [(2, 3, 4), (3, 4), (4,), (2, 1, 4), (2, 3, 1), (6, 4), (2, 12), (1, 4), (3, 1)]

# name → (operands, function of the operands and two small numbers)
STEPS: dict[str, tuple[int, Any]] = {
    "tanh": (1, lambda a, x: torch.tanh(x)),
    "scale": (1, lambda a, x: x * 0.5 + 1),
    "bell": (1, lambda a, x: torch.exp(-x * x)),
    "add": (2, lambda a, x, y: x + y),
    "mul": (2, lambda a, x, y: x * y),
    "sub": (2, lambda a, x, y: x - y),
    "where": (2, lambda a, x, y: torch.where(x > 0, x, y)),
    "sum": (1, lambda a, x: x.sum(a % x.dim(), keepdim=a > 3)),
    "amax": (1, lambda a, x: x.amax(a % x.dim(), keepdim=a > 3)),
    "argmax": (1, lambda a, x: x.argmax(a % x.dim()).to(x.dtype)),
    "mean": (1, lambda a, x: x.mean(tuple(range(x.dim())), keepdim=True)),
    "softmax": (1, lambda a, x: F.softmax(x, a % x.dim())),
    "flatten": (1, lambda a, x: x.reshape(-1)),
    "fold": (1, lambda a, x: x.reshape(x.shape[0], -1)),
    "unfold": (1, lambda a, x: x.reshape(-1, x.shape[-1])),
    "transpose": (1, lambda a, x: x.transpose(0, x.dim() - 1)),
    "slice": (1, lambda a, x: x[..., 1:] if x.shape[-1] > 1 else x),
    "flip": (1, lambda a, x: x.flip(a % x.dim())),
    "cat": (1, lambda a, x: torch.cat([x, x * 2], a % x.dim())),
    "pad": (1, lambda a, x: F.pad(x, (1, a % 3))),
    "tril": (1, lambda a, x: x.tril(a - 2) if x.dim() > 1 else x),
    "round trip": (1, lambda a, x: x.to(torch.float32).to(x.dtype)),
    "product": (1, lambda a, x: x @ x.transpose(-1, -2) if x.dim() > 1 else x),
    "first": (1, lambda a, x: x[0] if x.dim() > 1 else x),
}

step = st.tuples(
    st.sampled_from(sorted(STEPS)), st.integers(0, 6), st.integers(0, 99), st.integers(0, 99)
)
programs = st.tuples(
    st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3),
    st.lists(step, min_size=2, max_size=12),
    st.sets(st.integers(0, 12), max_size=3),
)


def build(steps: Any, returned: Any) -> Any:
    """A function that does the steps on the values so far and returns the last, and those asked for."""

    def call(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = list(inputs)
        for name, number, first, second in steps:
            operands, function = STEPS[name]
            x = values[-1 - first % min(4, len(values))]
            y = values[-1 - second % min(4, len(values))]
            if operands == 2 and not fits(x, y):
                y = x * 0.25
            value = function(number, x, y) if operands == 2 else function(number, x)
            if value.numel() <= 1000:
                values.append(value)
        made = values[len(inputs) :]
        wanted = [value for place, value in enumerate(made) if place in returned]
        return tuple(value.clone() for value in [*wanted, values[-1]])

    return call


def fits(x: torch.Tensor, y: torch.Tensor) -> bool:
    pairs = zip(reversed(x.shape), reversed(y.shape))
    return all(a == b or 1 in (a, b) for a, b in pairs)


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(programs)
def test_random_program(fusing: SimpleNamespace, program: Any) -> None:
    shapes, steps, returned = program
    inputs = [
        torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        for seed, shape in enumerate(shapes)
    ]
    case = fusing.call(build(steps, returned), *inputs)
    case.check(*inputs)
    case.check(*(x.flip(0) * 2 for x in inputs))


@pytest.mark.parametrize("seed", range(12))
def test_random_symbolic_program(fusing: SimpleNamespace, seed: int) -> None:
    """Dimension 0 is a symbol: the same kernels run at several sizes."""
    names = ["scale", "bell", "add", "mul", "softmax", "fold", "unfold", "sum", "tanh", "amax"]
    numbers = torch.randint(0, 99, (8, 4), generator=torch.Generator().manual_seed(seed)).tolist()
    steps = [(names[a % len(names)], b % 3, c, d) for a, b, c, d in numbers]
    steps = [(n, 1 if n in ("sum", "softmax", "amax") else k, c, d) for n, k, c, d in steps]
    call = build(steps, {2, 4})
    case = fusing.call(call, torch.randn(6, 4, dtype=torch.float64), dynamic=True)
    for size in (6, 2, 9, 1):
        case.check(torch.randn(size, 4, dtype=torch.float64))
