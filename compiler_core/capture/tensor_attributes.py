"""Attributes of tensors: facts that the fake tensor knows, tensors that the graph computes, methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.autograd import GRADIENT_READ
from compiler_core.capture.breaks import ATTRIBUTE, Break
from compiler_core.capture.instances import class_of, missing_attribute
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import TupleValue
from compiler_core.capture.values.functions import BoundRule

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace
    from compiler_core.capture.values.tensor import TensorValue

__all__ = ["tensor_attribute"]

_FACTS = (
    "dtype", "device", "ndim", "requires_grad", "layout", "is_cuda", "is_cpu", "is_leaf", "is_sparse", "is_meta",
    "is_quantized", "is_nested", "is_mkldnn", "is_xla", "is_mps", "is_xpu", "is_sparse_csr", "itemsize", "is_complex",
)  # fmt: skip
_TENSORS = ("T", "mT", "H", "mH", "real", "imag", "data")
_AUTOGRAD = ("grad", "grad_fn", "_version", "_backward_hooks", "retains_grad", "output_nr", "_grad")


def tensor_attribute(trace: Trace, value: TensorValue, name: str) -> Value:
    """`tensor.name`. Raises Break for what lives in the autograd graph."""
    from compiler_core.capture.graph_builder import number_value

    if name == "shape":
        return TupleValue(tuple(number_value(size) for size in value.fake.shape), torch.Size)
    if name == "__class__":
        return class_of(trace, value)
    if name == "is_leaf" and value.source is not None and value.real is not None:
        trace.guard(
            "equals", value.source.attr(name), value.real.is_leaf, "the program asked for it"
        )
    if name in _FACTS and not callable(getattr(torch.Tensor, name, None)):
        return Constant(getattr(value.fake, name))
    if name == "nbytes":
        return number_value(value.fake.numel() * value.fake.element_size())
    if name in _TENSORS:
        return trace.builder.call("call_function", getattr, [value, Constant(name)], {})
    if name in _AUTOGRAD:
        raise Break(GRADIENT_READ, f".{name} of a tensor")
    own = getattr(value.real, "__dict__", {})
    if name in own:
        source = value.source.attr(name) if value.source else None
        return Lazy(own[name], source=source, trusted=source is None)
    return _class_attribute(value, name)


def _class_attribute(value: TensorValue, name: str) -> Value:
    found: Any = getattr(value.python_type(), name, None)
    if callable(found):
        return BoundRule(value, name)
    if not hasattr(value.python_type(), name):
        raise missing_attribute(value, name)
    raise Break(ATTRIBUTE, f".{name} of a tensor")
