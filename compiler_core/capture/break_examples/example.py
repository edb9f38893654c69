"""A row of the catalogue of graph breaks: a function that breaks, and one that does not.

Both are real functions, run as tests: `failing` breaks with the kind at the lines marked `# breaks`
and gives what plain Python gives; `fixed` becomes one graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.errors import Kind

__all__ = ["Example", "marked_lines", "vector"]

_MARK = "# breaks"


def vector(call: int) -> tuple[Any, ...]:
    """Arguments for one tensor: four numbers of both signs, other ones at each call."""
    return (torch.tensor([-1.5, 0.5, 1.0, 2.5]) + call,)


@dataclass(frozen=True, slots=True)
class Example:
    """One kind of break, shown.

    arguments: number of the call → new arguments; calls differ in values, not in shapes.
    fixed_arguments: the same for `fixed`, where the remedy is to pass something else.
    alternative: what `fixed` does otherwise; "" when it gives the same values as `failing`.
    """

    kind: Kind
    failing: Callable[..., Any]
    fixed: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]] = vector
    fixed_arguments: Callable[[int], tuple[Any, ...]] | None = None
    alternative: str = ""

    def texts(self) -> tuple[str, str]:
        """The source of both functions."""
        return inspect.getsource(self.failing), inspect.getsource(self.fixed)


def marked_lines(function: Callable[..., Any]) -> tuple[str, list[int]]:
    """(file, lines) of the marks in a function."""
    lines, first = inspect.getsourcelines(function)
    file = inspect.getsourcefile(function) or ""
    return file, [first + n for n, line in enumerate(lines) if _MARK in line]
