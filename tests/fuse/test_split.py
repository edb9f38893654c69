"""Long reductions on a GPU are split: when, into what, with which records, and the results stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compiler_core.ir.loop import Nest, Reduce
from compiler_core.ir.parse import parse_program
from compiler_core.ir.text import print_program

GPU = "cuda:90"


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def splits(case: Any) -> list[tuple[str, Any, Any]]:
    return [
        (d.outcome, d.data.get("parts"), d.data.get("part"))
        for d in case.decisions
        if d.kind == "split"
    ]


def mean_and_variance(x: torch.Tensor) -> Any:
    return x.var(0), x.mean()


# name → (function, inputs, dynamic, the "split" records: outcome, parts, elements of a part)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], bool, list[Any]]] = {
    "everything, divided": (lambda x: x.sum(), (rand(300_000),), False, [("split", 150, 2000)]),
    "everything, a prime": (lambda x: x.sum(), (rand(300_007),), False, [("split", 147, 2048)]),
    "everything, of rows": (lambda x: x.sum(), (rand(300, 1001),), False, [("split", 300, 1001)]),
    "everything, of any size": (lambda x: x.sum(), (rand(20_001),), True, [("split", None, 16384)]),
    "rows of any number": (lambda x: x.sum(), (rand(30, 4096),), True, [("split", None, 4096)]),
    "few long rows": (lambda x: x.sum(1), (rand(3, 70_001),), False, [("split", 35, 2048)]),
    "columns": (lambda x: x.sum(0), (rand(5000, 100),), False, [("split", 100, 50)]),
    "columns, a prime": (lambda x: x.sum(0), (rand(5003, 100),), False, [("split", 79, 64)]),
    "channels": (lambda x: x.sum((0, 2, 3)), (rand(40, 3, 50, 40),), False, [("split", 40, 2000)]),
    "channels, of any number": (
        lambda x: x.sum((0, 2, 3)), (rand(9, 3, 50, 50),), True, [("split", None, 2500)],
    ),
    "channels last": (lambda x: x.sum((0, 1)), (rand(64, 100, 70),), False, [("split", 128, 50)]),
    "a stretch of rows": (lambda x: x[:, 1:].sum(), (rand(700, 101),), False, [("split", 35, 2000)]),
    "short": (lambda x: x.sum(), (rand(65_536),), False, [("whole", None, None)]),
    "many rows": (lambda x: x.sum(1), (rand(264, 70_000),), False, [("whole", None, None)]),
    "short columns": (lambda x: x.sum(0), (rand(1024, 100),), False, [("whole", None, None)]),
    "nothing": (lambda x: x.sum(), (rand(0),), False, [("whole", None, None)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_when_and_into_what(fusing: SimpleNamespace, name: str) -> None:
    call, inputs, dynamic, expected = PROGRAMS[name]
    case = fusing.call(call, *inputs, target=GPU, dynamic=dynamic)
    assert splits(case) == expected
    case.check(*inputs, rtol=1e-5)
    if dynamic:
        for n in (1, 2, 16384, 16385) if inputs[0].dim() == 1 else (1, 2, 5):
            case.check(rand(n, *inputs[0].shape[1:]), rtol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kind", ["sum", "prod", "amax", "amin", "any", "all"])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool]
)
def test_every_kind_and_type(
    fusing: SimpleNamespace, kind: str, dtype: torch.dtype, dynamic: bool
) -> None:
    """The part beyond the end changes nothing, whatever the type: all values lie on one side of 0."""
    low = kind in ("amax", "any") and dtype.is_floating_point
    values = rand(70_001) - (2 if low else 0)
    x = (
        (values * 3).to(dtype)
        if dtype is not torch.bool
        else values > (0.5 if kind == "any" else -1)
    )
    x = x.clamp(0.99997, 1.00001) if kind == "prod" and dtype.is_floating_point else x
    call = getattr(torch, kind)
    case = fusing.call(call, x, target=GPU, dynamic=dynamic)
    assert splits(case)[0][0] == "split"
    case.check(x, rtol=1e-3 if dtype is torch.float16 else 1e-5)


def test_cpu_is_not_split(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: x.sum(), rand(300_000))
    assert splits(case) == [] and len(case.fused.program.body) == 1


def test_two_passes_over_columns(fusing: SimpleNamespace) -> None:
    """The variance needs the mean first: two splits, and the total of the first is stored."""
    x = rand(5003, 40)
    case = fusing.call(mean_and_variance, x, target=GPU)
    assert [outcome for outcome, *_ in splits(case)] == ["split"] * 3
    case.check(x, rtol=1e-5)
    case.check(x * 100 - 7, rtol=1e-5)


def test_very_many_parts_are_split_again(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: x.sum(), torch.empty(100_000, 5000), target=GPU)
    assert splits(case) == [("split", 100_000, 5000), ("split", 50, 2000)]
    assert len(case.kernels) == 3


def test_rows_that_are_added_up_keep_their_kernel(fusing: SimpleNamespace) -> None:
    """The parts of a sum over softmaxes are its rows: one kernel makes both, a second the total."""
    x = rand(200, 4096)
    call = lambda x: torch.softmax(x, -1).square().sum()  # noqa: E731
    case = fusing.call(call, x, target=GPU)
    assert case.kernels == ["row", "row"]
    case.check(x, rtol=1e-5)


def test_what_the_parts_read_merges_into_them(fusing: SimpleNamespace) -> None:
    x, y = rand(333, 1000), rand(1000)
    call = lambda x, y: ((x.exp() + y) * 2).sum()  # noqa: E731
    case = fusing.call(call, x, y, target=GPU)
    assert case.kernels == ["row", "row"]
    case.check(x, y, rtol=1e-5)
    prime = rand(70_001)
    case = fusing.call(lambda x: (x.exp() * 2).sum(), prime, target=GPU)
    assert case.kernels == ["row", "row"]
    case.check(prime, rtol=1e-5)


def test_sums_along_memory_run_in_float64(fusing: SimpleNamespace) -> None:
    def types(shape: tuple[int, ...], *dims: int) -> list[str]:
        case = fusing.call(lambda x: x.sum(dims), torch.empty(shape), target=GPU)
        nests = [item for item in case.fused.program.body if isinstance(item, Nest)]
        return [str(s.dtype) for nest in nests for s in nest.body if isinstance(s, Reduce)]

    assert types((300_000,), 0) == ["f64", "f64"]
    assert types((5000, 100), 0) == ["f32", "f64"]


def test_records_say_why_and_name_the_reduction(fusing: SimpleNamespace) -> None:
    case = fusing.call(mean_and_variance, rand(5000, 100), target=GPU)
    (first, *_), whole = [d for d in case.decisions if d.kind == "split"], rand(1024, 100)
    assert first.about == ("lower:forward/var.var_sum",)
    assert first.reason == "5000 elements for each of 2 programs: 100 parts of 50"
    (only,) = [
        d for d in fusing.call(lambda x: x.sum(0), whole, target=GPU).decisions if d.kind == "split"
    ]
    assert only.reason == "1024 elements are few enough for one program"


def test_origins_are_the_reduction_and_what_merged(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: (x * 2).sum(), rand(300_000), target=GPU)
    first, second = case.fused.program.body
    assert first.origins == {"lower:forward/mul", "lower:forward/sum_1"}
    assert second.origins == {"lower:forward/sum_1"}
    own = "lower:forward/sum_1.sum_1_sum"
    reduces = [s for nest in (first, second) for s in nest.body if isinstance(s, Reduce)]
    assert [s.origins for s in reduces] == [{own}, {own}]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_parses_back(fusing: SimpleNamespace, name: str) -> None:
    call, inputs, dynamic, _ = PROGRAMS[name]
    program = fusing.call(call, *inputs, target=GPU, dynamic=dynamic).fused.program
    text = print_program(program)
    assert print_program(parse_program(text)) == text
