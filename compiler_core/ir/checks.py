"""What happens when a position read from memory lies outside its dimension: one row per kind of check.

In: the word after `as` in a `place` statement. Out: the error that eager raises there, with eager's own
sentence, and whether a negative position counts from the end. Every realisation (interpreter, C, Triton)
takes its text from here. A new row needs a case in `tests/end_to_end/test_positions_from_data.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHECKS", "Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of check. `message` may name {value}, {dimension} and {size}."""

    name: str
    error: type[Exception]
    message: str
    wraps: bool
    doc: str

    def failure(self, value: int, dimension: int, size: int) -> Exception:
        """The exception for a position `value` in a dimension of this size."""
        return self.error(self.message.format(value=value, dimension=dimension, size=size))

    def on_device(self, dimension: int, size: str) -> str:
        """The sentence of an assertion in a GPU kernel, where the position cannot be told."""
        text = self.message.format(value="", dimension=dimension, size=size)
        return " ".join(text.replace("id= ", "").split())


_ELEMENT = "index {value} is out of bounds for dimension {dimension} with size {size}"

_ROWS = (
    Check("row", IndexError, "index out of range in self", False, "embedding, index_select"),
    Check(
        "column",
        RuntimeError,
        "INDICES element is out of DATA bounds, id={value} axis_dim={size}",
        False,
        "index_select along dimension 1",
    ),
    Check("element", RuntimeError, _ELEMENT, False, "gather, scatter_add, index_add"),
    Check("subscript", IndexError, _ELEMENT, True, "x[i] and index_put; -1 is the last"),
    Check("target", IndexError, "Target {value} is out of bounds.", False, "losses of classes"),
)

CHECKS: dict[str, Check] = {row.name: row for row in _ROWS}
