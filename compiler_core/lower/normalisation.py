"""Softmax, layer norm and their derivatives: row statistics, then a formula of them.

In: a node of the table. Out: several nests: one per statistic (in f32, or f64 for f64) and one per
output. Each nest stores one buffer, so that fusion sees plain reductions and element-wise nests with
common rows. A statistic that the operator returns in that type is the output itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import Index, index
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import Operand, Refusal, count
from compiler_core.lower.reductions import accumulator, merged, reduced_dimensions
from compiler_core.lower.scalars import Scalar, apply, cast
from compiler_core.lower.sizes import SizeNumber

__all__ = ["TABLE", "Rows"]

aten = torch.ops.aten

# reads an operand at the position in question, in the statistics' type
Read: TypeAlias = Callable[[Operand], Scalar]


@dataclass(frozen=True, slots=True)
class Rows:
    """A space of `shape` whose rows run over `dims`; statistics have size 1 there."""

    env: Environment
    node: fx.Node
    like: Operand
    dims: tuple[int, ...]

    @property
    def shape(self) -> tuple[Index, ...]:
        return self.like.shape

    @property
    def dtype(self) -> DType:
        """What everything is computed in."""
        return accumulator(self.like.dtype)

    @property
    def kept(self) -> tuple[Index, ...]:
        return tuple(index(1) if d in self.dims else n for d, n in enumerate(self.shape))

    @property
    def row(self) -> tuple[Index, ...]:
        return tuple(self.shape[d] for d in self.dims)

    def length(self, nest: NestBuilder) -> Scalar:
        return nest.size(count(self.row), self.dtype)

    def statistic(
        self,
        suffix: str,
        kind: str,
        body: Callable[[Read], Scalar],
        finish: Callable[[Scalar], Scalar] = lambda x: x,
        element: int | None = None,
    ) -> Operand:
        """`finish` of the fold of `body` over each row; output `element` of the node, if it is one."""
        fakes = self.node.meta["val"]
        is_output = element is not None and fakes[element].dtype == self.dtype.torch
        with self.env.nest(self.node, self.kept, suffix) as nest:
            value = finish(nest.reduce(kind, self.row, self._element(nest, body)))
            if is_output:
                return self.env.store(nest, self.node, value, element)
            target = self.env.temporary(self.node, suffix, self.kept, self.dtype, self.like)
            nest.store(target, value)
            return target

    def _element(
        self, nest: NestBuilder, body: Callable[[Read], Scalar]
    ) -> Callable[[Sequence[Index]], Scalar]:
        return lambda inner: body(self._reader(nest, merged(nest.positions, inner, self.dims)))

    def _reader(self, nest: NestBuilder, positions: Sequence[Index]) -> Read:
        return lambda source: cast(nest.load(source, positions), self.dtype)

    def output(self, formula: Callable[[Read], Scalar], element: int | None = None) -> Operand:
        """An output of the whole shape."""
        suffix = f"{element}" if element else ""
        with self.env.nest(self.node, self.shape, suffix) as nest:
            value = formula(self._reader(nest, nest.positions))
            return self.env.store(nest, self.node, value, element)

    def returned(self, source: Operand, element: int) -> Operand | None:
        """A statistic as an output: itself, or rounded to the output's type."""
        if not self.env.is_used(self.node, element):
            return None
        if source.dtype.torch == self.node.meta["val"][element].dtype:
            return source
        with self.env.nest(self.node, self.kept, f"{element}") as nest:
            return self.env.store(nest, self.node, nest.load(source, nest.positions), element)


def rows_of(env: Environment, node: fx.Node, like: Operand, dims: Any) -> Rows:
    """The rows of an operand along dimensions. Raises Refusal for a type that nothing computes in."""
    if like.dtype.name not in DTYPES:
        raise Refusal(f"no kernel computes in {like.dtype}")
    return Rows(env, node, like, reduced_dimensions(dims, len(like.shape)))


def _exp(x: Scalar) -> Scalar:
    return apply("exp", x)


def lower_softmax(env: Environment, node: fx.Node) -> Operand:
    """exp(x - top) / sum of it; a row of -inf gives NaN, as in eager."""
    given = env.arguments(node)
    x = given["self"]
    rows = rows_of(env, node, x, [given["dim"]])
    top = rows.statistic("max", "max", lambda read: read(x))
    total = rows.statistic("sum", "sum", lambda read: _exp(read(x) - read(top)))
    return rows.output(lambda read: _exp(read(x) - read(top)) / read(total))


def lower_log_softmax(env: Environment, node: fx.Node) -> Operand:
    """x - top - log of the sum of exp(x - top)."""
    given = env.arguments(node)
    x = given["self"]
    rows = rows_of(env, node, x, [given["dim"]])
    top = rows.statistic("max", "max", lambda read: read(x))
    total = rows.statistic(
        "logsum", "sum", lambda read: _exp(read(x) - read(top)), lambda s: apply("log", s)
    )
    return rows.output(lambda read: read(x) - read(top) - read(total))


