"""The catalogue of graph breaks as rows: kind, remedies, and both examples as text.

In: nothing. Out: what a page or a message shows of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler_core.capture.break_examples import (
    autograd,
    calls,
    control_flow,
    objects,
    output,
    tensors,
    values,
)
from compiler_core.capture.break_examples.example import Example

__all__ = ["CatalogueRow", "catalogue", "examples"]

_THEMES = (control_flow, values, tensors, output, calls, objects, autograd)


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """A kind of break. `failing` and `fixed` are source text; `alternative` says what `fixed` does otherwise."""

    code: str
    theme: str
    sentence: str
    explanation: str
    hints: tuple[str, ...]
    failing: str
    fixed: str
    alternative: str


def examples() -> tuple[Example, ...]:
    """All examples, theme by theme."""
    return tuple(example for theme in _THEMES for example in theme.EXAMPLES)


def catalogue() -> tuple[CatalogueRow, ...]:
    """One row a kind, theme by theme."""
    return tuple(
        _row(theme.__name__.rpartition(".")[2].replace("_", " "), example)
        for theme in _THEMES
        for example in theme.EXAMPLES
    )


def _row(theme: str, example: Example) -> CatalogueRow:
    kind, (failing, fixed) = example.kind, example.texts()
    return CatalogueRow(
        kind.code,
        theme,
        kind.sentence,
        kind.explanation,
        kind.hints,
        failing,
        fixed,
        example.alternative,
    )
