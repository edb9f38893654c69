"""The functions that generated guard checks call, beside Python's own operators.

In: values of the program. Out: truth, or a tuple of plain facts about torch's state. Each is exact
about type: 1, 1.0 and True are three values, so are 0.0 and -0.0, and NaN equals itself.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import types
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.request import ACTIVE, Request

__all__ = [
    "ACTIVE",
    "CallableForm",
    "active_request",
    "all_different",
    "autocast_state",
    "callable_form",
    "forward_ad_level",
    "is_constant",
    "matmul_precision",
    "reference",
    "same_constant",
    "same_keys",
    "same_storage",
    "storages_apart",
    "tensor_oddity",
    "torch_function_state",
]

_PLAIN = (
    int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented),
    torch.dtype, torch.device, torch.layout, torch.memory_format, types.CodeType,
)  # fmt: skip


def _numpy_numbers() -> tuple[type[Any], ...]:
    """Numpy's scalars, where numpy is installed."""
    with contextlib.suppress(ImportError):
        import numpy

        return (numpy.number, numpy.bool_)
    return ()


NUMPY_NUMBERS = _numpy_numbers()

_CONTAINERS = (tuple, torch.Size, frozenset)


def is_constant(value: Any) -> bool:
    """Can this value be compared with `same_constant` at any later time?"""
    if isinstance(value, (*_CONTAINERS,)):
        return type(value) in _CONTAINERS and all(map(is_constant, value))
    if type(value) in (slice, range):
        return all(map(is_constant, (value.start, value.stop, value.step)))
    return type(value) in _PLAIN or isinstance(value, (enum.Enum, *NUMPY_NUMBERS))


def same_constant(a: Any, b: Any) -> bool:
    """Equal in type and value, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, NUMPY_NUMBERS):
        return bool(a.tobytes() == b.tobytes())
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same_constant, a, b))
    if isinstance(a, (slice, range)):
        return same_constant((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, frozenset):
        return {(type(x), x) for x in a} == {(type(x), x) for x in b}
    if isinstance(a, (enum.Enum, types.CodeType)):  # code of another file may be equal
        return a is b
    return bool(a == b)


def same_keys(mapping: Iterable[Any], keys: tuple[Any, ...]) -> bool:
    """The keys, in order; constants by value, other keys by identity."""
    now = tuple(mapping)
    return len(now) == len(keys) and all(
        a is b or (is_constant(b) and same_constant(a, b)) for a, b in zip(now, keys)
    )


def all_different(*values: Any) -> bool:
    """No object occurs twice."""
    return len(set(map(id, values))) == len(values)


def storages_apart(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Do the bytes that two tensors reach lie apart? (Ranges: interleaved views count as overlap.)"""
    if a.device != b.device or a.numel() == 0 or b.numel() == 0:
        return True
    return _end(a) <= b.data_ptr() or _end(b) <= a.data_ptr()


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Are two tensors that have elements parts of one storage?"""
    one = a.untyped_storage()._cdata == b.untyped_storage()._cdata
    return bool(one and a.numel() and b.numel())


def tensor_oddity(value: Any) -> str:
    """What keeps a tensor from being an input of a graph; "" for a plain one, and for no tensor."""
    if not isinstance(value, torch.Tensor):
        return ""
    if value.layout != torch.strided or value.is_quantized or value.is_nested:
        return f"with layout {value.layout}"
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return "of a torch.func transform"
    if value.is_conj() or value.is_neg():
        return "lazily conjugated" if value.is_conj() else "lazily negated"
    return ""


def _end(t: torch.Tensor) -> int:
    last = sum((n - 1) * step for n, step in zip(t.size(), t.stride()))
    return t.data_ptr() + (last + 1) * t.element_size()


def active_request() -> Request:
    """The `compile()` request that this thread is running under."""
    return ACTIVE.request


def autocast_state() -> tuple[Any, ...]:
    """(device type, enabled, dtype) for CPU and CUDA, and whether casts are cached."""
    devices = ("cpu", "cuda")
    return (
        *((d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in devices),
        torch.is_autocast_cache_enabled(),
    )


def forward_ad_level() -> int:
    """The level of forward-mode differentiation; -1 outside of `forward_ad.dual_level()`."""
    return torch.autograd.forward_ad._current_level


def matmul_precision() -> str:
    """The precision of float32 products; "mixed" where backends were set one by one."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        return f"mixed, cuda {torch.backends.cuda.matmul.fp32_precision}"


