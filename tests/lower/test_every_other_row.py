"""Every row of the tables besides the element-wise one, each with examples, against eager."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compiler_core.lower import (
    creation,
    gathers,
    indexing,
    matmul,
    normalisation,
    pointwise,
    pooling,
    reductions,
    scatters,
    views,
)
from compiler_core.lower.table import TABLE

aten = torch.ops.aten
f32, f64, bf16, f16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
i64, u8 = torch.int64, torch.uint8


def t(*shape: int, dtype: torch.dtype = f32) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(0, 9, shape, dtype=dtype)


def each(*dtypes: torch.dtype, shape: tuple[int, ...] = (3, 5)) -> list[tuple[torch.Tensor, ...]]:
    return [(t(*shape, dtype=dtype),) for dtype in dtypes]


ALL = each(f32, f64, bf16, f16, i64, u8, torch.bool)
FLOATS = each(f32, f64, bf16, f16)
TIES = [(torch.tensor([[1.0, 3.0, 3.0], [math.nan, 2.0, math.nan], [-math.inf, -math.inf, -1.0]]),)]
ODD = [(t(5, 3).t(),), (t(1, 5).expand(3, 5),), (t(3, 10)[:, ::2],)]

# operator → (arguments after the tensors, lists of tensors)
Example = tuple[Callable[..., Any], list[tuple[torch.Tensor, ...]]]


def over(
    op: Any, *argument_lists: tuple[Any, ...], on: list[tuple[torch.Tensor, ...]], **named: Any
) -> list[Example]:
    return [(lambda *x, rest=rest: op(*x, *rest, **named), on) for rest in argument_lists]


REDUCTIONS: dict[Any, list[Example]] = {
    aten.sum.default: over(aten.sum.default, (), on=ALL + ODD + each(f32, i64, shape=(0, 3)) + each(f32, shape=())),
    aten.sum.dim_IntList: over(aten.sum.dim_IntList, ([0],), ([-1], True), ([0, 1],), ([],), (None,), on=ALL + ODD)
    + over(aten.sum.dim_IntList, ([1],), on=ALL, dtype=f64)
    + over(aten.sum.dim_IntList, ([0],), on=each(f32, shape=(0, 3))),
    aten.mean.default: over(aten.mean.default, (), on=FLOATS + ODD + each(f32, shape=(0, 3)) + each(f32, shape=())),
    aten.mean.dim: over(aten.mean.dim, ([0],), ([-1], True), ([0, 1],), (None,), on=FLOATS + ODD)
    + over(aten.mean.dim, ([0],), on=each(f32, shape=(0, 3)))
    + over(aten.mean.dim, ([1],), on=ALL, dtype=f32),
    aten.prod.default: over(aten.prod.default, (), on=ALL + each(f32, shape=(0, 3))),
    aten.prod.dim_int: over(aten.prod.dim_int, (0,), (-1, True), on=ALL + ODD),
    aten.amax.default: over(aten.amax.default, ([0],), ([-1], True), ([],), on=ALL + ODD + TIES),
    aten.amin.default: over(aten.amin.default, ([0],), ([-1], True), ([],), on=ALL + ODD + TIES),
    aten.max.default: over(aten.max.default, (), on=ALL + ODD + TIES + each(f32, shape=())),
    aten.min.default: over(aten.min.default, (), on=ALL + ODD + TIES + each(f32, shape=())),
    aten.max.dim: over(aten.max.dim, (0,), (-1, True), on=ALL + ODD + TIES + each(f32, shape=(3, 1))),
    aten.min.dim: over(aten.min.dim, (0,), (-1, True), on=ALL + ODD + TIES),
    aten.aminmax.default: over(aten.aminmax.default, (), on=FLOATS + TIES) + over(aten.aminmax.default, on=FLOATS, dim=1, keepdim=True),
    aten.argmax.default: over(aten.argmax.default, (), (0,), (-1, True), on=each(f32, bf16, i64) + ODD + TIES),
    aten.argmin.default: over(aten.argmin.default, (), (0,), (-1, True), on=each(f32, bf16, i64) + ODD + TIES),
    aten.any.default: over(aten.any.default, (), on=ALL + TIES + each(f32, shape=(0, 3))),
    aten.any.dim: over(aten.any.dim, (0,), (-1, True), on=ALL + ODD),
    aten.any.dims: over(aten.any.dims, ([0, 1],), ([1], True), on=ALL),
    aten.all.default: over(aten.all.default, (), on=ALL + TIES + each(f32, shape=(0, 3))),
    aten.all.dim: over(aten.all.dim, (0,), (-1, True), on=ALL + ODD),
    aten.all.dims: over(aten.all.dims, ([0, 1],), ([1], True), on=ALL),
    aten.var.correction: over(aten.var.correction, ([1],), ([0, 1],), (None,), on=FLOATS + ODD + each(f32, shape=(3, 1)))
    + over(aten.var.correction, ([1],), on=FLOATS, correction=0, keepdim=True)
    + over(aten.var.correction, ([1],), on=FLOATS, correction=9),
    aten.std.correction: over(aten.std.correction, ([1],), ([0, 1],), on=FLOATS + ODD),
    aten.var_mean.correction: over(aten.var_mean.correction, ([1],), ([0],), on=FLOATS, keepdim=True),
    aten.std_mean.correction: over(aten.std_mean.correction, ([1],), ([0],), on=FLOATS),
    aten.logsumexp.default: over(aten.logsumexp.default, ([1],), ([0, 1], True), on=FLOATS + ODD)
    + over(aten.logsumexp.default, ([1],), on=[(torch.full((2, 3), -math.inf),), (torch.tensor([[math.inf, 1.0]]),)]),
    aten.linalg_vector_norm.default: over(
        aten.linalg_vector_norm.default, (2,), (1, [1]), (math.inf, [0]), (-math.inf, [0]), (0, [1]), (3.0, [1], True), on=FLOATS
    ),
}  # fmt: skip

ROWS_OF_INF = [(torch.tensor([[-math.inf] * 4, [math.inf, 0, 1, 2], [1, -math.inf, 2, math.nan]]),)]
PAIRS = [
    (t(3, 5, dtype=d), torch.softmax(t(3, 5, dtype=d).float(), 1).to(d)) for d in (f32, f64, bf16)
]


def _norm_inputs(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return t(2, 3, 8, dtype=dtype), t(8, dtype=dtype), t(8, dtype=dtype)


def _norm_backward_inputs(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    x, weight, bias = _norm_inputs(dtype)
    _, mean, rstd = torch.native_layer_norm(x, [8], weight, bias, 1e-5)
    return t(2, 3, 8, dtype=dtype), x, mean, rstd, weight, bias


def _norm_backward(*x: torch.Tensor, mask: list[bool]) -> tuple[torch.Tensor, ...]:
    grad, inputs, mean, rstd, weight, bias = x
    found = aten.native_layer_norm_backward(grad, inputs, [8], mean, rstd, weight, bias, mask)
    return tuple(g for g, wanted in zip(found, mask) if wanted)


NORMS = [_norm_inputs(d) for d in (f32, f64, bf16)]
NORM_BACKWARDS = [_norm_backward_inputs(d) for d in (f32, f64)]
NORMALISATIONS: dict[Any, list[Example]] = {
    aten._softmax.default: over(aten._softmax.default, (1, False), (0, False), (-1, False), on=FLOATS + ODD + ROWS_OF_INF)
    + over(aten._softmax.default, (0, False), on=each(f32, shape=()) + each(f32, shape=(0,))),
    aten._log_softmax.default: over(aten._log_softmax.default, (1, False), (0, False), on=FLOATS + ODD + ROWS_OF_INF),
    aten._softmax_backward_data.default: [
        (lambda g, y: aten._softmax_backward_data(g, y, 1, y.dtype), PAIRS),
        (lambda g, y: aten._softmax_backward_data(g, y, 0, y.dtype), PAIRS),
    ],
    aten._log_softmax_backward_data.default: [(lambda g, y: aten._log_softmax_backward_data(g, y.log(), -1, y.dtype), PAIRS)],
    aten.native_layer_norm.default: [
        (lambda x, w, b: aten.native_layer_norm(x, [8], w, b, 1e-5), NORMS),
        (lambda x, w, b: aten.native_layer_norm(x, [8], w, b, 1e-5)[0], NORMS),
        (lambda x: aten.native_layer_norm(x, [3, 8], None, None, 1e-5), [(t(2, 3, 8),)]),
        (lambda x: aten.native_layer_norm(x, [8], None, None, 1e-5), [(t(8),)]),
    ],
    aten.native_layer_norm_backward.default: [
        (lambda *x: _norm_backward(*x, mask=[True, True, True]), NORM_BACKWARDS),
        (lambda *x: _norm_backward(*x, mask=[False, True, False]), NORM_BACKWARDS),
        (lambda *x: _norm_backward(*x, mask=[True, False, False]), NORM_BACKWARDS),
    ],
}  # fmt: skip

SHAPED = [(t(3, 5),), (t(3, 5, dtype=i64),), (t(3, 5, dtype=torch.bool),)]
CREATIONS: dict[Any, list[Example]] = {
    aten.full.default: [
        (lambda x: aten.full([2, 3], 1.5) + x, [(t(),)]),
        (lambda x: (aten.full([2], 7), aten.full([], True), aten.full([2], 3, dtype=u8), x + 1), [(t(),)]),
    ],
    aten.full_like.default: over(aten.full_like.default, (2,), on=SHAPED),
    aten.new_full.default: over(aten.new_full.default, ([4], 2), on=SHAPED),
    aten.fill.Scalar: over(aten.fill.Scalar, (1,), on=SHAPED),
    aten.fill.Tensor: [(lambda x, v: aten.fill(x, v), [(t(3, 5), t()), (t(3, 5, dtype=i64), torch.tensor(4))])],
    aten.scalar_tensor.default: [(lambda x: x + aten.scalar_tensor(3.5), [(t(3),)])],
    aten.zeros.default: [(lambda x: x + aten.zeros([3]), [(t(3),)])],
    aten.zeros_like.default: over(aten.zeros_like.default, (), on=SHAPED),
    aten.new_zeros.default: over(aten.new_zeros.default, ([2],), on=SHAPED),
    aten.ones.default: [(lambda x: x + aten.ones([3]), [(t(3),)])],
    aten.ones_like.default: over(aten.ones_like.default, (), on=SHAPED),
    aten.new_ones.default: over(aten.new_ones.default, ([2],), on=SHAPED),
    aten.empty.memory_format: [(lambda x: aten.fill(aten.empty([3]), 2.0) + x, [(t(3),)])],
    aten.empty_like.default: [(lambda x: aten.fill(aten.empty_like(x), 2), SHAPED)],
    aten.empty_strided.default: [(lambda x: aten.fill(aten.empty_strided([3, 5], [1, 3]), 2) + x, [(t(3, 5),)])],
    aten.new_empty.default: [(lambda x: aten.fill(aten.new_empty(x, [2]), 1), SHAPED)],
    aten.new_empty_strided.default: [(lambda x: aten.fill(aten.new_empty_strided(x, [2, 3], [1, 2]), 1), SHAPED)],
    aten.arange.default: [(lambda x: x + aten.arange(5), [(t(5),)])],
    aten.arange.start: [(lambda x: (x + aten.arange(2, 7), aten.arange(2.0, 7.0)), [(t(5),)])],
    aten.arange.start_step: [
        (lambda x: (x + aten.arange(2, 12, 2), aten.arange(0.0, 1.0, 0.1), aten.arange(9, 0, -2), aten.arange(0, 5, 1, dtype=bf16)), [(t(5),)]),
    ],
    aten.eye.default: [(lambda x: x + aten.eye(4), [(t(4, 4),)])],
    aten.eye.m: [(lambda x: x + aten.eye(3, 5), [(t(3, 5),)])],
}  # fmt: skip

CUBES = [
    (t(3, 4, 6),),
    (t(3, 4, 6, dtype=i64),),
    (t(6, 4, 3).permute(2, 1, 0),),
    (t(3, 4, 12, dtype=bf16)[..., ::2],),
]
INDEXINGS: dict[Any, list[Example]] = {
    aten.cat.default: [
        (lambda *x: aten.cat(list(x), 0), [(t(2, 3), t(1, 3), t(4, 3)), (t(2, 3), t(0), t(2, 3, dtype=i64))]),
        (lambda *x: aten.cat(list(x), -1), [(t(2, 3), t(2, 1).expand(2, 4)), (t(3, 2, dtype=bf16).t(), t(2, 5, dtype=bf16))]),
        (lambda x: aten.cat([x], 0), [(t(2, 3),)]),
    ],
    aten.stack.default: [(lambda *x: aten.stack(list(x), d), [(t(2, 3), t(3, 2).t(), t(2, 3))]) for d in (0, 1, -1)],
    aten.constant_pad_nd.default: over(
        aten.constant_pad_nd.default, ([1, 2],), ([1, 2, 0, 3], 2), ([-1, 2], 7), ([-1, -2],), ([0, 0, 1, 0, 2, 0], 1), on=CUBES
    ),
    aten.flip.default: over(aten.flip.default, ([0],), ([0, -1],), on=CUBES),
    aten.roll.default: over(aten.roll.default, ([1], [0]), ([2, -1], [0, 2]), on=CUBES),
    aten.repeat.default: over(aten.repeat.default, ([2, 1, 3],), ([2, 1, 1, 2],), on=CUBES),
    aten.slice_scatter.default: [
        (lambda x, y: aten.slice_scatter(x, y, 1, 1, 3), [(t(3, 4), t(3, 2)), (t(3, 4, dtype=bf16), t(3, 2, dtype=bf16))]),
        (lambda x, y: aten.slice_scatter(x, y, 0, 0, 9, 2), [(t(5, 4), t(3, 4))]),
        (lambda x, y: aten.slice_scatter(x, y, 0, -2), [(t(5, 4), t(2, 4))]),
    ],
    aten.select_scatter.default: [(lambda x, y, d=d, k=k: aten.select_scatter(x, y, d, k), [(t(4, 4), t(4))]) for d in (0, -1) for k in (2, -1)],
    aten.slice_backward.default: over(aten.slice_backward.default, ([3, 9], 1, 2, 8, 2), on=[(t(3, 3),)]),
    aten.select_backward.default: over(aten.select_backward.default, ([3, 9], 1, -2), on=[(t(3),)]),
    aten.triu.default: over(aten.triu.default, (), (1,), (-1,), on=CUBES + each(f32, torch.bool)),
    aten.tril.default: over(aten.tril.default, (), (1,), (-1,), on=CUBES + each(f32, torch.bool)),
}  # fmt: skip


def seen(op: Any, *rest: Any) -> list[Example]:
    """A view returned as it is, read by an operator, and looked at through a slice."""
    return [
        (lambda x: op(x, *rest), CUBES),
        (lambda x: op(x, *rest) + 1, CUBES),
        (lambda x: op((x * 2)[:, 1:], *rest) + 1, CUBES),
    ]


def parts(op: Any, *rest: Any) -> list[Example]:
    return [
        (lambda x: op(x, *rest), CUBES),
        (lambda x: [part * (k + 1) for k, part in enumerate(op((x + 1)[1:], *rest))], CUBES),
    ]


ROWS_3 = [(t(3, 8),), (t(3, 8, dtype=i64),)]
VIEWS: dict[Any, list[Example]] = {
    aten.view.default: [(lambda x: aten.view(x, [12, -1]) + 1, CUBES[:2]), (lambda x: aten.view((x * 2).contiguous(), [3, 24]), CUBES)],
    aten._unsafe_view.default: [(lambda x: aten._unsafe_view(x, [12, 6]) + 1, CUBES[:2])],
    aten._reshape_alias.default: [(lambda x: aten._reshape_alias(x, [12, 6], [6, 1]) + 1, CUBES[:2])],
    aten.reshape.default: [(lambda x: aten.reshape(x, [12, 6]) + 1, CUBES), (lambda x: aten.reshape(x.transpose(0, 1), [72]) * 2, CUBES)],
    aten.permute.default: seen(aten.permute.default, [2, 0, 1]),
    aten.transpose.int: seen(aten.transpose.int, 0, -1),
    aten.t.default: [(lambda x: aten.t(x) + 1, ROWS_3)],
    aten.numpy_T.default: [(lambda x: aten.numpy_T(x) + 1, ROWS_3)],
    aten.expand.default: [(lambda x: aten.expand(x, [2, 3, -1]) * 2, ROWS_3)],
    aten.unsqueeze.default: seen(aten.unsqueeze.default, 1),
    aten.squeeze.default: [(lambda x: aten.squeeze(x) * 2, [(t(1, 3, 1),)])],
    aten.squeeze.dim: [(lambda x: aten.squeeze(x, 0) * 2, [(t(1, 3, 1),)])],
    aten.squeeze.dims: [(lambda x: aten.squeeze(x, [0, 2]) * 2, [(t(1, 3, 1),)])],
    aten.slice.Tensor: seen(aten.slice.Tensor, 2, 1, 5, 2) + seen(aten.slice.Tensor, 0, -2),
    aten.select.int: seen(aten.select.int, 2, -2),
    aten.narrow.default: seen(aten.narrow.default, 2, 1, 3),
    aten.split.Tensor: parts(aten.split.Tensor, 4, 2),
    aten.split_with_sizes.default: parts(aten.split_with_sizes.default, [1, 5], 2),
    aten.unbind.int: parts(aten.unbind.int, 1),
    aten.alias.default: seen(aten.alias.default),
    aten.detach.default: seen(aten.detach.default),
    aten.as_strided.default: [
        (lambda x: aten.as_strided(x, [2, 3], [1, 2], 1) * 2, CUBES[:2]),
        (lambda x: aten.as_strided((x + 1)[1:], [2, 3], [1, 2], 5) * 2, CUBES[:2]),
    ],
    aten.diagonal.default: seen(aten.diagonal.default, 0, 0, 2),
    aten.unfold.default: seen(aten.unfold.default, 2, 3, 1),
}  # fmt: skip

# kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
WINDOWS: list[tuple[Any, ...]] = [
    ([2, 2],), ([2],), ([3, 2], [2, 1], [1, 0]), ([3, 3], [1, 1], [1, 1], False, False), ([2, 2], [3, 3]),
    ([3, 3], [2, 2], [0, 0], True), ([3, 3], [2, 2], [1, 1], True, False), ([4, 3], [3, 2], [2, 1], True, True),
    ([3, 3], [2, 2], [1, 1], False, True, 5), ([6, 5],),
]  # fmt: skip
IMAGES = [
    (t(2, 3, 7, 8),),
    (t(3, 7, 8, dtype=f64),),
    (t(2, 3, 8, 7).transpose(-1, -2),),
    (t(2, 3, 7, 8, dtype=bf16),),
]
IMAGES += [(t(2, 3, 7, 8).contiguous(memory_format=torch.channels_last),)]


def _pooled_again(x: torch.Tensor, *window: Any) -> torch.Tensor:
    """The gradient of the sum of squares of the windows' averages."""
    result = aten.avg_pool2d(x, *window)
    kernel, stride, padding, ceil, counts, divisor = (
        *window,
        *([], [0, 0], False, True, None)[len(window) - 1 :],
    )
    return aten.avg_pool2d_backward(result * 2, x, kernel, stride, padding, ceil, counts, divisor)


