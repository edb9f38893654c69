"""Index expressions as Triton text.

In: an `Index` and what its names stand for. Out: text. Triton's `//` and `%` round towards zero, so an
operand that may be negative goes through the helpers `floor_div` and `floor_mod`.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler_core.ir.index import Index
from compiler_core.ir.index_terms import Const, FloorDiv, Max, Min, Mod, Product, Sum, Sym

__all__ = ["IndexText", "may_be_negative"]


def may_be_negative(e: Index, signed: Callable[[str], bool]) -> bool:
    """Can the value be below zero? `signed` says which names can; axes and sizes cannot."""
    match e:
        case Const(value):
            return value < 0
        case Sym(name):
            return signed(name)
        case Mod(_, right):
            return may_be_negative(right, signed)
        case Max(left, right):
            return may_be_negative(left, signed) and may_be_negative(right, signed)
    return any(may_be_negative(child, signed) for child in e.children)


class IndexText:
    """Writes expressions. `name_text` gives a name's identifier; `helpers` collects the calls."""

    def __init__(
        self, name_text: Callable[[str], str], signed: Callable[[str], bool], helpers: set[str]
    ):
        self._name_text, self._signed, self._helpers = name_text, signed, helpers

    def write(self, e: Index) -> str:
        """The whole expression."""
        match e:
            case Const(value):
                return str(value)
            case Sym(name):
                return self._name_text(name)
            case Sum(terms):
                return " + ".join(self.write(term) for term in terms).replace("+ -", "- ")
            case Product(factors):
                return " * ".join(self._operand(factor) for factor in factors)
            case FloorDiv(left, right):
                return self._divide("floor_div", "//", left, right)
            case Mod(left, right):
                return self._divide("floor_mod", "%", left, right)
            case Min(left, right):
                return f"tl.minimum({self.write(left)}, {self.write(right)})"
            case Max(left, right):
                return f"tl.maximum({self.write(left)}, {self.write(right)})"
        raise TypeError(f"no Triton text for an index of type {type(e).__name__}: {e}")

    def _divide(self, helper: str, operator: str, left: Index, right: Index) -> str:
        if may_be_negative(left, self._signed) or may_be_negative(right, self._signed):
            self._helpers.add(helper)
            return f"{helper}({self.write(left)}, {self.write(right)})"
        return f"{self._operand(left)} {operator} {self._operand(right)}"

    def _operand(self, e: Index) -> str:
        """In brackets unless it is a name, a call or a number. `-1 * x` needs none as a first factor."""
        text = self.write(e)
        bare = isinstance(e, Sym | Min | Max | Const)
        return text if bare else f"({text})"
