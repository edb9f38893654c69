"""Symbolic sizes as graph nodes and as Python text.

In: a sympy expression over size symbols. Out: nodes (`sym_size` and operator calls, each made once)
or text over the sources of the tensors whose sizes they are. An expression of another form
specialises: the caller turns the number into a plain one, which the ShapeEnv records as a guard.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch import fx
from torch.utils._sympy import functions as F

from compiler_core.capture.sources import Source

__all__ = ["NoForm", "Sizes", "text_of"]


class NoForm(Exception):
    """An expression that has no row in the tables."""


def _row(name: str) -> Any:
    return getattr(F, name, None)


# expression class → (operator on the numbers, text); n-ary ones are folded
_FOLDED: dict[Any, tuple[Callable[..., Any], str]] = {
    sympy.Add: (operator.add, "({} + {})"),
    sympy.Mul: (operator.mul, "({} * {})"),
    F.Max: (torch.sym_max, "max({}, {})"),
    F.Min: (torch.sym_min, "min({}, {})"),
}
_PLAIN: dict[Any, tuple[Callable[..., Any], str]] = {
    F.FloorDiv: (operator.floordiv, "({} // {})"),
    F.CleanDiv: (operator.floordiv, "({} // {})"),
    F.Mod: (operator.mod, "({} % {})"),
    F.PythonMod: (operator.mod, "({} % {})"),
    F.PowByNatural: (operator.pow, "({} ** {})"),
    F.FloatPow: (operator.pow, "({} ** {})"),
    sympy.Pow: (operator.pow, "({} ** {})"),
    F.IntTrueDiv: (operator.truediv, "({} / {})"),
    F.FloatTrueDiv: (operator.truediv, "({} / {})"),
    F.ToFloat: (torch.sym_float, "float({})"),
    F.TruncToInt: (math.trunc, "int({})"),
    F.FloorToInt: (math.floor, "__import__('math').floor({})"),
    F.CeilToInt: (math.ceil, "__import__('math').ceil({})"),
    sympy.Eq: (operator.eq, "({} == {})"),
    sympy.Ne: (operator.ne, "({} != {})"),
    sympy.Lt: (operator.lt, "({} < {})"),
    sympy.Le: (operator.le, "({} <= {})"),
    sympy.Gt: (operator.gt, "({} > {})"),
    sympy.Ge: (operator.ge, "({} >= {})"),
}
_LOGIC = {sympy.And: " and ", sympy.Or: " or "}


def text_of(expr: Any, symbol: Callable[[Any], str]) -> str:
    """Python text of an expression; `symbol` gives the text of a size. Raises NoForm."""
    if isinstance(expr, sympy.Symbol):
        return symbol(expr)
    if expr in (sympy.true, sympy.false) or expr.is_number:
        return _number_text(expr)
    parts = [text_of(arg, symbol) for arg in expr.args]
    if type(expr) in _FOLDED:
        template, text = _FOLDED[type(expr)][1], parts[0]
        for part in parts[1:]:
            text = template.format(text, part)
        return text
    if type(expr) in _PLAIN:
        return _PLAIN[type(expr)][1].format(*parts)
    if type(expr) in _LOGIC:
        return f"({_LOGIC[type(expr)].join(parts)})"
    if isinstance(expr, sympy.Not):
        return f"(not {parts[0]})"
    raise NoForm(str(expr))


def _number_text(expr: Any) -> str:
    if expr in (sympy.true, sympy.false):
        return str(bool(expr))
    if expr.is_Integer:
        return str(int(expr))
    if expr.is_Rational:
        return f"({expr.p} / {expr.q})"
    return repr(float(expr))


@dataclass(slots=True)
class Sizes:
    """Which size each symbol is, and the nodes made for expressions so far."""

    graph: fx.Graph
    places: dict[Any, tuple[fx.Node, int, Any]] = field(default_factory=dict)  # node, dim, SymInt
    numbers: dict[Any, tuple[Source, Any]] = field(default_factory=dict)  # ints from outside
    floats: dict[Any, tuple[Source, float]] = field(default_factory=dict)  # inputs of the graph
    strides: dict[Any, str] = field(default_factory=dict)  # guard text of a stride that was fixed
    nodes: dict[Any, fx.Node] = field(default_factory=dict)
    number_input: Callable[[Source, Any], fx.Node] = field(default=None)  # type: ignore[assignment]

    def note(self, symbol: Any, node: fx.Node, dim: int, number: Any) -> None:
        self.places.setdefault(symbol, (node, dim, number))

    def fix_strides(self, fake: torch.Tensor, text: str) -> None:
        """Make a stride that follows from no size the number it is: the tensor's guard compares it."""
        for dim, stride in enumerate(fake.stride()):
            symbol = stride.node.expr if isinstance(stride, torch.SymInt) else None
            if isinstance(symbol, sympy.Symbol) and symbol not in self.places:
                self.strides[symbol] = f"{text}.stride({dim})"
                int(stride)

    def node(self, number: Any, create: Callable[..., fx.Node]) -> fx.Node:
        """The node that computes a symbolic number. Raises NoForm."""
        node: fx.Node = self._node(number.node.expr, create)[0]
        return node

    def _node(self, expr: Any, create: Callable[..., fx.Node]) -> tuple[Any, Any]:
        """(argument for the graph, the number itself) of an expression."""
        if expr.is_Integer:
            return int(expr), int(expr)
        if expr.is_number:
            return float(expr), float(expr)
        if expr in self.nodes:
            return self.nodes[expr], self.nodes[expr].meta["val"]
        node, number = self._make(expr, create)
        if isinstance(node, fx.Node):
            self.nodes[expr] = node
        return node, number

    def _make(self, expr: Any, create: Callable[..., fx.Node]) -> tuple[Any, Any]:
        if isinstance(expr, sympy.Symbol):
            if expr in self.numbers:
                source, number = self.numbers[expr]
                return self.number_input(source, number), number
            if expr not in self.places:
                raise NoForm(str(expr))
            tensor, dim, number = self.places[expr]
            return create(torch.ops.aten.sym_size.int, (tensor, dim), number), number
        parts = [self._node(arg, create) for arg in expr.args]
        if type(expr) in _PLAIN:
            function = _PLAIN[type(expr)][0]
            number = function(*(value for _, value in parts))
            return create(function, tuple(node for node, _ in parts), number), number
        if type(expr) not in _FOLDED:
            raise NoForm(str(expr))
        function = _FOLDED[type(expr)][0]
        node, number = parts[0]
        for other, value in parts[1:]:
            number = function(number, value)
            node = create(function, (node, other), number)
        return node, number
