"""Sizes at run time: integers and expressions over symbols, evaluated from the inputs.

In: the fake inputs of a graph and expressions as text (`s0*4`). Out: a function from real inputs to
integers. A symbol's value is read where it stands alone: a dimension, a stride, or an integer input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from compiler_core.autodiff.borrowed import symbol_text

__all__ = ["Sizes", "compile_sizes", "hint_of", "same_sizes"]

Sizes = tuple[int | str, ...]


def same_sizes(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two shapes (or strides) are equal as expressions; asks no question, adds no guard."""
    return [symbol_text(a) for a in left] == [symbol_text(b) for b in right]


def hint_of(size: Any) -> int:
    """A size as it was when the frame was compiled; 64 for one that depends on data."""
    if isinstance(size, int):
        return size
    hint = size.node.hint
    return int(hint) if hint is not None else 64


def compile_sizes(
    sizes: Sequence[int | str], fakes: Sequence[Any]
) -> Callable[[Sequence[Any]], tuple[int, ...]]:
    """A function from the real inputs to the values of `sizes`.

    Raises ValueError, when the function is made, for a symbol that no input shows.
    """
    if all(isinstance(size, int) for size in sizes):
        constant = tuple(int(size) for size in sizes)
        return lambda inputs: constant
    found = _where_symbols_stand(fakes)
    body = f"({', '.join(map(str, sizes))},)"
    names = compile(body, "<sizes>", "eval").co_names
    symbols = [name for name in names if name not in ("max", "min")]
    missing = sorted(set(symbols) - set(found))
    if missing:
        raise ValueError(f"no input shows the value of {', '.join(missing)}")
    reads = ", ".join(found[name] for name in symbols)
    function: Callable[[Sequence[Any]], tuple[int, ...]] = eval(
        f"lambda inputs: (lambda {', '.join(symbols)}: {body})({reads})"
    )
    return function


def _where_symbols_stand(fakes: Sequence[Any]) -> dict[str, str]:
    """Symbol → a Python expression over `inputs` that reads it."""
    found: dict[str, str] = {}
    for number, fake in enumerate(fakes):
        if isinstance(fake, torch.SymInt):
            found.setdefault(str(symbol_text(fake)), f"inputs[{number}]")
        if isinstance(fake, torch.Tensor):
            for name in ("size", "stride"):
                for axis, value in enumerate(getattr(fake, name)()):
                    found.setdefault(str(symbol_text(value)), f"inputs[{number}].{name}({axis})")
    return {name: text for name, text in found.items() if name.isidentifier()}
