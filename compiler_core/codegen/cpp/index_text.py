"""Index expressions as C text over `int64_t`.

In: an `Index` and identifiers for its names. Out: text. C divides towards zero and the IR divides
down, so `//` and `%` become `/` and `%` only where nothing can be negative, and calls of
`v_floordiv` and `v_remainder` elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler_core.ir.index import Index
from compiler_core.ir.index_terms import Const, FloorDiv, Max, Min, Mod, Product, Sum, Sym

__all__ = ["IndexText"]


@dataclass(frozen=True, slots=True)
class IndexText:
    """Writes expressions. `name` gives identifiers; `is_signed` says which names may be below zero."""

    name: Callable[[str], str]
    is_signed: Callable[[str], bool]

    def __call__(self, e: Index) -> str:
        match e:
            case Const(value):
                return str(value)
            case Sym(name):
                return self.name(name)
            case Sum(terms):
                return " + ".join(self(term) for term in terms).replace("+ -", "- ")
            case Product((Const(-1), *factors)):
                return "-" + " * ".join(self._operand(factor) for factor in factors)
            case Product(factors):
                return " * ".join(self._operand(factor) for factor in factors)
            case FloorDiv(left, right):
                return self._division("/", "v_floordiv_i64", left, right)
            case Mod(left, right):
                return self._division("%", "v_remainder_i64", left, right)
            case Min(left, right):
                return f"v_min_i64({self(left)}, {self(right)})"
            case Max(left, right):
                return f"v_max_i64({self(left)}, {self(right)})"
        raise TypeError(f"no C text for an index of type {type(e).__name__}: {e}")

    def may_be_negative(self, e: Index) -> bool:
        """Can the value be below zero? Axes and sizes cannot."""
        match e:
            case Const(value):
                return value < 0
            case Sym(name):
                return self.is_signed(name)
            case Mod(_, right):
                return self.may_be_negative(right)
            case Max(left, right):
                return self.may_be_negative(left) and self.may_be_negative(right)
        return any(self.may_be_negative(child) for child in e.children)

    def _division(self, operator: str, function: str, left: Index, right: Index) -> str:
        if self.may_be_negative(left) or self.may_be_negative(right):
            return f"{function}({self(left)}, {self(right)})"
        return f"{self._operand(left)} {operator} {self._operand(right)}"

    def _operand(self, e: Index) -> str:
        """In brackets unless it is a name, a call or a number."""
        is_bare = isinstance(e, Sym | Min | Max) or (e.constant is not None and e.constant >= 0)
        return self(e) if is_bare else f"({self(e)})"
