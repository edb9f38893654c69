"""The element types of the loop IR: one row per type, one column per question."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["DTYPES", "OPAQUE", "DType", "dtype_of", "stored_as"]


@dataclass(frozen=True, slots=True)
class DType:
    """A row: the IR's name, torch's type, the C type that stores it, the C type that computes, Triton's type."""

    name: str
    torch: torch.dtype
    c_storage: str
    c_compute: str
    triton: str
    kind: str  # "float", "int", "uint", "bool"; "opaque" for what only library calls read
    bytes: int
    accumulator: str  # the IR type that a sum over it uses

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    def __str__(self) -> str:
        return self.name


_ROWS = (
    DType("f64", torch.float64, "double", "double", "tl.float64", "float", 8, "f64"),
    DType("f32", torch.float32, "float", "float", "tl.float32", "float", 4, "f32"),
    DType("f16", torch.float16, "uint16_t", "float", "tl.float16", "float", 2, "f32"),
    DType("bf16", torch.bfloat16, "uint16_t", "float", "tl.bfloat16", "float", 2, "f32"),
    DType("f8e4m3", torch.float8_e4m3fn, "uint8_t", "float", "tl.float8e4nv", "float", 1, "f32"),
    DType("f8e5m2", torch.float8_e5m2, "uint8_t", "float", "tl.float8e5", "float", 1, "f32"),
    DType("i64", torch.int64, "int64_t", "int64_t", "tl.int64", "int", 8, "i64"),
    DType("i32", torch.int32, "int32_t", "int32_t", "tl.int32", "int", 4, "i64"),
    DType("i16", torch.int16, "int16_t", "int16_t", "tl.int16", "int", 2, "i64"),
    DType("i8", torch.int8, "int8_t", "int8_t", "tl.int8", "int", 1, "i64"),
    DType("u8", torch.uint8, "uint8_t", "uint8_t", "tl.uint8", "uint", 1, "i64"),
    DType("bool", torch.bool, "uint8_t", "uint8_t", "tl.int1", "bool", 1, "i64"),
)

DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
_BY_TORCH: dict[torch.dtype, DType] = {row.torch: row for row in _ROWS}


# Types that buffers may have but no statement computes in: only library calls touch them.
OPAQUE: dict[str, DType] = {
    name: DType(name, type_, "", "", "", "opaque", type_.itemsize, name)
    for name, type_ in (
        ("c64", torch.complex64),
        ("c128", torch.complex128),
        ("c32", torch.complex32),
        ("u16", torch.uint16),
        ("u32", torch.uint32),
        ("u64", torch.uint64),
        ("f8e4m3fnuz", torch.float8_e4m3fnuz),
        ("f8e5m2fnuz", torch.float8_e5m2fnuz),
    )
}
_OPAQUE_BY_TORCH = {row.torch: row for row in OPAQUE.values()}


def stored_as(dtype: torch.dtype) -> DType:
    """The row of any type that a buffer may have. Raises KeyError for others (quantised types)."""
    return _BY_TORCH[dtype] if dtype in _BY_TORCH else _OPAQUE_BY_TORCH[dtype]


def dtype_of(dtype: torch.dtype) -> DType | None:
    """The row of a torch type; None for a type that no kernel is generated for (complex, quantised)."""
    return _BY_TORCH.get(dtype)
