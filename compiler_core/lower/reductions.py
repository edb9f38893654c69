"""Reductions: one row per ATen overload, a `Reduce` per result.

In: a node that folds its operand over dimensions. Out: one nest over the kept dimensions per output.
Sums of half types run in f32 and sums of integers in i64; mean, variance and norms are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType, stored_as
from compiler_core.ir.index import Index, index
from compiler_core.ir.ops import REDUCTIONS
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, count, indices_of
from compiler_core.lower.scalars import BOOL, Scalar, apply, cast, where

__all__ = ["TABLE", "Fold", "accumulator", "merged", "reduced_dimensions"]

aten = torch.ops.aten

Formula = Callable[["Fold", dict[str, Any]], Scalar]


def reduced_dimensions(dims: Any, rank: int) -> tuple[int, ...]:
    """Dimensions as non-negative numbers; None and the empty list mean all."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return tuple(range(rank))
    listed = dims if isinstance(dims, (list, tuple)) else (dims,)
    return tuple(sorted({dim % rank for dim in listed})) if rank else ()


def accumulator(dtype: DType) -> DType:
    """The type that a sum runs in."""
    return DTYPES[dtype.accumulator]


def merged(
    outer: Sequence[Index], inner: Sequence[Index], dims: Sequence[int]
) -> tuple[Index, ...]:
    """A position of the whole space: `inner` in the folded dimensions, `outer` in the others."""
    folded = iter(inner)
    return tuple(next(folded) if dim in dims else p for dim, p in enumerate(outer))


@dataclass(frozen=True, slots=True)
class Fold:
    """An operand, which of its dimensions are folded, and the nest over the others."""

    nest: NestBuilder
    source: Operand
    dims: tuple[int, ...]
    keepdim: bool
    result: DType

    @property
    def shape(self) -> tuple[Index, ...]:
        """Sizes of the folded dimensions."""
        return tuple(self.source.shape[dim] for dim in self.dims)

    @property
    def count(self) -> Index:
        return count(self.shape)

    def positions(self, inner: Sequence[Index]) -> tuple[Index, ...]:
        """The operand's position, from the nest's and the folded dimensions'."""
        rank, outer = len(self.source.shape), iter(self.nest.positions)
        if self.keepdim:
            return merged(self.nest.positions, inner, self.dims)
        spread = [index(0) if dim in self.dims else next(outer) for dim in range(rank)]
        return merged(spread, inner, self.dims)

    def over(
        self, kind: str, dtype: DType, body: Callable[[Scalar], Scalar] | None = None
    ) -> Scalar:
        """Fold the operand's elements, cast to `dtype` and put through `body`."""

        if self.count.constant == 0 and REDUCTIONS[kind].empty is None:
            raise Refusal(f"{kind} of no elements")

        def element(inner: Sequence[Index]) -> Scalar:
            x = cast(self.nest.load(self.source, self.positions(inner)), dtype)
            return x if body is None else body(x)

        return self.nest.reduce(kind, self.shape, element)


def _sum(fold: Fold, given: dict[str, Any]) -> Scalar:
    return fold.over("sum", accumulator(fold.result))


def _prod(fold: Fold, given: dict[str, Any]) -> Scalar:
    return fold.over("prod", accumulator(fold.result))


def _mean(fold: Fold, given: dict[str, Any]) -> Scalar:
    return mean(fold, accumulator(fold.result))


def mean(fold: Fold, dtype: DType) -> Scalar:
    """The sum over the count; over nothing 0 / 0, NaN."""
    return fold.over("sum", dtype) / fold.nest.size(fold.count, dtype)


def _extreme(kind: str) -> Formula:
    return lambda fold, given: fold.over(kind, fold.source.dtype)


def _test(kind: str) -> Formula:
    return lambda fold, given: fold.over(kind, BOOL)


def variance(fold: Fold, correction: float | None) -> Scalar:
    """Two passes: the mean, then the squared distances from it over max(0, count - correction)."""
    dtype = accumulator(fold.result)
    centre = mean(fold, dtype)

    def squared(x: Scalar) -> Scalar:
        distance = x - centre
        return distance * distance

    total = fold.over("sum", dtype, squared)
    correction = 1 if correction is None else correction
    if fold.count.constant is not None:
        return total / max(0, fold.count.constant - correction)
    return total / apply("maximum", fold.nest.size(fold.count, dtype) - correction, 0)


def _var(fold: Fold, given: dict[str, Any]) -> Scalar:
    return variance(fold, given.get("correction"))


def _std(fold: Fold, given: dict[str, Any]) -> Scalar:
    return apply("sqrt", _var(fold, given))


