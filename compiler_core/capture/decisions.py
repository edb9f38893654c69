"""Which construct of Python asks a tensor for its truth: the remedy for a `while` is not that of an `if`.

In: a file and the span of a conditional jump. Out: a kind of break. The bytecode of `if`, `while`,
`assert` and `and` is one and the same jump, so the source is asked.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache

from compiler_core.capture.break_kinds.control_flow import (
    TENSOR_ASSERT,
    TENSOR_BRANCH,
    TENSOR_CHAIN,
    TENSOR_LOGIC,
    TENSOR_LOOP,
)
from compiler_core.errors import Kind
from compiler_core.provenance import Span

__all__ = ["kind_of_decision"]

_STATEMENTS: tuple[tuple[type[ast.AST], Kind], ...] = (
    (ast.While, TENSOR_LOOP),
    (ast.Assert, TENSOR_ASSERT),
    (ast.If, TENSOR_BRANCH),
    (ast.IfExp, TENSOR_BRANCH),
)
_EXPRESSIONS: tuple[tuple[type[ast.AST], Kind], ...] = (
    (ast.BoolOp, TENSOR_LOGIC),
    (ast.Compare, TENSOR_CHAIN),
)


def kind_of_decision(span: Span | None) -> Kind:
    """The kind of a jump on a tensor. TENSOR_BRANCH where there is no source.

    `if a and b` is an `if`: the innermost statement or conditional expression whose test holds the
    span counts before an operator does.
    """
    if span is None:
        return TENSOR_BRANCH
    inside = list(_around(_tree("".join(linecache.getlines(span.file))), span))
    for node in reversed(inside):
        for cls, kind in _STATEMENTS:
            if isinstance(node, cls) and _is_about_test(node, span):
                return kind
        if isinstance(node, ast.stmt):
            break
    for node in reversed(inside):
        for cls, kind in _EXPRESSIONS:
            if isinstance(node, cls):
                return kind
    return TENSOR_BRANCH


def _is_about_test(node: ast.AST, span: Span) -> bool:
    """Is the jump that of the test? (An assert's is placed over the whole statement.)"""
    return isinstance(node, ast.Assert) or _holds(getattr(node, "test"), span)  # noqa: B009


@lru_cache(maxsize=8)
def _tree(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except SyntaxError:  # a notebook's cell with magics, a file that changed since
        return ast.Module([], [])


def _around(node: ast.AST, span: Span) -> Iterator[ast.AST]:
    """The nodes that hold a span, outermost first."""
    for child in ast.iter_child_nodes(node):
        if not hasattr(child, "lineno"):  # a comprehension's clause, a match case
            yield from _around(child, span)
        elif _holds(child, span):
            yield child
            yield from _around(child, span)


def _holds(node: ast.AST, span: Span) -> bool:
    first = getattr(node, "lineno"), getattr(node, "col_offset")  # noqa: B009
    last = getattr(node, "end_lineno"), getattr(node, "end_col_offset")  # noqa: B009
    return bool(first <= (span.line, span.col) and (span.end_line, span.end_col) <= last)
