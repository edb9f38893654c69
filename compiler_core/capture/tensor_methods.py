"""Methods of tensors: graph nodes, reads of values that break, facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

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

_READS = ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "is_nonzero",
          "__repr__", "__str__", "__format__", "__array__", "__dlpack__", "__contains__", "__reversed__")  # fmt: skip
_AUTOGRAD = ("backward", "register_hook", "requires_grad_", "retain_grad", "detach_", "register_post_accumulate_grad_hook",
             "_set_grad", "set_", "resize_", "resize_as_")  # fmt: skip
_SHAPES = ("nonzero", "masked_select", "unique", "unique_consecutive", "argwhere", "nonzero_static")
_OUTSIDE = ("data_ptr", "storage", "untyped_storage", "storage_offset", "is_pinned", "share_memory_", "pin_memory", "is_shared", "map_", "apply_", "map2_",
            "__reduce__", "__reduce_ex__", "__deepcopy__", "storage_type", "cuda", "xpu", "record_stream")  # fmt: skip
_REFUSED = {
    **dict.fromkeys(_READS, SCALAR_READ),
    **dict.fromkeys(_AUTOGRAD, AUTOGRAD),
    **dict.fromkeys(_SHAPES, DATA_SHAPE),
    **dict.fromkeys(_OUTSIDE, UNKNOWN_CALL),
    "__hash__": IDENTITY,
}


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