def _logsumexp(fold: Fold, given: dict[str, Any]) -> Scalar:
    """Around the largest element, or around 0 where that is infinite."""
    dtype = accumulator(fold.result)
    top = fold.over("max", dtype)
    top = where(apply("isinf", top), 0, top)
    return apply("log", fold.over("sum", dtype, lambda x: apply("exp", x - top))) + top


def _norm(fold: Fold, given: dict[str, Any]) -> Scalar:
    """Vector norms of order 0, 1, 2 and infinity; others by powers."""
    dtype = accumulator(fold.result)
    order = given["ord"]
    if order == 2:
        return apply("sqrt", fold.over("sum", dtype, lambda x: x * x))
    if order == 1:
        return fold.over("sum", dtype, lambda x: apply("abs", x))
    if order in (float("inf"), float("-inf")):
        return fold.over("max" if order > 0 else "min", dtype, lambda x: apply("abs", x))
    if order == 0:
        return fold.over("sum", dtype, lambda x: cast(apply("ne", x, 0), dtype))
    powers = fold.over("sum", dtype, lambda x: apply("pow", apply("abs", x), order))
    return apply("pow", powers, 1 / order)


@dataclass(frozen=True, slots=True)
class Row:
    """One formula per output; `dims` is the name of the argument that lists the dimensions."""

    outputs: tuple[Formula, ...]
    dims: str = "dim"


def lower_reduction(row: Row, env: Environment, node: fx.Node) -> Any:
    """One nest per output. Returns the operand, or a tuple of them."""
    given = env.arguments(node)
    source: Operand = given["self"]
    fakes = node.meta["val"]
    _check(source, fakes)
    dims = reduced_dimensions(given.get(row.dims), len(source.shape))
    if isinstance(fakes, torch.Tensor):
        return _one(env, node, row.outputs[0], source, dims, given, None)
    return tuple(
        _one(env, node, formula, source, dims, given, k) if env.is_used(node, k) else None
        for k, formula in enumerate(row.outputs)
    )


def _check(source: Operand, fakes: Any) -> None:
    results = (fakes,) if isinstance(fakes, torch.Tensor) else fakes
    for dtype in (source.dtype, *(stored_as(fake.dtype) for fake in results)):
        if dtype.name not in DTYPES:
            raise Refusal(f"no kernel computes in {dtype}")


def _one(
    env: Environment, node: fx.Node, formula: Formula, source: Operand, dims: tuple[int, ...],
    given: dict[str, Any], element: int | None,
) -> Operand:  # fmt: skip
    fake = node.meta["val"] if element is None else node.meta["val"][element]
    suffix = "" if element is None else f"{element}"
    target_shape = indices_of(fake.shape)
    with env.nest(node, target_shape, suffix) as nest:
        keepdim = bool(dims) and len(target_shape) == len(source.shape)
        fold = Fold(nest, source, dims, keepdim, stored_as(fake.dtype))
        return env.store(nest, node, formula(fold, given), element)


ROWS: dict[Any, Row] = {
    aten.sum.default: Row((_sum,)),
    aten.sum.dim_IntList: Row((_sum,)),
    aten.mean.default: Row((_mean,)),
    aten.mean.dim: Row((_mean,)),
    aten.prod.default: Row((_prod,)),
    aten.prod.dim_int: Row((_prod,)),
    aten.amax.default: Row((_extreme("max"),)),
    aten.amin.default: Row((_extreme("min"),)),
    aten.max.default: Row((_extreme("max"),)),
    aten.min.default: Row((_extreme("min"),)),
    aten.max.dim: Row((_extreme("max"), _extreme("argmax"))),
    aten.min.dim: Row((_extreme("min"), _extreme("argmin"))),
    aten.aminmax.default: Row((_extreme("min"), _extreme("max"))),
    aten.argmax.default: Row((_extreme("argmax"),)),
    aten.argmin.default: Row((_extreme("argmin"),)),
    aten.any.default: Row((_test("any"),)),
    aten.any.dim: Row((_test("any"),)),
    aten.any.dims: Row((_test("any"),)),
    aten.all.default: Row((_test("all"),)),
    aten.all.dim: Row((_test("all"),)),
    aten.all.dims: Row((_test("all"),)),
    aten.var.correction: Row((_var,)),
    aten.std.correction: Row((_std,)),
    aten.var_mean.correction: Row((_var, _mean)),
    aten.std_mean.correction: Row((_std, _mean)),
    aten.logsumexp.default: Row((_logsumexp,)),
    aten.linalg_vector_norm.default: Row((_norm,)),
}
TABLE: dict[Any, Any] = {op: partial(lower_reduction, row) for op, row in ROWS.items()}
