"""Numbers: one row per operation of the `arith` and `math` dialects, and of `tt` where it computes.

A row takes the evaluated operands and gives the result, exactly: half types round once per operation
(torch computes them in f32 and rounds), integers wrap, unsigned operations work on the bits.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compiler_core.runtime.ttir_evaluator.parse import Operation
from compiler_core.runtime.ttir_evaluator.values import TYPES, from_unsigned, together, unsigned

__all__ = ["COMPUTE", "LIBDEVICE", "constant", "convert"]

Row = Callable[..., Tensor]


def _trunc_div(a: Tensor, b: Tensor) -> Tensor:
    return torch.div(a, _no_zero(b), rounding_mode="trunc")


def _no_zero(divisor: Tensor) -> Tensor:
    """Lanes that a mask switches off may hold a zero divisor; their result is never used."""
    return torch.where(divisor == 0, torch.ones_like(divisor), divisor)


def _on_bits(function: Callable[[Any, Any], Any]) -> Row:
    def row(a: Tensor, b: Tensor) -> Tensor:
        wide = together(a, b)
        return from_unsigned(function(unsigned(wide[0]), unsigned(wide[1])), a.dtype)

    return row


def _on_bits_nonzero(function: Callable[[Any, Any], Any]) -> Row:
    row = _on_bits(function)
    return lambda a, b: row(a, _no_zero(b))


def _compare_bits(function: Callable[[Any, Any], Any]) -> Row:
    def row(a: Tensor, b: Tensor) -> Tensor:
        wide = together(a, b)
        return torch.from_numpy(function(unsigned(wide[0]), unsigned(wide[1])))

    return row


def _fmod(a: Tensor, b: Tensor) -> Tensor:
    """Exact, as libdevice's. torch's vector loop gives NaN where the quotient overflows."""
    with np.errstate(invalid="ignore"):
        return torch.as_tensor(np.fmod(a.numpy(), b.numpy()))


def _mulhiui(a: Tensor, b: Tensor) -> Tensor:
    low, high = a.long() & 0xFFFFFFFF, b.long() & 0xFFFFFFFF
    carry = ((low & 0xFFFF) * high) >> 16
    return (((low >> 16) * high + carry) >> 16).int()


def _fused(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a * b + c with one rounding: the product of two f32 is exact in f64."""
    if a.dtype is torch.float64:
        raise NotImplementedError("math.fma on f64 has no exact form here")
    return (a.double() * b.double() + c.double()).to(c.dtype)


_SIGNED: dict[str, Row] = {
    "eq": torch.eq, "ne": torch.ne, "slt": torch.lt, "sle": torch.le, "sgt": torch.gt, "sge": torch.ge,
    "ult": _compare_bits(operator.lt), "ule": _compare_bits(operator.le), "ugt": _compare_bits(operator.gt),
    "uge": _compare_bits(operator.ge),
}  # fmt: skip


def _unordered(row: Row) -> Row:
    return lambda a, b: row(a, b) | torch.isnan(a) | torch.isnan(b)


_ORDERED: dict[str, Row] = {
    "oeq": torch.eq, "olt": torch.lt, "ole": torch.le, "ogt": torch.gt, "oge": torch.ge,
    "one": lambda a, b: (a < b) | (a > b), "une": torch.ne,
    "ueq": _unordered(torch.eq), "ult": _unordered(torch.lt), "ule": _unordered(torch.le),
    "ugt": _unordered(torch.gt), "uge": _unordered(torch.ge),
    "ord": lambda a, b: ~(torch.isnan(a) | torch.isnan(b)), "uno": lambda a, b: torch.isnan(a) | torch.isnan(b),
}  # fmt: skip


def _cmpi(op: Operation, a: Tensor, b: Tensor) -> Tensor:
    predicate = op.text.split(",")[0].strip()
    if a.dtype is torch.bool and predicate[0] == "s":  # a set bit is -1
        a, b = -a.to(torch.int8), -b.to(torch.int8)
    return _SIGNED[predicate](a, b)


def _cmpf(op: Operation, a: Tensor, b: Tensor) -> Tensor:
    return _ORDERED[op.text.split(",")[0].strip()](a, b)


def constant(op: Operation) -> Tensor:
    """`arith.constant`: a number, or `dense<number>` for a tensor of equal elements."""
    kind = op.types[0]
    text = re.match(r"\s*(?:dense<)?([^>\s]+)", op.text)
    assert text is not None
    value = _number(text.group(1), TYPES[kind.element])
    return value.reshape((1, *([1] * len(kind.shape))))


def _number(text: str, dtype: torch.dtype) -> Tensor:
    if text in ("true", "false"):
        return torch.tensor(text == "true")
    if text.startswith("0x") and dtype.is_floating_point:
        size = torch.empty((), dtype=dtype).element_size()
        bits = np.array(int(text, 16), dtype=f"u{size}").view(f"i{size}")
        return torch.from_numpy(bits).view(dtype)
    if dtype.is_floating_point:
        return torch.tensor(float(text), dtype=torch.float64).to(dtype)
    return torch.tensor(int(text), dtype=dtype)


