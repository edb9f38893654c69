"""What earlier versions of a frame say about the next one: sizes that changed become symbolic.

In: the entries kept of a frame, each with its guard table, and the frame's values now. Out: `Hints`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from compiler_core.capture.dynamic_shapes import SYMBOLIC_NUMBER, Hints
from compiler_core.capture.frames import FrameView
from compiler_core.capture.guard_explain import looked_at
from compiler_core.capture.guard_predicates import active_request
from compiler_core.stages import GuardRow

__all__ = ["hints_from"]


def hints_from(prior: Sequence[Any], view: FrameView) -> Hints:
    """Dimensions whose size is not the one that a version was made for; none under `dynamic=False`."""
    dynamic = active_request().dynamic
    if dynamic is False:
        return Hints({}, len(prior), dynamic=dynamic)
    changed: dict[str, frozenset[int]] = {}
    numbers: set[str] = set()
    for entry in prior:
        scope = {"G": view.globals, **entry.guard_table.namespace, "L": view.locals}
        rows = [r for r, holds in looked_at(entry.guard_table.rows, scope) if holds is not None]
        numbers |= _changed_numbers(rows, scope)
        for source, dims in _changed_sizes(rows, scope).items():
            changed[source] = changed.get(source, frozenset()) | dims
    return Hints(changed, len(prior), frozenset(numbers), dynamic)


def _changed_sizes(rows: list[GuardRow], scope: dict[str, Any]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for row in rows:
        if row.kind != "tensor":
            continue
        sizes = _sizes(row.expected)
        try:
            value = eval(row.source, scope)
        except Exception:
            continue  # the path is gone: nothing to learn from it
        if sizes is None or not isinstance(value, torch.Tensor) or value.dim() != len(sizes):
            continue
        dims = {i for i, n in enumerate(sizes) if n is None or n != value.shape[i]}
        if dims:
            found[row.source] = frozenset(dims)
    return found


def _changed_numbers(rows: list[GuardRow], scope: dict[str, Any]) -> set[str]:
    """Numbers that were compiled in as constants and are other ones now, or were symbolic already."""
    found = set()
    for row in rows:
        is_symbolic = row.kind == "type" and row.reason == SYMBOLIC_NUMBER
        if row.kind != "equals" and not is_symbolic:
            continue
        try:
            value = eval(row.source, scope)
        except Exception:
            continue
        if type(value) not in (int, float):
            continue
        if is_symbolic or _is_other(row.expected, value):
            found.add(row.source)
    return found


def _is_other(expected: str, value: int | float) -> bool:
    """Whether a text is another number of the same type."""
    if isinstance(value, int):
        return expected != repr(value) and expected.lstrip("-").isdigit()
    return expected != repr(value) and _FLOAT.fullmatch(expected) is not None


_FLOAT = re.compile(r"-?(inf|nan|\d+\.\d+|\d+(\.\d+)?e[+-]?\d+)")


def _sizes(expected: str) -> list[int | None] | None:
    """`[2, None]` of 'Tensor float32 [2, *] strides …'."""
    start, end = expected.find("["), expected.find("]")
    if start < 0 or end < 0:
        return None
    parts = [part.strip() for part in expected[start + 1 : end].split(",") if part.strip()]
    return [None if part == "*" else int(part) for part in parts]