def ix(*values: int, dtype: torch.dtype = i64, shape: tuple[int, ...] = (-1,)) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype).reshape(shape)


PLACES = [
    ix(3, 0, 3, 3),
    ix(1, 4, shape=(2, 1)),
    ix(2, shape=()),
    ix(0, 2, 4, 1, dtype=torch.int32),
]
PICKS = [(w, i) for w in (t(5, 6), t(6, 5).t(), t(5, 6, dtype=bf16)) for i in PLACES]
ROWS_OF = [(w, i) for w, i in PICKS if i.ndim < 2]
SUBSCRIPTS = [(w, i - 5 if i.ndim else i) for w, i in PICKS]
# what is added to, where, what
SUMS = [
    (t(5, 6, dtype=dtype), ix(3, 0, 3, 4, dtype=kind), t(4, 6, dtype=dtype))
    for dtype in (f32, f64, bf16, f16, i64, torch.int32)
    for kind in (i64, torch.int32)
]
SUMS += [(t(6, 5).t(), ix(3, 3, 0), t(3, 12)[:, ::2])]


def _three_subscripts(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> list[torch.Tensor]:
    """Neighbours, a slice between, one that broadcasts, the same one twice."""
    read = aten.index.Tensor
    return [
        read(x, [i, j]),
        read(x, [i, None, j]),
        read(x, [None, i[:, None], j]),
        read(x, [None, j, j]),
    ]


def _three_sums(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> list[torch.Tensor]:
    put = aten.index_put.default
    a, b, c = (read * 2 for read in _three_subscripts(x, i, j)[:3])
    return [
        put(x, [i, j], a, True), put(x, [i, None, j], b, True),
        put(x, [None, i[:, None], j], c, True), put(x, [i, j], x[0, 0], True),
    ]  # fmt: skip


CUBE_AT = [
    (t(4, 4, 4), ix(3, 0, -1), ix(1, 1, 2)),
    (t(4, 5, 4).permute(2, 0, 1), ix(0, 0), ix(2, 3)),
]
POSITIONS: dict[Any, list[Example]] = {
    aten.embedding.default: over(aten.embedding.default, (), (3,), on=PICKS),
    aten.gather.default: [
        (lambda x, i: aten.gather(x, 0, i.long().reshape(-1, 1).expand(-1, 6)) * 2, PICKS),
        (lambda x, i: aten.gather(x, -1, i.long().reshape(1, -1)) * 2, PICKS),
    ],
    aten.index_select.default: [(lambda x, i, d=d: aten.index_select(x, d, i), ROWS_OF) for d in (0, -1)],
    aten.index.Tensor: [
        (lambda x, i: aten.index(x, [i]), SUBSCRIPTS), (lambda x, i: aten.index(x, [None, i]), SUBSCRIPTS),
        (_three_subscripts, CUBE_AT),
    ],
    aten._unsafe_index.Tensor: [(lambda x, i: aten._unsafe_index(x, [None, i]), SUBSCRIPTS)],
    aten.embedding_dense_backward.default: [
        (lambda x, i, g, n=n: aten.embedding_dense_backward(g, i, 5, n, False), SUMS) for n in (-1, 3)
    ],
    aten.scatter_add.default: [
        (lambda x, i, s: aten.scatter_add(x, 0, i.long()[:, None].expand(-1, 5), s), SUMS),
        (lambda x, i, s: aten.scatter_add(x, 1, i.long()[None].expand(3, -1), s), SUMS),
    ],
    aten.index_add.default: [
        (lambda x, i, s: aten.index_add(x, 0, i, s), SUMS), (lambda x, i, s: aten.index_add(x, 0, i, s, alpha=3), SUMS),
        (lambda x, i, s: aten.index_add(x, 1, i, s[:1].expand(5, -1)[:, : len(i)]), SUMS),
        (lambda x, i, s: aten.index_add(x[:, 0], 0, i, s[:, 0]), SUMS),
    ],
    aten.index_put.default: [
        (lambda x, i, s: aten.index_put(x, [i - 5], s, True), SUMS), (_three_sums, CUBE_AT),
    ],
    aten._unsafe_index_put.default: [(lambda x, i, s: aten._unsafe_index_put(x, [i], s, True), SUMS)],
}  # fmt: skip


POOLINGS: dict[Any, list[Example]] = {
    aten.avg_pool2d.default: over(aten.avg_pool2d.default, *WINDOWS, on=IMAGES),
    aten.avg_pool2d_backward.default: over(_pooled_again, *WINDOWS, on=IMAGES),
}

SQUARES = [(t(4, 4), t(4, 4)), (t(4, 4, dtype=f64).t(), t(4, 8, dtype=f64)[:, ::2])]
MATMULS: dict[Any, list[Example]] = {
    aten.mm.default: [(lambda a, b: aten.mm(a, b.t()), SQUARES)],
    aten.addmm.default: [(lambda a, b: aten.addmm(a[0], a, b, beta=0.5), SQUARES)],
    aten.bmm.default: [(lambda a, b: aten.bmm(a.expand(2, 4, 4), b.unsqueeze(0).repeat(2, 1, 1)), SQUARES)],
    aten.baddbmm.default: [(lambda a, b: aten.baddbmm(a[None], a[None], b[None]), SQUARES)],
    aten.addbmm.default: [(lambda a, b: aten.addbmm(a, a[None], b[None]), SQUARES)],
    aten.mv.default: [(lambda a, b: aten.mv(a, b[:, 1]), SQUARES)],
    aten.addmv.default: [(lambda a, b: aten.addmv(a[0], a, b[:, 1]), SQUARES)],
    aten.dot.default: [(lambda a, b: aten.dot(a[0], b[:, 1]), SQUARES)],
    aten.vdot.default: [(lambda a, b: aten.vdot(a[0], b[:, 1]), SQUARES)],
    aten.addr.default: [(lambda a, b: aten.addr(a, a[0], b[:, 1]), SQUARES)],
    aten.convolution.default: [
        (lambda x, w, b: aten.convolution(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1) * 2, [(t(2, 3, 6, 6), t(4, 3, 3, 3), t(4))])
    ],
    aten.convolution_backward.default: [
        (lambda g, x, w: aten.convolution_backward(g, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, False])[:2],
         [(t(2, 4, 4, 4), t(2, 3, 6, 6), t(4, 3, 3, 3))])
    ],
}  # fmt: skip
# Rows that a CPU cannot run, or that only a call with real weights of fixed kinds accepts.
NOT_RUN_HERE = {
    op
    for op in matmul.REASONS
    if "scaled" in str(op) or op in (aten._int_mm.default, aten._grouped_mm.default)
}

EXAMPLES = (
    REDUCTIONS | NORMALISATIONS | CREATIONS | INDEXINGS | POSITIONS | POOLINGS | VIEWS | MATMULS
)


def test_every_row_has_an_example() -> None:
    missing = set(TABLE) - set(EXAMPLES) - set(pointwise.ROWS) - NOT_RUN_HERE
    assert not missing, sorted(map(str, missing))


def again(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Other values in the same shapes, types and layouts."""
    return tuple(_like(x) for x in inputs)


def _like(x: torch.Tensor) -> torch.Tensor:
    """The elements of `x` in reverse order, in its layout."""
    dense = x.flatten().flip(0).view(x.shape)
    if 0 in x.stride() and x.numel() > 1:
        first = dense[tuple(slice(0, 1) if step == 0 else slice(None) for step in x.stride())]
        return first.clone().expand(x.shape)
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(dense)


@pytest.mark.parametrize("op", EXAMPLES, ids=str)
def test_row_equals_eager(kit: Any, op: Any) -> None:
    torch.manual_seed(0)
    generated = 0
    for call, inputs in EXAMPLES[op]:
        for tensors in inputs:
            try:
                call(*tensors)
            except (RuntimeError, NotImplementedError):
                continue
            made = kit.check(call, *tensors, again=[again(tensors)])
            generated += not kit.calls(made)
    assert generated or op in matmul.REASONS, "no example was generated"


TABLES = [
    creation, gathers, indexing, normalisation, pointwise, pooling, reductions, scatters, views, matmul,
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_disjoint(table: Any) -> None:
    others = [m.TABLE for m in TABLES if m is not table]
    assert not set(table.TABLE) & set().union(*others)
