"""The random numbers of one run, drawn again or given to another run.

In: a seed; the draws of a run in its own types. Out: stages that draw the same numbers, and a run in float64 that
is given these numbers: its own draws would be others, for a generator is read in another way for each dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from compiler_core.randomness import draws_numbers

__all__ = ["Draws", "seeded"]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Default generators start at `seed` inside, and go on as before outside."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


class Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records what random operators gave; then, made with such a record, gives it instead of drawing."""

    def __init__(self, given: list[Any] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.results: list[Any] = []
        self._given = None if given is None else iter(given)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not draws_numbers(func, args, kwargs):
            return result
        if self._given is None:
            self.results.append(pytree.tree_map_only(torch.Tensor, torch.clone, result))
            return result
        return _overwritten(result, next(self._given))


def _overwritten(result: Any, given: Any) -> Any:
    """The result with other numbers in it, so that what was filled in place is filled with these."""
    results, values = pytree.tree_leaves(result), pytree.tree_leaves(given)
    for mine, other in zip(results, values, strict=True):
        mine.copy_(other)
    return result
