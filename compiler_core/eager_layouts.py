"""Fake results laid out as eager lays them out, in the one place that knows where fake tensors do not.

In: ATen operators on fake tensors. Out: torch's own fake results, with the strides of eager's kernels. The capture and the joint trace both run under it, so what a program reads
of strides, what a kernel writes and what the user gets are one layout.

A row of `RULES` says how an operator lays its results out where that is not by the rule of
element-wise kernels, which all operators tagged as such follow, nor by the fake tensors' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler_core.dense_layouts import (
    Layout,
    Numbers,
    channels_last,
    contiguous,
    layout_of,
    number,
    strides_like,
    strides_of_elementwise,
)

__all__ = ["RULES", "EagerLayouts"]

_aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class _Call:
    """One operator call: its arguments by name, and one of its results."""

    op: Any
    given: dict[str, Any]
    result: torch.Tensor

    @property
    def first(self) -> Layout:
        return layout_of(next(v for v in self.given.values() if isinstance(v, torch.Tensor)))


Rule = Callable[[_Call], Numbers | None]


def row_major(call: _Call) -> Numbers:
    """The kernel makes its result with `at::empty`, whatever the operand's strides."""
    return contiguous(call.result.shape)


def as_first(call: _Call) -> Numbers | None:
    """The kernel copies its first operand, or makes its result with `empty_like` of it."""
    if not _have_one_shape(call):
        return None
    return strides_like(call.first)


def by_format(call: _Call) -> Numbers | None:
    """The kernel asks the first operand for its format: channels last, or else row-major."""
    if not _have_one_shape(call):
        return None
    return channels_last(call.first) or contiguous(call.result.shape)


def elementwise(call: _Call) -> Numbers:
    """The kernel is element-wise: a Python number is an operand too, one without axes."""
    return strides_of_elementwise(tuple(call.result.shape), list(_operands(call)))


def second_first(call: _Call) -> Numbers:
    """The kernel is element-wise, and takes its second operand before the first."""
    return strides_of_elementwise(tuple(call.result.shape), [*_operands(call)][::-1])


def absolute_then_compared(call: _Call) -> Numbers:
    """`isinf`: two kernels, of which the second has a number as an operand."""
    shape = tuple(call.result.shape)
    absolute = Layout(shape, strides_of_elementwise(shape, [call.first]))
    return strides_of_elementwise(shape, [absolute, Layout((), ())])


def scaled_by_power(call: _Call) -> Numbers:
    """`ldexp`: a product with `2 ** other`, which is row-major by its own rule."""
    other = call.given["other"]
    if other.ndim == 0:
        return strides_like(call.first)
    power = Layout(tuple(other.shape), contiguous(other.shape))
    return strides_of_elementwise(tuple(call.result.shape), [call.first, power])


def rolled(call: _Call) -> Numbers | None:
    """Along one axis two parts are put together in the operand's format; else axis by axis, or flat."""
    shifts, dims = call.given["shifts"], call.given.get("dims", [])
    size = call.first.shape[dims[0]] if len(dims) == 1 else 0
    is_whole = len(dims) != 1 or number(size) == 0 or number(shifts[0]) % number(size) == 0
    return None if is_whole else by_format(call)


RULES: dict[Any, Rule] = {
    # an empty result, filled by a loop over contiguous copies
    _aten._log_softmax.default: row_major,
    _aten.log_sigmoid_forward.default: row_major,
    _aten.pow.Scalar: row_major,
    _aten.rrelu_with_noise.default: row_major,
    _aten.isin.Tensor_Tensor: row_major,
    _aten.masked_fill.Scalar: row_major,
    _aten.masked_fill.Tensor: row_major,
    _aten.tril.default: row_major,
    _aten.triu.default: row_major,
    _aten.renorm.default: row_major,
    _aten.diag_embed.default: row_major,
    _aten.native_layer_norm.default: row_major,
    _aten.sum.dim_IntList: row_major,
    # a copy of the operand, written in part or in place
    _aten.index_fill.int_Scalar: as_first,
    _aten.index_fill.int_Tensor: as_first,
    _aten.index_put.default: as_first,
    _aten.hardtanh.default: as_first,
    _aten.nan_to_num.default: as_first,
    _aten.huber_loss.default: as_first,
    _aten._prelu_kernel.default: as_first,
    _aten.flip.default: as_first,
    _aten.frexp.Tensor: as_first,
    _aten.sort.default: as_first,
    _aten.sort.stable: as_first,
    _aten.full_like.default: as_first,
    _aten.ones_like.default: as_first,
    _aten.zeros_like.default: as_first,
    # two formats only
    _aten.native_batch_norm.default: by_format,
    _aten._native_batch_norm_legit.default: by_format,
    _aten._native_batch_norm_legit.no_stats: by_format,
    _aten._native_batch_norm_legit_functional.default: by_format,
    _aten._native_batch_norm_legit_no_training.default: by_format,
    _aten.native_group_norm.default: by_format,
    _aten._to_copy.default: as_first,
    # of several kernels
    _aten.ldexp.Tensor: scaled_by_power,
    _aten.roll.default: rolled,
    _aten.isinf.default: absolute_then_compared,
    # element-wise, in another order than their arguments
    _aten.rsub.Tensor: second_first,
    _aten.threshold_backward.default: second_first,
    _aten.leaky_relu_backward.default: second_first,
    # element-wise, though not tagged so
    _aten.binary_cross_entropy.default: elementwise,
    _aten.complex.default: elementwise,
    _aten.polar.default: elementwise,
    _aten.floor_divide.default: elementwise,
    _aten.hardswish.default: elementwise,
    _aten.mish_backward.default: elementwise,
    _aten.elu_backward.default: elementwise,
    _aten.softplus_backward.default: elementwise,
    _aten.hardtanh_backward.default: elementwise,
    _aten.hardsigmoid_backward.default: elementwise,
    _aten.hardswish_backward.default: elementwise,
}

