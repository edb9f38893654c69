"""Offsets as strides: what an index expression does with each axis.

In: index expressions. Out: the stride of each axis and the rest, exact quotients, and numbers to
stand in for symbolic sizes where only an order of magnitude is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import reduce
from math import prod

from compiler_core.ir.index import Index, index
from compiler_core.ir.index_terms import divide_terms, terms_of
from compiler_core.ir.loop import Axis

__all__ = ["HINT", "estimate", "exact_quotient", "product", "steps", "strides_of"]

HINT = 1021  # a prime, so that products of unknown sizes are not taken for known ones


def strides_of(offset: Index, axes: Collection[str]) -> tuple[dict[str, Index], Index] | None:
    """({axis: stride}, rest) with offset == sum(axis * stride) + rest.

    Axes that the offset does not mention are left out. None where the offset is not linear.
    """
    strides: dict[str, Index] = {}
    rest = offset
    for name in axes:
        if name not in rest.names:
            continue
        parts = rest.split(name)
        if parts is None:
            return None
        strides[name], rest = parts
    if any(not stride.names.isdisjoint(axes) for stride in strides.values()):
        return None
    return strides, rest


def exact_quotient(a: Index, b: Index) -> Index | None:
    """a / b where b divides a for every value of the symbols, else None. b is not 0."""
    if b.constant == 0 or len(terms_of(b)) != 1:
        return index(1) if a is b and b.constant != 0 else None
    quotient, rest = divide_terms(a, b)
    return quotient if rest.constant == 0 else None


def product(factors: Iterable[Index]) -> Index:
    return reduce(lambda a, b: a * b, factors, index(1))


def steps(axes: Iterable[Axis]) -> int:
    """The number of positions of an iteration space, with a stand-in for each symbolic size."""
    return prod(estimate(axis.extent) for axis in axes)


def estimate(e: Index) -> int:
    """The value, with a stand-in for each symbolic size."""
    return e.evaluate(dict.fromkeys(e.names, HINT))