def torch_function_state() -> tuple[Any, ...]:
    """Whether `__torch_function__` is on, and the modes in force: types, and the device of a device mode."""
    modes = [
        torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())
    ]
    return (
        torch._C._is_torch_function_enabled(),
        *((id(type(mode)), str(getattr(mode, "device", ""))) for mode in modes),
    )


@dataclass(frozen=True, slots=True)
class CallableForm:
    """What a callable is, apart from its identity: equal forms do the same."""

    kind: str
    parts: tuple[Any, ...]

    def matches(self, value: Any, contents: bool = True) -> bool:
        return _matches(self, value, contents)


def callable_form(value: Any) -> CallableForm:
    """The form of a function, bound method or partial; of anything else, its identity.

    Functions: code, defaults, keyword defaults, closure contents. Methods: function and type of
    self. Partials: function, arguments. Parts that are constants are kept by value, others weakly.
    """
    return _form(value, ())


def _form(value: Any, outer: tuple[int, ...]) -> CallableForm:
    if id(value) in outer:  # a function in its own closure
        return CallableForm("again", (outer.index(id(value)),))
    outer = (*outer, id(value))
    if isinstance(value, types.FunctionType):
        return CallableForm(
            "function", (value.__code__, *(_form(v, outer) for v in _inside(value)))
        )
    if isinstance(value, types.MethodType):
        return CallableForm("method", (_form(value.__func__, outer), type(value.__self__)))
    if isinstance(value, functools.partial):
        return CallableForm("partial", tuple(_form(v, outer) for v in _partial_parts(value)))
    if type(value) in (tuple, dict):
        items = value if type(value) is tuple else (*value, *value.values())
        return CallableForm(type(value).__name__, tuple(_form(v, outer) for v in items))
    if is_constant(value):
        return CallableForm("constant", (value,))
    return CallableForm("object", (reference(value),))


_EMPTY = object()


def _inside(function: types.FunctionType) -> tuple[Any, ...]:
    """Defaults, keyword defaults, closure contents: what a function has beside its code."""
    cells = function.__closure__ or ()
    return (function.__defaults__, function.__kwdefaults__, *(_content(cell) for cell in cells))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY


def _partial_parts(value: functools.partial[Any]) -> tuple[Any, ...]:
    return value.func, value.args, value.keywords


def _matches(form: CallableForm, value: Any, contents: bool, outer: tuple[int, ...] = ()) -> bool:
    if form.kind == "again":
        return bool(outer[form.parts[0]] == id(value))
    if form.kind == "constant":
        return same_constant(value, form.parts[0])
    if form.kind == "object":
        return bool(value is not None and form.parts[0]() is value)
    return _WHAT[form.kind](form.parts, value, contents, (*outer, id(value)))


def _all_match(
    forms: tuple[Any, ...], values: Iterable[Any], contents: bool, outer: tuple[int, ...]
) -> bool:
    now = tuple(values)
    return len(now) == len(forms) and all(
        _matches(form, v, contents, outer) for form, v in zip(forms, now)
    )


def _same_function(p: tuple[Any, ...], v: Any, contents: bool, outer: tuple[int, ...]) -> bool:
    if not isinstance(v, types.FunctionType) or v.__code__ is not p[0]:
        return False
    return not contents or _all_match(p[1:], _inside(v), contents, outer)


def _same_method(p: tuple[Any, ...], v: Any, contents: bool, outer: tuple[int, ...]) -> bool:
    return (
        isinstance(v, types.MethodType)
        and type(v.__self__) is p[1]
        and _matches(p[0], v.__func__, contents, outer)
    )


def _same_partial(p: tuple[Any, ...], v: Any, contents: bool, outer: tuple[int, ...]) -> bool:
    return isinstance(v, functools.partial) and _all_match(p, _partial_parts(v), contents, outer)


def _same_tuple(p: tuple[Any, ...], v: Any, contents: bool, outer: tuple[int, ...]) -> bool:
    return type(v) is tuple and _all_match(p, v, contents, outer)


def _same_dict(p: tuple[Any, ...], v: Any, contents: bool, outer: tuple[int, ...]) -> bool:
    return type(v) is dict and _all_match(p, (*v, *v.values()), contents, outer)


_WHAT: dict[str, Callable[[tuple[Any, ...], Any, bool, tuple[int, ...]], bool]] = {
    "function": _same_function,
    "method": _same_method,
    "partial": _same_partial,
    "tuple": _same_tuple,
    "dict": _same_dict,
}


def reference(value: Any) -> Callable[[], Any]:
    """A call that gives the object back: weakly where its type allows, else strongly."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
