"""Values as text for guard tables: what was expected, what was found.

In: any value of the program. Out: at most a line that never runs code of the user.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from compiler_core.capture.guard_predicates import is_constant
from compiler_core.request import Request

__all__ = ["describe", "describe_tensor", "identity_text", "key_list", "length_text"]


def describe(value: Any) -> str:
    """A value in at most a line: constants in full, tensors by their properties, objects by type."""
    if isinstance(value, torch.Tensor):
        return describe_tensor(value)
    if isinstance(value, Request):
        return str(value)
    if is_constant(value):
        text = repr(value)
        return text if len(text) <= 120 else text[:117] + "..."
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".removeprefix("builtins.")
    return f"{describe(type(value))} object"


def describe_tensor(value: Any, dynamic: tuple[int, ...] = ()) -> str:
    """`Parameter float32 [2, *] strides [4, 1] cpu requires_grad`; `*` is a dimension left open."""
    if not isinstance(value, torch.Tensor):
        return describe(value)
    sizes = ", ".join("*" if i in dynamic else str(n) for i, n in enumerate(value.shape))
    strides = ""
    if value.layout == torch.strided:
        strides = f" strides [{', '.join(map(str, value.stride()))}]"
    grad = " requires_grad" if value.requires_grad else ""
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{type(value).__name__} {dtype} [{sizes}]{strides} {value.device}{grad}"


def identity_text(value: Any) -> str:
    """The object's type and qualified name, if it has one: the same text in every process."""
    if value is None or isinstance(value, type):
        return describe(value)
    own = value if isinstance(value, _NAMED) else None
    name = getattr(own, "__qualname__", None) or getattr(own, "__name__", None)
    if not isinstance(name, str):
        return describe(value)
    module = getattr(own, "__module__", None)
    return f"{type(value).__name__} {f'{module}.{name}' if isinstance(module, str) else name}"


# Types whose names are their own attributes: reading them runs no code of the user.
_NAMED = (
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.MethodWrapperType, torch._ops.OpOverload,
    torch._ops.OpOverloadPacket, torch._ops._OpNamespace,
)  # fmt: skip


def length_text(value: Any) -> str:
    return str(value if isinstance(value, int) else len(value))


def key_list(value: Any) -> str:
    return "[" + ", ".join(describe(key) for key in value) + "]"
