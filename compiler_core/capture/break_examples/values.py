"""Breaks because Python wants a value that the graph has yet to compute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import values as kinds

Tensor = torch.Tensor


def reads(x: Tensor) -> Tensor:
    y = x + 1
    total = y.sum().item()  # breaks
    return y / total


def reads_fixed(x: Tensor) -> Tensor:
    y = x + 1
    return y / y.sum()


def lists(x: Tensor) -> Tensor:
    y = x * 2
    first, *_ = y.tolist()  # breaks
    return y + float(first)


def lists_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + y[0]


def converts(x: Tensor) -> Tensor:
    y = x * 2
    whole = int(y[1])  # breaks
    return y + whole


def converts_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + y[1].to(torch.int64)


def takes_root(x: Tensor) -> Tensor:
    squares = (x * x).sum()
    return x * math.sqrt(squares)  # breaks


def takes_root_fixed(x: Tensor) -> Tensor:
    return x * torch.sqrt((x * x).sum())


def indexed(call: int) -> tuple[Any, ...]:
    return (*vector(call), torch.tensor(call))


def picks(x: Tensor, which: Tensor) -> Tensor:
    forms = [x + 1, x * 2, x - 3]
    return forms[which] * 2  # breaks


def picks_fixed(x: Tensor, which: Tensor) -> Tensor:
    forms = torch.stack([x + 1, x * 2, x - 3])
    return forms.index_select(0, which.view(1))[0] * 2


def describes(x: Tensor) -> tuple[Tensor, str]:
    y = x * 2
    text = f"largest: {y.max()}"  # breaks
    return y, text


def describes_fixed(x: Tensor) -> tuple[Tensor, str]:
    y = x * 2
    return y, f"shape: {tuple(y.shape)}"


def to_numpy(x: Tensor) -> tuple[Tensor, Any]:
    y = x * 2
    return y.sum(), y.numpy()  # breaks


def to_numpy_fixed(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    return y.sum(), y


def compares(x: Tensor) -> Tensor:
    y = x.abs()
    return x * 2 if torch.equal(x, y) else y  # breaks


def compares_fixed(x: Tensor) -> Tensor:
    y = x.abs()
    return torch.where((x == y).all(), x * 2, y)


def identifies(x: Tensor) -> tuple[Tensor, bool]:
    y = x * 2
    return y, id(x) == id(x)  # breaks


def identifies_fixed(x: Tensor) -> tuple[Tensor, bool]:
    y = x * 2
    return y, x is x


def addresses(x: Tensor) -> tuple[Tensor, bool]:
    y = x.view(2, 2)
    shares = x.data_ptr() == y.data_ptr()  # breaks
    return y * 2, shares


def addresses_fixed(x: Tensor) -> tuple[Tensor, bool]:
    y = x.view(2, 2)
    return y * 2, y.is_contiguous()


@dataclass(frozen=True)
class Place:
    """A key that is equal to others of the same numbers."""

    row: int
    column: int


def keyed(call: int) -> tuple[Any, ...]:
    return (*vector(call), {Place(0, 1): 2.0 + call}, Place(0, 1))


def looks_up(x: Tensor, scales: dict[Any, float], place: Place) -> Tensor:
    y = x + 1
    return y * scales[place]  # breaks


def keyed_by_name(call: int) -> tuple[Any, ...]:
    return (*vector(call), {"0, 1": 2.0 + call}, "0, 1")


def looks_up_fixed(x: Tensor, scales: dict[Any, float], place: str) -> Tensor:
    y = x + 1
    return y * scales[place]


EXAMPLES = (
    Example(kinds.SCALAR_READ, reads, reads_fixed),
    Example(kinds.AS_LIST, lists, lists_fixed),
    Example(kinds.AS_NUMBER, converts, converts_fixed),
    Example(kinds.MATH_OF_TENSOR, takes_root, takes_root_fixed, alternative="rounded to float32"),
    Example(kinds.TENSOR_INDEX, picks, picks_fixed, indexed),
    Example(kinds.TENSOR_TEXT, describes, describes_fixed, alternative="the text of the shape"),
    Example(kinds.AS_NUMPY, to_numpy, to_numpy_fixed, alternative="a tensor"),
    Example(kinds.WHOLE_COMPARE, compares, compares_fixed),
    Example(kinds.IDENTITY, identifies, identifies_fixed),
    Example(kinds.ADDRESS, addresses, addresses_fixed),
    Example(kinds.UNHASHABLE, looks_up, looks_up_fixed, keyed, keyed_by_name),
)
