"""Breaks because of what tensors hold, how they lie in memory, or which class they have."""

from __future__ import annotations

from typing import Any

import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import tensors as kinds

Tensor = torch.Tensor


def selects(x: Tensor) -> Tensor:
    y = x * 2
    chosen = y[y > 0]  # breaks
    return chosen.sum() + 1


def selects_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return torch.where(y > 0, y, 0).sum() + 1


def finds(x: Tensor) -> Tensor:
    places = torch.nonzero(x > 0)  # breaks
    return places.sum()


def finds_fixed(x: Tensor) -> Tensor:
    return torch.where(x > 0, torch.arange(4), 0).sum()


def repeated(call: int) -> tuple[Any, ...]:
    return (torch.tensor([1.0, 1.0, 2.0, 3.0]) + call,)


def distinguishes(x: Tensor) -> Tensor:
    distinct = torch.unique(x)  # breaks
    return distinct.sum()  # type: ignore[no-any-return]


def distinguishes_fixed(x: Tensor) -> Tensor:
    ordered = x.sort().values
    is_first = torch.cat([torch.ones(1, dtype=torch.bool), ordered[1:] != ordered[:-1]])
    return torch.where(is_first, ordered, 0).sum()


def with_counts(call: int) -> tuple[Any, ...]:
    return (*vector(call), torch.tensor([1, 0, 2, 1]))


def stretches(x: Tensor, counts: Tensor) -> Tensor:
    y = x * 2
    return y.repeat_interleave(counts) + 1  # breaks


def stretches_fixed(x: Tensor, counts: Tensor) -> Tensor:
    y = x * 2
    return y.repeat_interleave(counts, output_size=4) + 1


def mismatches(x: Tensor) -> Tensor:
    y = x * 2
    try:
        return y.view(3, 3)  # breaks
    except RuntimeError:
        return y


def mismatches_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y.view(3, 3) if y.numel() == 9 else y


@torch.library.custom_op("break_examples::plain", mutates_args=())
def plain_operator(x: Tensor) -> Tensor:
    return x * 3


@torch.library.custom_op("break_examples::described", mutates_args=())
def described_operator(x: Tensor) -> Tensor:
    return x * 3


@described_operator.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def calls_custom(x: Tensor) -> Tensor:
    y = x + 1
    return plain_operator(y) * 2  # type: ignore[no-any-return]  # breaks


def calls_custom_fixed(x: Tensor) -> Tensor:
    y = x + 1
    return described_operator(y) * 2  # type: ignore[no-any-return]


@torch.library.custom_op("break_examples::writes", mutates_args=("x",))
def writing_operator(x: Tensor) -> None:
    x.mul_(3)


@writing_operator.register_fake
def _(x: Tensor) -> None:
    return None


def calls_writing(x: Tensor) -> Tensor:
    y = x + 1
    writing_operator(y)  # breaks
    return y * 2


def reads_by_strides(x: Tensor) -> Tensor:
    windows = x.as_strided((3, 2), (1, 1))  # breaks
    return windows.sum(1)


def reads_by_strides_fixed(x: Tensor) -> Tensor:
    return x.unfold(0, 2, 1).sum(1)


class Weight(torch.Tensor):
    """A tensor of a class of its own."""


def subclassed(call: int) -> tuple[Any, ...]:
    return (*vector(call), torch.ones(4).as_subclass(Weight))


def weighs(x: Tensor, weight: Tensor) -> Tensor:
    y = x + 1
    return (y * weight).as_subclass(torch.Tensor)  # breaks


def weighs_fixed(x: Tensor, weight: Tensor) -> Tensor:
    y = x + 1
    return y * weight


def conjugated(call: int) -> tuple[Any, ...]:
    return (torch.tensor([1 + 2j, 3 - 1j]).conj() + 0 * call, torch.tensor([1j, 2 + call]).conj())


def multiplies(x: Tensor, lazy: Tensor) -> Tensor:
    y = x + 1
    return y * lazy  # breaks


def resolved(call: int) -> tuple[Any, ...]:
    x, lazy = conjugated(call)
    return x, lazy.resolve_conj()


def multiplies_fixed(x: Tensor, lazy: Tensor) -> Tensor:
    y = x + 1
    return y * lazy


def with_sparse(call: int) -> tuple[Any, ...]:
    return (*vector(call), torch.eye(4).to_sparse())


def mixes(x: Tensor, matrix: Tensor) -> Tensor:
    y = x + 1
    return torch.mv(matrix, y) * 2  # breaks


def mixes_fixed(x: Tensor, matrix: Tensor) -> Tensor:
    y = x + 1
    return torch.mv(matrix, y) * 2


def with_dense(call: int) -> tuple[Any, ...]:
    return (*vector(call), torch.eye(4))


EXAMPLES = (
    Example(kinds.DATA_SHAPE, selects, selects_fixed),
    Example(kinds.POSITIONS, finds, finds_fixed),
    Example(kinds.DISTINCT, distinguishes, distinguishes_fixed, repeated),
    Example(kinds.SIZES_IN_TENSOR, stretches, stretches_fixed, with_counts),
    Example(kinds.OPERATOR_RAISES, mismatches, mismatches_fixed),
    Example(kinds.NO_FAKE, calls_custom, calls_custom_fixed),
    Example(kinds.CUSTOM_WRITES, calls_writing, calls_custom_fixed),
    Example(kinds.STRIDED_MEMORY, reads_by_strides, reads_by_strides_fixed),
    Example(kinds.SUBCLASS, weighs, weighs_fixed, subclassed, with_counts, "a plain tensor"),
    Example(kinds.LAZY_BIT, multiplies, multiplies_fixed, conjugated, resolved),
    Example(kinds.LAYOUT, mixes, mixes_fixed, with_sparse, with_dense),
)
