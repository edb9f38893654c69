"""A program is called, something changes, it is called again: it must equal plain Python, and notice.

`notices(make)` does that for a row; a row's `make()` gives a `Row` whose parts are made afresh each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import compiler_core as cc


@dataclass
class Row:
    """`change` happens after the first call; `then` are the second call's arguments, if others; `undo` ends it."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    change: Callable[[], Any] = lambda: None
    then: tuple[Any, ...] | None = None
    undo: Callable[[], Any] = lambda: None


def notices(make: Callable[[], Row], backend: str = "eager", needs_version: bool = True) -> None:
    """Both calls equal plain Python's, the change shows in plain Python, and it made a new version.

    needs_version: False where the compiled version reads what changed.
    """
    want, _ = _calls(make, None)
    got, stats = _calls(make, backend)
    assert _same(got, want), f"\ngot  {got}\nwant {want}"
    assert stats.fallbacks == 0 and stats.graphs > 0
    assert (
        not needs_version
        or stats.recompiles + stats.breaks + stats.skipped_frames > 0
        or stats.graphs > 1
    )
    assert not _same(want[0], want[1]), "the change is not seen in plain Python either"


def _calls(make: Callable[[], Row], backend: str | None) -> tuple[tuple[Any, Any], Any]:
    cc.reset()
    torch.manual_seed(0)
    row = make()
    fn = cc.compile(row.fn, backend=backend, options={"strict": True}) if backend else row.fn
    first = _outcome(fn, row.fn, row.args)
    try:
        row.change()
        return (first, _outcome(fn, row.fn, row.then or row.args)), cc.stats()
    finally:
        row.undo()


def _outcome(fn: Callable[..., Any], source: Any, args: tuple[Any, ...]) -> Any:
    try:
        result = fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    return (
        _seen(result),
        _gradients(result, source, args),
        _seen([a for a in args if isinstance(a, torch.Tensor)]),
    )


def _gradients(result: Any, source: Any, args: tuple[Any, ...]) -> Any:
    if not isinstance(result, torch.Tensor) or not result.requires_grad:
        return None
    parameters = source.parameters() if isinstance(source, torch.nn.Module) else ()
    wanted = [t for t in (*args, *parameters) if isinstance(t, torch.Tensor) and t.requires_grad]
    return _seen(torch.autograd.grad(result.sum(), wanted, allow_unused=True))


def _seen(value: Any) -> Any:
    """All that a program can see of a value, as plain data."""
    if isinstance(value, torch.Tensor):
        numbers = (
            None if value.is_meta else value.detach().double().as_subclass(torch.Tensor).tolist()
        )
        facts = (
            value.dtype,
            value.device.type,
            value.stride(),
            value.requires_grad,
            value.is_inference(),
        )
        return (type(value).__name__, *facts, numbers)
    return tuple(map(_seen, value)) if isinstance(value, (tuple, list)) else value


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, (tuple, list)) and isinstance(two, (tuple, list)):
        return len(one) == len(two) and all(map(_same, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one == two or (one != one and two != two) or math.isclose(one, two, rel_tol=1e-5)
    return bool(one == two)
