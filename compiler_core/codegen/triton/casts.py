"""How a value is held between statements, and how it changes type.

Half types (f16, bf16, fp8) are held as f32 that was rounded to the type: arithmetic in f32, one rounding
per statement, as eager does. In: texts and dtypes. Out: texts. bool is held as i1, stored as bytes.
"""

from __future__ import annotations

import math

import torch

from compiler_core.ir.dtypes import DType

__all__ = [
    "bracketed",
    "cast",
    "from_memory",
    "held",
    "is_half",
    "literal",
    "pointer",
    "rounded",
    "to_memory",
    "typed_literal",
]

_POINTERS = {
    "f64": "*fp64", "f32": "*fp32", "f16": "*fp16", "bf16": "*bf16", "f8e4m3": "*fp8e4nv", "f8e5m2": "*fp8e5",
    "i64": "*i64", "i32": "*i32", "i16": "*i16", "i8": "*i8", "u8": "*u8", "bool": "*i1",
}  # fmt: skip

# The hardware saturates. torch overflows to infinity for e5m2; for e4m3 it saturates in 2.13, and its format's
# older rule is NaN, so the torch at hand is asked.
_SATURATES = not bool(torch.tensor(1e6).to(torch.float8_e4m3fn).isnan())
_STORE_FP8 = (
    {"f8e5m2": "to_f8e5m2"} if _SATURATES else {"f8e4m3": "to_f8e4m3", "f8e5m2": "to_f8e5m2"}
)


def is_half(dtype: DType) -> bool:
    """Is it a floating type that computes in f32?"""
    return dtype.is_float and dtype.bytes < 4


def held(dtype: DType) -> str:
    """Triton's type of a variable that holds a value of this type."""
    return "tl.float32" if is_half(dtype) else dtype.triton


def pointer(dtype: DType) -> str:
    """The type of a pointer to it in a Triton signature, such as `*fp32`."""
    return _POINTERS[dtype.name]


def bracketed(text: str) -> str:
    """The text in brackets, unless it binds as tightly as a name or a call."""
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth == 0 and sign == " ":
            return f"({text})"
    return f"({text})" if text[0] in "-~" else text


def to_memory(text: str, dtype: DType, helpers: set[str]) -> str:
    """A held value in the type that is stored."""
    if dtype.name in _STORE_FP8:
        helpers.add(_STORE_FP8[dtype.name])
        return f"{_STORE_FP8[dtype.name]}({text})"
    return f"{text}.to({dtype.triton})" if is_half(dtype) else text


def from_memory(text: str, dtype: DType) -> str:
    """A loaded value as it is held."""
    return f"{text}.to(tl.float32)" if is_half(dtype) else text


def rounded(text: str, dtype: DType, helpers: set[str]) -> str:
    """A computed text, an f32 for half types, rounded to the type and held."""
    if not is_half(dtype):
        return text
    return f"{to_memory(bracketed(text), dtype, helpers)}.to(tl.float32)"


def cast(text: str, source: DType, target: DType, helpers: set[str]) -> str:
    """A held value of one type as a held value of another.

    Floats round half to even and truncate towards 0 to integers, by way of i32 for the narrow ones so
    that they wrap. f64 goes to half types by way of f32, as in torch.
    """
    if source is target:
        return text
    if target.kind == "bool":
        return f"{text} != 0"
    text = bracketed(text)
    if is_half(target):
        exact = source.kind == "bool"
        single = text if held(source) == "tl.float32" else f"{text}.to(tl.float32)"
        return single if exact else rounded(single, target, helpers)
    if source.is_float and not target.is_float and target.bytes < 4:
        return f"{text}.to(tl.int32).to({target.triton})"
    return text if held(source) == held(target) else f"{text}.to({target.triton})"


def literal(value: float | int | bool, dtype: DType) -> str:
    """A number as text, rounded to its type."""
    wide = torch.tensor(value, dtype=torch.float64 if dtype.is_float else torch.int64)
    number = wide.to(dtype.torch).item()
    if dtype.is_float and not math.isfinite(number):
        return f'float("{number}")'
    if dtype.is_float and number == 0 and math.copysign(1, number) < 0:
        return f"(tl.full([], -1.0, {held(dtype)}) * 0.0)"  # Triton writes the constant -0.0 as 0.0
    return repr(number)


def typed_literal(value: float | int | bool, dtype: DType) -> str:
    """A number with its type, for operations that do not take it from the other operand."""
    text = literal(value, dtype)
    return text if text.startswith("(tl.full(") else f"tl.full([], {text}, {held(dtype)})"
