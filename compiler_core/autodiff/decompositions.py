"""Which ATen operators are taken apart while the joint graph is traced.

In: nothing. Out: `decompositions()`, operator → function, for `make_fx`. The idea: an allow-list.
Operators that the lowering has a row for stay whole; those that are easily pieces of such operators
are taken apart; everything else stays a library call. Torch's own table is never used wholesale:
it is made for inference too, and has entries whose extra outputs are not what the backward operator
reads (fused attention on CPU: the second output is not the logsumexp, and gradients are wrong).

Every row has a gradient check of its own (`tests/autodiff/test_decompositions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from compiler_core.autodiff.batch_norm import (
    batch_norm,
    batch_norm_backward,
    batch_norm_without_running,
)
from compiler_core.autodiff.borrowed import decomposition_table, newest_node
from compiler_core.autodiff.draws import (
    bernoulli,
    native_dropout,
    native_dropout_backward,
    random_from,
)
from compiler_core.autodiff.layout import like

__all__ = ["FROM_TORCH", "OURS", "decompositions"]

_aten = torch.ops.aten
Tensor = torch.Tensor

# Entries of torch's table that we take as they are.
FROM_TORCH: tuple[Any, ...] = (
    # losses
    _aten.mse_loss.default, _aten.smooth_l1_loss.default, _aten.huber_loss.default,
    _aten.binary_cross_entropy.default, _aten.binary_cross_entropy_backward.default,
    _aten.binary_cross_entropy_with_logits.default,
    _aten.soft_margin_loss.default, _aten.soft_margin_loss_backward.default,
    # activations
    _aten.log_sigmoid_forward.default, _aten.log_sigmoid_backward.default,
    _aten.logit_backward.default, _aten.glu.default, _aten.glu_backward.default,
    _aten._prelu_kernel_backward.default,
    # normalisation
    _aten.native_group_norm.default, _aten.native_group_norm_backward.default,
    _aten._native_batch_norm_legit.default, _aten._native_batch_norm_legit_no_training.default,
    _aten._batch_norm_with_update_functional.default, _aten.batch_norm_backward.default,
    # reductions
    _aten.norm.Scalar, _aten.norm.ScalarOpt_dim, _aten.dist.default, _aten.trace.default,
    # gradients of views, and data movement
    _aten.select_backward.default, _aten.slice_backward.default, _aten.diagonal_backward.default,
    _aten.stack.default, _aten.tril.default, _aten.triu.default,
)  # fmt: skip


def copy(self: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """`self.copy_(source)` as a value: the source in the shape, dtype and strides of `self`."""
    value = source.to(device=self.device, dtype=self.dtype).expand(self.shape)
    return like(value, self)


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Negative log likelihood of `self` (N, C) or (C,) at `target` (N,) or (); and the total weight."""
    axis = self.ndim - 1
    safe, scale = _nll_weights(self, target, weight, ignore_index)
    picked = _checking_targets(self.gather(axis, safe.unsqueeze(axis)))
    loss = -picked.squeeze(axis) * scale
    loss = torch.where(target != ignore_index, loss, 0)
    total = scale.sum() if reduction != 0 else self.new_zeros(())
    if reduction == 0 and self.ndim == 2:
        return loss, total
    summed = loss.sum()
    return (summed / total if reduction == 1 else summed), total


def nll_loss_backward(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
    total_weight: Tensor,
) -> Tensor:  # fmt: skip
    """Gradient for `self`: minus the weight at the target's class, zero elsewhere; no scatter."""
    axis = self.ndim - 1
    safe, scale = _nll_weights(self, target, weight, ignore_index)
    each = (grad / total_weight if reduction == 1 else grad) * scale
    classes = torch.arange(self.shape[axis], device=self.device)
    chosen = classes == safe.unsqueeze(axis)
    counted = (target != ignore_index).unsqueeze(axis)
    return torch.where(chosen & counted, -each.unsqueeze(axis), 0)


def _nll_weights(
    self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Targets with ignored ones at class 0, and the weight of each sample, zero where ignored."""
    counted = target != ignore_index
    safe = torch.where(counted, target, 0)
    if weight is None:
        return safe, counted.to(self.dtype)
    return safe, torch.where(counted, _checking_targets(weight[safe]), 0)


def _checking_targets(picked: Tensor) -> Tensor:
    """What was just read at the targets: a target that is no class is an error of the loss, not of the read."""
    node = newest_node()
    if node is not None:
        node.meta["check"] = "target"
    return picked


def cat_of_repeats(self: Tensor, repeats: Sequence[int]) -> Tensor:
    """`repeat` as one copy of a broadcast view: (r0, n0, r1, n1, …) flattened pairwise."""
    shape = [1] * (len(repeats) - self.ndim) + list(self.shape)
    axes = [n for pair in zip([1] * len(shape), shape) for n in pair]
    wide = [n for pair in zip(repeats, shape) for n in pair]
    result = self.reshape(axes).expand(wide).clone(memory_format=torch.contiguous_format)
    return result.reshape([r * n for r, n in zip(repeats, shape)])


def conjugated(self: Tensor | complex) -> Tensor:
    """The conjugate as numbers: a kernel reads memory, and does not see a tensor's lazy bits.

    The gradient of a product with a number asks for the number's; its dtype never decides.
    """
    if not isinstance(self, Tensor):
        return torch.full((), complex(self).conjugate(), dtype=torch.complex128)
    made: Tensor = _aten._conj_physical.default(self)
    return made


def negated(self: Tensor) -> Tensor:
    """The negative as numbers, where torch makes a view with a lazy bit (`z.conj().imag`)."""
    made: Tensor = _aten.neg.default(self)
    return made


def unless_empty(op: Any) -> Callable[..., Tensor]:
    """torch's entry for the gradient of a loss. A mean over nothing divides by no elements, in Python."""
    rule = decomposition_table[op]

    def gradient(grad: Tensor, self: Tensor, *others: Any) -> Tensor:
        made: Tensor = rule(grad, self, *others) if self.numel() else torch.zeros_like(self)
        return made

    return gradient


OURS: dict[Any, Callable[..., Any]] = {
    _aten._native_batch_norm_legit_functional.default: batch_norm,
    _aten._native_batch_norm_legit.no_stats: batch_norm_without_running,
    _aten.native_batch_norm_backward.default: batch_norm_backward,
    _aten.copy.default: copy,
    _aten.nll_loss_forward.default: nll_loss_forward,
    _aten.nll_loss_backward.default: nll_loss_backward,
    _aten.repeat.default: cat_of_repeats,
    _aten._conj.default: conjugated,
    _aten._neg_view.default: negated,
    _aten.bernoulli.p: bernoulli,
    _aten.native_dropout.default: native_dropout,
    _aten.native_dropout_backward.default: native_dropout_backward,
    getattr(_aten.random, "from"): random_from,
}


LOSS_GRADIENTS = (
    _aten.mse_loss_backward.default,
    _aten.smooth_l1_loss_backward.default,
    _aten.huber_loss_backward.default,
)


@cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """The whole table. Raises KeyError when torch dropped an entry that we take."""
    losses = {op: unless_empty(op) for op in LOSS_GRADIENTS}
    return {**{op: decomposition_table[op] for op in FROM_TORCH}, **losses, **OURS}
