"""Reading the small parts of a line of loop IR: indices, numbers, axes, arguments of calls.

In: a `TextLine` and a piece of it. Out: the value, or a VerifyError that shows the line and points at
the place. All of these are Python expressions, so Python's own parser does the work.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from compiler_core.errors import ILL_FORMED, VerifyError, closest
from compiler_core.ir.dtypes import DTYPES, OPAQUE, DType
from compiler_core.ir.index import Index, Sym, index, maximum, minimum
from compiler_core.ir.loop import Axis, Buffer, View

__all__ = ["NAME", "TextLine", "parse_arguments", "parse_axes", "parse_dtype", "parse_index",
           "parse_indices", "parse_number"]  # fmt: skip

NAME = r"[A-Za-z_]\w*"

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_NUMBERS = {"inf": math.inf, "nan": math.nan}  # the same NaN as others: it equals only itself


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the text: its number from 1, its indent, and its content without comment."""

    number: int
    indent: int
    content: str

    def fail(self, expected: str, at: str | int = 0) -> NoReturn:
        """Raise a VerifyError that points at a piece of the line (or a column of its content)."""
        column = max(self.content.find(at), 0) if isinstance(at, str) else at
        shown = f"{self.number:>5} | {' ' * self.indent}{self.content}"
        caret = " " * (8 + self.indent + min(column, len(self.content))) + "^"
        raise VerifyError(
            ILL_FORMED, f"line {self.number}: expected {expected}\n{shown}\n{caret} here"
        )


def parse_index(line: TextLine, text: str) -> Index:
    """An index expression, as its `str` prints it."""
    value = _evaluate(line, text, "an index expression", _index_node)
    return index(value)


def parse_indices(line: TextLine, text: str) -> tuple[Index, ...]:
    """Index expressions with commas between them."""
    parts = _evaluate(line, f"[{text}]", "index expressions", _index_list)
    return tuple(parts)


def parse_axes(line: TextLine, text: str) -> tuple[Axis, ...]:
    """`i < s0, j < 4`."""
    if not text.strip():
        return ()
    return tuple(_evaluate(line, f"[{text}]", "axes such as 'i < s0, j < 4'", _axis_list))


def parse_number(line: TextLine, text: str) -> float | int | bool:
    """A number or truth value, with `inf` and `nan`."""
    value: float | int | bool = _evaluate(line, text, "a number", _number)
    return value


def parse_dtype(line: TextLine, text: str) -> DType:
    """The row of a type's name."""
    known = DTYPES | OPAQUE
    if text not in known:
        line.fail(f"an element type{closest(text, DTYPES)}", text)
    return known[text]


def parse_arguments(
    line: TextLine, text: str, buffers: Mapping[str, Buffer]
) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
    """(positional values, (keyword, value) pairs) of the text between a call's brackets.

    The bare name of a buffer is a view of the whole of it.
    """

    def arguments(node: ast.expr) -> Any:
        assert isinstance(node, ast.Call)
        named = tuple((str(key.arg), _argument(key.value, buffers)) for key in node.keywords)
        return tuple(_argument(arg, buffers) for arg in node.args), named

    positional, named = _evaluate(line, f"f({text})", "arguments", arguments, shift=1)
    return positional, named


# ---------------------------------------------------------------------------------- nodes


class _Unexpected(Exception):
    """A node that does not belong here."""

    def __init__(self, node: ast.expr, expected: str):
        self.node, self.expected = node, expected


def _evaluate(
    line: TextLine, text: str, expected: str, meaning: Callable[[ast.expr], Any], shift: int = 0
) -> Any:
    """Parse `text` (a piece of the line, perhaps in brackets) and give its meaning."""
    inner = text[1 + shift : -1] if text[:1] == "[" or shift else text
    start = max(line.content.find(inner.strip()), 0) - (text.find(inner.strip()) if inner else 0)
    try:
        return meaning(ast.parse(text, mode="eval").body)
    except SyntaxError as error:
        line.fail(expected, start + (error.offset or 1) - 1)
    except _Unexpected as error:
        line.fail(error.expected, start + error.node.col_offset)
    except ZeroDivisionError:
        line.fail("a divisor that is not 0", start)


def _index_node(node: ast.expr) -> Any:
    match node:
        case ast.Constant(int() as value) if not isinstance(value, bool):
            return index(value)
        case ast.Name(name):
            return Sym(name)
        case ast.UnaryOp(ast.USub(), operand):
            return -_index_node(operand)
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_index_node(left), _index_node(right))
        case ast.Call(ast.Name("min"), [left, right], []):
            return minimum(_index_node(left), _index_node(right))
        case ast.Call(ast.Name("max"), [left, right], []):
            return maximum(_index_node(left), _index_node(right))
    raise _Unexpected(node, "an integer, a name, + - * // %, min(a, b) or max(a, b)")


def _index_list(node: ast.expr) -> list[Index]:
    if not isinstance(node, ast.List):
        raise _Unexpected(node, "index expressions in [ ]")
    return [_index_node(element) for element in node.elts]


def _axis_list(node: ast.expr) -> list[Axis]:
    assert isinstance(node, ast.List)
    return [_axis(element) for element in node.elts]


def _axis(node: ast.expr) -> Axis:
    match node:
        case ast.Compare(ast.Name(name), [ast.Lt()], [extent]):
            return Axis(name, _index_node(extent))
    raise _Unexpected(node, "an axis such as 'i < s0'")


def _number(node: ast.expr) -> float | int | bool:
    match node:
        case ast.Constant(int() | float() | bool() as value):
            return value
        case ast.Name(name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_number(operand)
    raise _Unexpected(node, "a number, True, False, inf or nan")


def _argument(node: ast.expr, buffers: Mapping[str, Buffer]) -> Any:
    match node:
        case ast.Constant(None | str() | bool() as value):
            return value
        case ast.List(elements) | ast.Tuple(elements):
            return tuple(_argument(element, buffers) for element in elements)
        case ast.Name(name) if name in buffers:
            whole = buffers[name]
            return View(name, whole.shape, whole.strides, index(0))
        case ast.Attribute(ast.Name("torch"), name) if _is_constant_of_torch(name):
            return getattr(torch, name)
        case ast.Call(ast.Name("device"), [ast.Constant(str() as name)], []):
            return torch.device(name)
        case ast.Call(ast.Name("view"), [ast.Name(name), shape, strides, offset], []):
            layout = tuple(_index_list(shape)), tuple(_index_list(strides))
            return View(name, *layout, _index_node(offset))
    return _scalar(node)


def _scalar(node: ast.expr) -> Any:
    """A number if it is one, else an index expression."""
    try:
        return _number(node)
    except _Unexpected:
        return _index_node(node)


def _is_constant_of_torch(name: str) -> bool:
    value = getattr(torch, name, None)
    return isinstance(value, torch.dtype | torch.layout | torch.memory_format)