def convert(op: Operation, value: Tensor) -> Tensor:
    """Between number types; to fp8 the hardware's way: round half to even, then saturate."""
    dtype = TYPES[op.types[0].element]
    if op.name in ("arith.extui", "arith.uitofp") and value.dtype is not torch.bool:
        return torch.from_numpy(
            unsigned(value).astype(np.float64 if dtype.is_floating_point else np.int64)
        ).to(dtype)
    if op.name in ("arith.extsi", "arith.sitofp") and value.dtype is torch.bool:
        return -value.to(dtype)
    if op.name == "arith.trunci" and dtype is torch.bool:
        return (value & 1).bool()
    if op.name == "arith.fptoui":
        return _float_to_unsigned(value, dtype)
    if "rounding = rtz" in op.text:
        raise NotImplementedError("conversion that rounds towards zero")
    if dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        largest = torch.finfo(dtype).max
        return value.float().clamp(-largest, largest).to(dtype)
    if dtype.is_floating_point or value.dtype.is_floating_point is False:
        return value.to(dtype)
    return (
        torch.nan_to_num(value.double(), nan=0.0, posinf=0.0, neginf=0.0).to(torch.int64).to(dtype)
    )


def _float_to_unsigned(value: Tensor, dtype: torch.dtype) -> Tensor:
    whole = torch.nan_to_num(value.double(), nan=0.0, posinf=0.0, neginf=0.0).to(torch.int64)
    return whole.to(dtype)


def _bitcast(op: Operation, value: Tensor) -> Tensor:
    return value.contiguous().view(TYPES[op.types[0].element])


LIBDEVICE: dict[str, Row] = {
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
    "log10": torch.log10, "log1p": torch.log1p, "rsqrt": torch.rsqrt, "sqrt": torch.sqrt, "sin": torch.sin,
    "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan,
    "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "erf": torch.erf, "trunc": torch.trunc,
    "nearbyint": torch.round, "rint": torch.round, "floor": torch.floor, "ceil": torch.ceil, "fabs": torch.abs,
    "atan2": torch.atan2, "copysign": torch.copysign, "fmod": _fmod, "pow": torch.pow,
    "fdiv_rn": torch.div, "ddiv_rn": torch.div, "div_rn": torch.div,
}  # fmt: skip


def _extern(op: Operation, *operands: Tensor) -> Tensor:
    """A libdevice function: `__nv_expf` is `exp` on f32, `__nv_exp` on f64."""
    match = re.search(r'symbol = "__nv_(\w+)"', op.text)
    symbol = match.group(1) if match else "?"
    name = symbol if symbol in LIBDEVICE else symbol.removesuffix("f")
    if name not in LIBDEVICE:
        raise NotImplementedError(f"libdevice function __nv_{symbol}")
    return LIBDEVICE[name](*operands)


def _plain(row: Row) -> Callable[..., Tensor]:
    """A row that needs no more than its operands; the result keeps their type."""

    def apply(op: Operation, *operands: Tensor) -> Tensor:
        result = row(*operands)
        return result if result.dtype == operands[0].dtype else result.to(operands[0].dtype)

    return apply


_PLAIN: dict[str, Row] = {
    "arith.addf": torch.add, "arith.subf": torch.sub, "arith.mulf": torch.mul, "arith.divf": torch.div,
    "arith.remf": _fmod, "arith.negf": torch.neg, "tt.precise_divf": torch.div,
    "arith.maximumf": torch.maximum, "arith.minimumf": torch.minimum, "arith.maxnumf": torch.fmax,
    "arith.minnumf": torch.fmin, "tt.clampf": lambda x, low, high: torch.minimum(torch.maximum(x, low), high),
    "arith.addi": lambda a, b: a ^ b if a.dtype is torch.bool else a + b,
    "arith.subi": lambda a, b: a ^ b if a.dtype is torch.bool else a - b,
    "arith.muli": lambda a, b: a & b if a.dtype is torch.bool else a * b,
    "arith.divsi": _trunc_div, "arith.remsi": lambda a, b: torch.fmod(a, _no_zero(b)),
    "arith.divui": _on_bits_nonzero(operator.floordiv), "arith.remui": _on_bits_nonzero(operator.mod),
    "arith.andi": torch.bitwise_and, "arith.ori": torch.bitwise_or, "arith.xori": torch.bitwise_xor,
    "arith.shli": torch.bitwise_left_shift, "arith.shrsi": torch.bitwise_right_shift,
    "arith.shrui": _on_bits(operator.rshift), "tt.mulhiui": _mulhiui,
    "arith.maxsi": torch.maximum, "arith.minsi": torch.minimum,
    "arith.maxui": _on_bits(np.maximum), "arith.minui": _on_bits(np.minimum),
    "math.exp": torch.exp, "math.exp2": torch.exp2, "math.log": torch.log, "math.log2": torch.log2,
    "math.sqrt": torch.sqrt, "tt.precise_sqrt": torch.sqrt, "math.rsqrt": torch.rsqrt, "math.sin": torch.sin,
    "math.cos": torch.cos, "math.erf": torch.erf, "math.absf": torch.abs, "math.absi": torch.abs,
    "math.floor": torch.floor, "math.ceil": torch.ceil, "math.fma": _fused,
}  # fmt: skip

_CONVERSIONS = (
    "arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp", "arith.uitofp",
    "arith.fptosi", "arith.fptoui", "tt.fp_to_fp",
)  # fmt: skip

COMPUTE: dict[str, Callable[..., Tensor]] = {
    **{name: _plain(row) for name, row in _PLAIN.items()},
    **{name: convert for name in _CONVERSIONS},
    "arith.constant": constant,
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.bitcast": _bitcast,
    "tt.extern_elementwise": _extern,
}
