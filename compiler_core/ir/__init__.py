"""The loop IR: data, text, parser, verifier, reference interpreter. README.md lists the files.

The pieces that stages use most, under one name; everything else is one module away.
"""

from compiler_core.ir.dtypes import DTYPES, DType, dtype_of
from compiler_core.ir.index import Index, Sym, axis_ranges, bounds, from_sympy, simplify
from compiler_core.ir.loop import (
    Axis,
    Buffer,
    Call,
    Constant,
    Load,
    Loop,
    Nest,
    Place,
    Position,
    Program,
    Reduce,
    Store,
    Value,
    View,
)
from compiler_core.ir.ops import OPS, REDUCTIONS

__all__ = [
    "DTYPES", "OPS", "REDUCTIONS", "Axis", "Buffer", "Call", "Constant", "DType", "Index", "Load", "Loop", "Nest",
    "Place", "Position", "Program", "Reduce", "Store", "Sym", "Value", "View", "axis_ranges", "bounds", "dtype_of",
    "from_sympy", "simplify",
]  # fmt: skip
