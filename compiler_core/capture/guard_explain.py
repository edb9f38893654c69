"""Guards as a table for people: the verdict of every row, not only of the first that fails.

In: rows, the check's namespace and a frame's locals. Out: (row, holds, actual value as text), and
a sentence for a recompile. Each row is evaluated alone, but nothing is read through an object about
which a row failed: that runs code of the program (a defaultdict makes the item that is asked for).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from types import CodeType
from typing import Any

from compiler_core.capture.guard_kinds import KINDS
from compiler_core.stages import GuardRow

__all__ = ["BEHIND", "explain_rows", "looked_at", "sentence"]


def explain_rows(
    rows: tuple[GuardRow, ...], namespace: dict[str, Any], L: dict[str, Any]
) -> list[tuple[GuardRow, bool, str]]:
    scope = {**namespace, "L": L}
    return [
        (row, bool(holds), BEHIND if holds is None else _actual(row, scope))
        for row, holds in looked_at(rows, scope)
    ]


BEHIND = "not looked at: what it is read from is not what it was"
_PLAIN = 1  # the rank of rows about plain values, which stand before those about their contents


def looked_at(
    rows: tuple[GuardRow, ...], scope: dict[str, Any]
) -> Iterator[tuple[GuardRow, bool | None]]:
    """(row, holds); None for a row behind a place where something else was found than it expects."""
    other: list[str] = []
    for row in rows:
        if any(place in row.source and place != row.source for place in other):
            yield row, None
            continue
        holds = _holds(row, scope)
        if not holds and row.kind != "length" and KINDS[row.kind].rank == _PLAIN:
            other.append(row.source)
        yield row, holds


def sentence(row: GuardRow, actual: str) -> str:
    """`L['n'] is now int 4, was 3 (f.py:12): the value was compiled in as a constant`."""
    place = f" ({row.line})" if row.line else ""
    if row.kind == "identity" and actual == row.expected:
        actual = f"another {actual}"
    return f"{row.source} is now {actual}, was {row.expected}{place}: {row.reason}"


def _holds(row: GuardRow, scope: dict[str, Any]) -> bool:
    try:
        return bool(eval(_compiled(row.check), scope))
    except Exception:
        return False


def _actual(row: GuardRow, scope: dict[str, Any]) -> str:
    try:
        if row.kind == "shape":
            return _sizes(row.source, scope)
        return KINDS[row.kind].actual(eval(_compiled(row.source), scope))
    except Exception as error:
        return f"not found: {type(error).__name__}: {error}"


def _sizes(text: str, scope: dict[str, Any]) -> str:
    """The values of the sizes and locals that a shape condition speaks about."""
    parts = {
        ast.unparse(node): eval(_compiled(ast.unparse(node)), scope)
        for node in ast.walk(ast.parse(text, mode="eval"))
        if isinstance(node, (ast.Call, ast.Subscript)) and _is_int(ast.unparse(node), scope)
    }
    return ", ".join(f"{part} = {value}" for part, value in parts.items())


def _is_int(text: str, scope: dict[str, Any]) -> bool:
    return isinstance(eval(_compiled(text), scope), int)


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<guard>", "eval")
