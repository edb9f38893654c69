"""Which callables of torch become graph nodes, which are facts, and which break.

In: a real callable and arguments. Out: the result's value, or None when torch's rules say nothing.
A node is one call as the user wrote it: `torch.nn.functional.layer_norm` is one node, whatever it
runs inside.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.calls import NUMPY
from compiler_core.capture.break_kinds.output import FILES
from compiler_core.capture.break_kinds.tensors import DISTINCT, POSITIONS
from compiler_core.capture.break_kinds.values import ADDRESS, AS_NUMBER, WHOLE_COMPARE
from compiler_core.capture.breaks import DATA_SHAPE, Break
from compiler_core.capture.tensor_methods import refuse_method
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.containers import DictValue, ListValue, TupleValue
from compiler_core.capture.values.tensor import TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["graph_call", "holds_tensor"]

_NAMESPACES = tuple(
    getattr(torch._C, name)
    for name in ("_VariableFunctions", "_nn", "_fft", "_linalg", "_special", "_nested", "_sparse")
)
_BUILTINS = {
    getattr(space, name)
    for space in _NAMESPACES
    for name in dir(space)
    if isinstance(getattr(space, name), types.BuiltinFunctionType)
}
#: Python functions that are one node each, by the module that they are written in
_MODULES = ("torch.functional", "torch.nn.functional", "torch._tensor", "torch._VF", "torch._lowrank")  # fmt: skip
_TENSOR_METHODS = (torch.Tensor, torch._C.TensorBase)
_REFUSED = {
    torch.nonzero: POSITIONS, torch.argwhere: POSITIONS, torch.masked_select: DATA_SHAPE, torch.unique: DISTINCT,
    torch.unique_consecutive: DISTINCT, torch.equal: WHOLE_COMPARE, torch.allclose: WHOLE_COMPARE,
    torch.is_nonzero: AS_NUMBER, torch.from_numpy: NUMPY, torch.frombuffer: ADDRESS, torch.from_file: FILES,
    torch.asarray: NUMPY,
}  # fmt: skip


def graph_call(
    trace: Trace, real: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """The result of a torch operation as a node. None when `real` is something else. Raises Break."""
    method = _tensor_method_name(real)
    if method is not None:
        return _method_call(trace, real, method, args, kwargs)
    if not (_is_operation(real) or (_is_operator(real) and holds_tensor(trace, [*args, *kwargs.values()]))):  # fmt: skip
        return None
    if real in _REFUSED:
        raise Break(_REFUSED[real], f"torch.{real.__name__}")
    return trace.builder.call("call_function", real, args, kwargs)


def _is_operation(real: Any) -> bool:
    if isinstance(real, types.BuiltinFunctionType):
        return real in _BUILTINS
    if isinstance(real, types.FunctionType):
        return real.__module__ in _MODULES
    return isinstance(real, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))


def _is_operator(real: Any) -> bool:
    """A function of the operator module (those of math take no tensors into a graph)."""
    return isinstance(real, types.BuiltinFunctionType) and real.__module__ == "_operator"


def _tensor_method_name(real: Any) -> str | None:
    """The name of an unbound method, `torch.Tensor.add`."""
    if isinstance(real, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return real.__name__ if issubclass(torch.Tensor, real.__objclass__) and real.__objclass__ is not object else None  # fmt: skip
    if isinstance(real, types.FunctionType) and real.__module__ == "torch._tensor":
        name = real.__name__
        return name if getattr(torch.Tensor, name, None) is real else None
    return None


def _method_call(
    trace: Trace, real: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    if not args or not isinstance(trace.look(args[0]), TensorValue):
        return None
    refuse_method(name)
    return trace.builder.call("call_method", name, args, kwargs)


def holds_tensor(trace: Trace, values: list[Value]) -> bool:
    """Whether a tensor is among the values or in their containers."""
    for value in map(trace.look, values):
        if isinstance(value, TensorValue):
            return True
        if isinstance(value, (TupleValue, ListValue)) and holds_tensor(trace, list(value.items)):
            return True
        if isinstance(value, DictValue) and holds_tensor(trace, [v for _, v in value.items.values()]):  # fmt: skip
            return True
    return False