def lower_softmax_backward(env: Environment, node: fx.Node) -> Operand:
    given = env.arguments(node)
    grad, y = given["grad_output"], given["output"]
    rows = rows_of(env, node, grad, [given["dim"]])
    total = rows.statistic("sum", "sum", lambda read: read(grad) * read(y))
    return rows.output(lambda read: (read(grad) - read(total)) * read(y))


def lower_log_softmax_backward(env: Environment, node: fx.Node) -> Operand:
    given = env.arguments(node)
    grad, y = given["grad_output"], given["output"]
    rows = rows_of(env, node, grad, [given["dim"]])
    total = rows.statistic("sum", "sum", lambda read: read(grad))
    return rows.output(lambda read: read(grad) - _exp(read(y)) * read(total))


def _last(x: Operand, normalized_shape: Any) -> list[int]:
    rank = len(x.shape)
    return list(range(rank - len(normalized_shape), rank))


def lower_layer_norm(env: Environment, node: fx.Node) -> tuple[Operand | None, ...]:
    """(x - mean) * rstd * weight + bias, and the two statistics (Ba, Kiros and Hinton 2016)."""
    given = env.arguments(node)
    x, weight, bias, eps = (given[name] for name in ("input", "weight", "bias", "eps"))
    rows = rows_of(env, node, x, _last(x, given["normalized_shape"]))
    centre = rows.statistic(
        "mean", "sum", lambda read: read(x), lambda s: s / rows.length(s.nest), element=1
    )

    def squared(read: Read) -> Scalar:
        distance = read(x) - read(centre)
        return distance * distance

    def inverse(s: Scalar) -> Scalar:
        small = eps.emit(s.nest, s.dtype) if isinstance(eps, SizeNumber) else eps
        return apply("rsqrt", s / rows.length(s.nest) + small)

    rstd = rows.statistic("rstd", "sum", squared, inverse, element=2)

    def formula(read: Read) -> Scalar:
        y = (read(x) - read(centre)) * read(rstd)
        y = y if weight is None else y * read(weight)
        return y if bias is None else y + read(bias)

    out = rows.output(formula, 0)
    return out, rows.returned(centre, 1), rows.returned(rstd, 2)


def lower_layer_norm_backward(env: Environment, node: fx.Node) -> tuple[Operand | None, ...]:
    """Gradients of input, weight and bias, those that the mask asks for and something reads."""
    given = env.arguments(node)
    grad, x, centre, rstd = (given[name] for name in ("grad_out", "input", "mean", "rstd"))
    rows = rows_of(env, node, x, _last(x, given["normalized_shape"]))
    wanted = [asked and env.is_used(node, k) for k, asked in enumerate(given["output_mask"])]

    def normal(read: Read) -> Scalar:
        return (read(x) - read(centre)) * read(rstd)

    outer = tuple(d for d in range(len(x.shape)) if d not in rows.dims)
    grads = (lambda read: read(grad) * normal(read), lambda read: read(grad))
    return (
        _layer_norm_input(rows, given, normal) if wanted[0] else None,
        *(
            _over_rows(Rows(env, node, x, outer), body, k) if wanted[k] else None
            for k, body in enumerate(grads, start=1)
        ),
    )


def _layer_norm_input(
    rows: Rows, given: dict[str, Any], normal: Callable[[Read], Scalar]
) -> Operand:
    grad, weight, rstd = given["grad_out"], given["weight"], given["rstd"]

    def scaled(read: Read) -> Scalar:
        return read(grad) if weight is None else read(grad) * read(weight)

    def average(total: Scalar) -> Scalar:
        return total / rows.length(total.nest)

    along = rows.statistic("mean", "sum", scaled, average)
    across = rows.statistic("dot", "sum", lambda read: scaled(read) * normal(read), average)
    return rows.output(
        lambda read: (scaled(read) - read(along) - normal(read) * read(across)) * read(rstd), 0
    )


def _over_rows(columns: Rows, body: Callable[[Read], Scalar], element: int) -> Operand:
    """The sum of `body` over the outer dimensions: a parameter's gradient."""
    env, node = columns.env, columns.node
    with env.nest(node, columns.kept, f"{element}") as nest:
        total = nest.reduce("sum", columns.row, columns._element(nest, body))
        target = env.fresh(node, element)
        inner = nest.positions[len(columns.dims) :]
        nest.store(target, cast(total, target.dtype), inner, env.readers(node, element))
        return target


TABLE: dict[Any, Any] = {
    aten._softmax.default: lower_softmax,
    aten._log_softmax.default: lower_log_softmax,
    aten._softmax_backward_data.default: lower_softmax_backward,
    aten._log_softmax_backward_data.default: lower_log_softmax_backward,
    aten.native_layer_norm.default: lower_layer_norm,
    aten.native_layer_norm_backward.default: lower_layer_norm_backward,
}
