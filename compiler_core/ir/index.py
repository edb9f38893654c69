"""Index expressions: sizes, strides, loop positions and offsets, interned.

Grammar (the text that `str` prints and `ir/parse.py` reads):

    index  := sum
    sum    := "-"? term (("+" | "-") term)*
    term   := factor ("*" factor)*
    factor := integer | name | "(" index ")" | factor "//" factor | factor "%" factor
            | "min(" index "," index ")" | "max(" index "," index ")"

A static size is a `Const`. Building through the operators (`a + b`, `a * 3`, `a // 4`, `a % 4`)
simplifies: sums and products are kept in one canonical form (sorted, like terms collected), so two
expressions that are equal as polynomials are the same object. `//` and `%` are Python's (floor).
Names are loop axes, size symbols (`s0`) and integer values of statements (indirect indexing).

This file is the door: the nodes are in `index_terms.py`, what ranges prove in `index_rules.py`.
"""

from __future__ import annotations

from typing import Any

from compiler_core.errors import NotSupportedYet, register
from compiler_core.ir.index_rules import (
    Range,
    Ranges,
    axis_ranges,
    bounds,
    is_at_least,
    is_size_symbol,
    simplify,
)
from compiler_core.ir.index_terms import (
    Const,
    FloorDiv,
    Index,
    Max,
    Min,
    Mod,
    Product,
    Sum,
    Sym,
    divide_terms,
    index,
    maximum,
    minimum,
)

__all__ = [
    "Const", "FloorDiv", "Index", "Max", "Min", "Mod", "Product", "Range", "Ranges", "Sum", "Sym", "axis_ranges",
    "bounds", "divide_terms", "from_sympy", "index", "is_at_least", "is_size_symbol", "maximum", "minimum", "simplify",
]  # fmt: skip

NO_INDEX = register(
    "CC390",
    "a size expression has a form that the loop IR has no words for",
    "Index expressions know + - * // % min max of integers and names, nothing else.",
    "Mark the dimension static, or leave the operator to a library call.",
)


def from_sympy(expr: Any) -> Index:
    """The index of a sympy expression, as `SymInt.node.expr` holds it. Raises NotSupportedYet.

    Functions are known by the names of their classes (`torch.utils._sympy.functions`).
    """
    if isinstance(expr, int | Index):
        return index(expr)
    kind = type(expr).__name__
    if expr.is_Integer:
        return Const(int(expr))
    if expr.is_Symbol:
        return Sym(str(expr))
    args = expr.args
    match kind:
        case "CeilToInt" | "FloorToInt" if type(args[0]).__name__ == "IntTrueDiv":
            a, b = (from_sympy(arg) for arg in args[0].args)
            return a // b if kind == "FloorToInt" else -(-a // b)
        case "Pow" | "PowByNatural" if args[1].is_Integer and args[1] > 0:
            return _product([from_sympy(args[0])] * int(args[1]))
        case "LShift" if args[1].is_Integer and args[1] >= 0:
            return from_sympy(args[0]) * (1 << int(args[1]))
    combine = _COMBINE.get(kind)
    if combine is None:
        raise NotSupportedYet(NO_INDEX, f"{kind} in {expr}")
    result: Index = combine([from_sympy(arg) for arg in args])
    return result


def _sum(parts: list[Index]) -> Index:
    return sum(parts, Const(0))


def _product(parts: list[Index]) -> Index:
    total: Index = Const(1)
    for part in parts:
        total = total * part
    return total


def _fold(combine: Any) -> Any:
    def apply(parts: list[Index]) -> Index:
        first, *rest = parts
        for part in rest:
            first = combine(first, part)
        return first

    return apply


_COMBINE: dict[str, Any] = {
    "Add": _sum,
    "Mul": _product,
    "FloorDiv": lambda p: p[0] // p[1],
    "CleanDiv": lambda p: p[0] // p[1],
    "Mod": lambda p: p[0] % p[1],
    "PythonMod": lambda p: p[0] % p[1],
    "ModularIndexing": lambda p: (p[0] // p[1]) % p[2],
    "Min": _fold(minimum),
    "Max": _fold(maximum),
    "Identity": lambda p: p[0],
}
