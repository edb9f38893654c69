"""Methods of tensors: graph nodes, reads of values that break, facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.autograd import REQUIRES_GRAD, STORAGE_SWAP, TENSOR_HOOKS
from compiler_core.capture.break_kinds.calls import COPIES
from compiler_core.capture.break_kinds.control_flow import TENSOR_ORDER
from compiler_core.capture.break_kinds.tensors import DISTINCT, POSITIONS
from compiler_core.capture.break_kinds.values import (
    ADDRESS,
    AS_LIST,
    AS_NUMBER,
    AS_NUMPY,
    TENSOR_TEXT,
    WHOLE_COMPARE,
)
from compiler_core.capture.breaks import (
    AUTOGRAD,
    DATA_SHAPE,
    IDENTITY,
    SCALAR_READ,
    UNKNOWN_CALL,
    Break,
)
from compiler_core.capture.values.base import Value

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["refuse_method", "tensor_method"]

_REFUSED = {
    name: kind
    for kind, names in (
        (SCALAR_READ, "item"),
        (AS_LIST, "tolist __reversed__"),
        (AS_NUMPY, "numpy __array__ __dlpack__"),
        (AS_NUMBER, "__bool__ __int__ __float__ __index__ __complex__ is_nonzero"),
        (TENSOR_TEXT, "__repr__ __str__ __format__"),
        (TENSOR_ORDER, "__contains__"),
        (WHOLE_COMPARE, "equal allclose"),
        (AUTOGRAD, "backward"),
        (TENSOR_HOOKS, "register_hook register_post_accumulate_grad_hook"),
        (REQUIRES_GRAD, "requires_grad_ retain_grad detach_ _set_grad"),
        (STORAGE_SWAP, "set_ resize_ resize_as_"),
        (DATA_SHAPE, "masked_select"),
        (POSITIONS, "nonzero argwhere nonzero_static"),
        (DISTINCT, "unique unique_consecutive"),
        (ADDRESS, "data_ptr storage untyped_storage storage_offset storage_type is_pinned share_memory_ pin_memory is_shared"),
        (COPIES, "__reduce__ __reduce_ex__ __deepcopy__"),
        (UNKNOWN_CALL, "map_ apply_ map2_ cuda xpu record_stream"),
        (IDENTITY, "__hash__"),
    )
    for name in names.split()
}  # fmt: skip


def refuse_method(name: str) -> None:
    """Break for a method that cannot be a graph node."""
    if name in _REFUSED:
        raise Break(_REFUSED[name], f"Tensor.{name}")


def tensor_method(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`tensor.name(*args)`."""
    from compiler_core.capture.iteration import iterator_of, length

    if name == "__len__":
        return length(trace, receiver)
    if name == "__iter__":
        return iterator_of(trace, receiver)
    refuse_method(name)
    if not hasattr(torch.Tensor, name):
        raise Break(UNKNOWN_CALL, f"Tensor.{name}")
    return trace.builder.call("call_method", name, [receiver, *args], kwargs)
