"""Breaks because the way through the program is not known while the graph is built."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Iterator
from typing import Any

import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import control_flow as kinds

Tensor = torch.Tensor


def branches(x: Tensor) -> Tensor:
    y = x * 2
    if y.sum() > 0:  # breaks
        return y + 1
    return y - 1


def branches_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return torch.where(y.sum() > 0, y + 1, y - 1)


def loops(x: Tensor) -> Tensor:
    while x.norm() > 1:  # breaks
        x = x / 2
    return x


def loops_fixed(x: Tensor) -> Tensor:
    for _ in range(6):
        x = torch.where(x.norm() > 1, x / 2, x)
    return x


def asserts(x: Tensor) -> Tensor:
    y = x * x
    assert (y >= 0).all()  # breaks
    return y.sqrt()


def asserts_fixed(x: Tensor) -> Tensor:
    y = x * x
    assert y.dtype == torch.float32
    return y.sqrt()


def joins(x: Tensor) -> Tensor:
    both = x.sum() > 0 and x.mean() < 2  # breaks
    return x * both


def joins_fixed(x: Tensor) -> Tensor:
    both = (x.sum() > 0) & (x.mean() < 2)
    return x * both


def chains(x: Tensor) -> Tensor:
    inside = 0 < x.mean() < 2  # breaks
    return x * inside


def chains_fixed(x: Tensor) -> Tensor:
    mean = x.mean()
    return x * ((mean > 0) & (mean < 2))


def takes_larger(x: Tensor) -> Tensor:
    larger = max(x[0] * -1, x[1])  # breaks
    return x + larger


def takes_larger_fixed(x: Tensor) -> Tensor:
    return x + torch.maximum(x[0] * -1, x[1])


def counted(call: int) -> tuple[Any, ...]:
    return (*vector(call), torch.tensor(call + 1))


def counts(x: Tensor, times: Tensor) -> Tensor:
    y = x + 1
    for _ in range(times):  # breaks
        y = y * 2
    return y


def counts_fixed(x: Tensor, times: Tensor) -> Tensor:
    y = x + 1
    for i in range(4):
        y = torch.where(times > i, y * 2, y)
    return y


def with_iterator(call: int) -> tuple[Any, ...]:
    return (*vector(call), map(float, ["2", "3"]))


def takes_item(x: Tensor, numbers: Iterator[float]) -> Tensor:
    y = x + 1
    return y * next(numbers)  # breaks


def takes_item_fixed(x: Tensor, numbers: list[float]) -> Tensor:
    y = x + 1
    return y * numbers[0]


def escapes(x: Tensor) -> tuple[Tensor, Iterator[Tensor]]:
    y = x + 1
    rows = (row * 2 for row in y)  # breaks
    return y.sum(), rows


def escapes_fixed(x: Tensor) -> tuple[Tensor, list[Tensor]]:
    y = x + 1
    rows = [row * 2 for row in y]
    return y.sum(), rows


def signed(call: int) -> tuple[Any, ...]:
    return (*vector(call), call - 1)


def refuses(x: Tensor, n: int) -> Tensor:
    y = x * 2
    if n < 0:
        raise ValueError("n is negative")  # breaks
    return y + n


def refuses_fixed(x: Tensor, n: int) -> Tensor:
    try:
        return refuses(x, n)
    except ValueError:
        return x * 2


_settings = collections.ChainMap({"scale": 2.0})


def matches_mapping(x: Tensor) -> Tensor:
    y = x + 1
    match _settings:
        case {"scale": scale}:  # breaks
            return y * scale
    return y


def matches_mapping_fixed(x: Tensor) -> Tensor:
    y = x + 1
    match dict(_settings.maps[0]):
        case {"scale": scale}:
            return y * scale
    return y


async def doubled(x: Tensor) -> Tensor:
    return x * 2


def awaits(x: Tensor) -> Tensor:
    y = x + 1
    return asyncio.run(doubled(y))  # breaks


def awaits_fixed(x: Tensor) -> Tensor:
    return (x + 1) * 2


EXAMPLES = (
    Example(kinds.TENSOR_BRANCH, branches, branches_fixed),
    Example(kinds.TENSOR_LOOP, loops, loops_fixed),
    Example(kinds.TENSOR_ASSERT, asserts, asserts_fixed),
    Example(kinds.TENSOR_LOGIC, joins, joins_fixed),
    Example(kinds.TENSOR_CHAIN, chains, chains_fixed),
    Example(kinds.TENSOR_ORDER, takes_larger, takes_larger_fixed),
    Example(kinds.TENSOR_RANGE, counts, counts_fixed, counted),
    Example(
        kinds.ITERATION, takes_item, takes_item_fixed, with_iterator,
        fixed_arguments=lambda call: (*vector(call), [2.0, 3.0]),
    ),
    Example(kinds.SUSPENDED, escapes, escapes_fixed, alternative="a list instead of a generator"),
    Example(kinds.UNCAUGHT, refuses, refuses_fixed, signed, alternative="a value instead of an exception"),
    Example(kinds.OPCODE, matches_mapping, matches_mapping_fixed),
    Example(kinds.COROUTINE, awaits, awaits_fixed),
)  # fmt: skip
