"""isinstance and issubclass."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import TupleValue
from compiler_core.capture.values.objects import ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["classes_of", "instance_check", "subclass_check"]


def classes_of(trace: Trace, value: Value) -> tuple[Any, ...]:
    """The real classes of a class, a tuple of them or a union. Raises Break."""
    value = trace.look(value)
    if isinstance(value, TupleValue):
        return tuple(cls for item in value.items for cls in classes_of(trace, item))
    if isinstance(value, ObjectValue) and isinstance(value.real, types.UnionType):
        return tuple(type(None) if arg is None else arg for arg in value.real.__args__)
    if isinstance(value, ObjectValue) and isinstance(value.real, type):
        return (value.real,)
    if isinstance(value, (ObjectValue, Constant)):
        raise Break(UNKNOWN_CALL, f"isinstance with {value.describe()}")
    raise raise_real(TypeError("isinstance() arg 2 must be a type, a tuple of types, or a union"))


def instance_check(trace: Trace, value: Value, classes: Value) -> bool:
    cls = trace.look(value).python_type()
    return any(_is_subclass(cls, wanted, value) for wanted in classes_of(trace, classes))


def subclass_check(trace: Trace, value: Value, classes: Value) -> bool:
    value = trace.look(value)
    if not (isinstance(value, ObjectValue) and isinstance(value.real, type)):
        raise raise_real(TypeError("issubclass() arg 1 must be a class"))
    return any(_is_subclass(value.real, wanted, None) for wanted in classes_of(trace, classes))


_TENSOR_KINDS = (torch.nn.Parameter, torch.nn.Buffer)


def _is_subclass(cls: type, wanted: type, value: Value | None) -> bool:
    if wanted in _TENSOR_KINDS or (
        type(wanted).__module__ == "torch" and wanted is not torch.Tensor
    ):
        return _torch_kind(cls, wanted, value)
    check = type(wanted).__subclasscheck__
    if isinstance(check, types.FunctionType) and not check.__module__ == "abc":
        raise Break(UNKNOWN_CALL, f"{wanted.__name__} decides itself what its instances are")
    return issubclass(cls, wanted)


def _torch_kind(cls: type, wanted: Any, value: Value | None) -> bool:
    """Parameter, Buffer and torch.FloatTensor look at the tensor, not only at its class."""
    from compiler_core.capture.values.tensor import TensorValue

    if not isinstance(value, TensorValue):
        return False
    real = value.real if value.real is not None else value.fake
    if wanted in _TENSOR_KINDS and value.real is None:
        return False
    return isinstance(real, wanted)