# Element-wise by tag, with a format of its own that fake tensors know.
_KNOWN = {_aten.clone.default}

# `Scalar` overloads that hand their number to the kernel; in others it becomes an operand.
_TAKE_NUMBERS = ("pow", "lerp", "masked_fill")


class EagerLayouts(FakeTensorMode):  # type: ignore[no-untyped-call]
    """Fake tensors whose fresh results have the strides of eager.

    A mode of its own above the fake one would do for the capture, but the tracer's would lie below it.
    """

    def __torch_dispatch__(  # type: ignore[override]
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        rule = _rule_of(func)
        kwargs = kwargs or {}
        if rule is None or kwargs.get("memory_format") not in (None, torch.preserve_format):
            return made
        given = _by_name(func, args, kwargs)
        if isinstance(made, torch.Tensor):
            return self._laid_out(_Call(func, given, made), rule)
        if not isinstance(made, (tuple, list)):
            return made
        parts = [
            self._laid_out(_Call(func, given, r), rule) if isinstance(r, torch.Tensor) else r
            for r in made
        ]
        return type(made)(parts) if type(made) in (tuple, list) else type(made)(*parts)

    def _laid_out(self, call: _Call, rule: Rule) -> torch.Tensor:
        """The result, or a fake one like it with other strides."""
        result = call.result
        if result.layout != torch.strided or not _is_known([result, *call.given.values()]):
            return result
        strides = rule(call)
        if strides is None or list(map(number, strides)) == list(map(number, result.stride())):
            return result
        with self:
            return torch.empty_strided(
                result.shape, strides, dtype=result.dtype, device=result.device
            )


def _rule_of(func: Any) -> Rule | None:
    if func in RULES:
        return RULES[func]
    is_fresh = not func._schema.is_mutable and not any(r.alias_info for r in func._schema.returns)
    is_elementwise = torch.Tag.pointwise in func.tags and func not in _KNOWN
    return elementwise if is_fresh and is_elementwise else None


def _is_known(values: list[Any]) -> bool:
    """Does every size have a value that it is expected to have?"""
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    sizes = [n for t in tensors for n in (*t.shape, *t.stride())]
    return all(isinstance(n, int) or n.node.hint is not None for n in sizes)


def _by_name(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args)), **kwargs}


def _have_one_shape(call: _Call) -> bool:
    shape = call.first.shape
    return list(map(number, shape)) == list(map(number, call.result.shape))


def _operands(call: _Call) -> Iterator[Layout]:
    """The operands as the kernel gets them: those of another type are cast before, on CPUs."""
    common = _common_type(call)
    for argument in call.op._schema.arguments:
        value = call.given.get(argument.name)
        if isinstance(value, torch.Tensor):
            layout = layout_of(value)
            is_cast = value.dtype != common and argument.name != "condition"
            yield Layout(layout.shape, strides_like(layout)) if is_cast else layout
        elif _is_operand(call.op, argument, value):
            yield Layout((), ())


def _is_operand(op: Any, argument: Any, value: Any) -> bool:
    """Is this number one that torch makes a tensor of?"""
    if isinstance(value, (int, float, complex, torch.SymInt, torch.SymFloat)):
        if str(argument.type) == "Tensor":
            return True
        name = op._schema.name.partition("::")[2]
        takes = "Scalar" in op._overloadname and name not in _TAKE_NUMBERS
        return takes and argument.name in ("self", "other")
    return False


def _common_type(call: _Call) -> torch.dtype | None:
    """The type that the kernel computes in; None where nothing is cast."""
    tensors = [v for k, v in call.given.items() if isinstance(v, torch.Tensor) and k != "condition"]
    wide = [t for t in tensors if t.ndim] or tensors
    if not wide or call.result.device.type != "cpu":
        return tensors[0].dtype if len(tensors) == 1 else None
    promoted = reduce(torch.promote_types, (t.dtype for t in wide))
    made = call.result.dtype
    return made if made.is_floating_point and not promoted.is_complex else promoted
