"""Names for kernels and what is in them, from the operators that they do.

In: the merged nests in execution order. Out: nests with final names: `add_mul_sum_0` (at most four
words, numbered in order), axes `i0` (outer) and `r0` (inner), and statements under the names they had in
the lowered program.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compiler_core.fuse.blocks import Renaming, adds_in_place, defined, relabel_block, walk
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.reshape import inner_axes
from compiler_core.ir.loop import Nest, Place, Reduce, Store, Value

__all__ = ["kernel_name", "with_final_names"]

_MOST_WORDS = 4

# What tells kernels apart least goes first when a name would be too long.
_TELLS_LITTLE = {
    word: rank
    for rank, words in enumerate(
        (
            "cast",
            "eq ne lt le gt ge not and or isnan isinf",
            "where",
            "neg abs",
            "add sub mul",
            "div",
        )
    )
    for word in words.split()
}


def kernel_name(nest: Nest, number: int) -> str:
    """The operations of a nest in order, the most telling four, and its number."""
    words: dict[str, int] = {}
    for s in walk(nest.body):
        if isinstance(s, Reduce):
            words.setdefault(s.kind, 100)
        elif isinstance(s, Value):
            words.setdefault(s.op, _TELLS_LITTLE.get(s.op, 50))
        elif isinstance(s, Place) and not adds_in_place(nest):
            words.setdefault("gather", 90)
        elif isinstance(s, Store) and s.adds:
            words.setdefault("scatter", 90)
    telling = set(sorted(words, key=lambda word: -words[word])[:_MOST_WORDS])
    chosen = [word for word in words if word in telling] or ["copy"]
    return "_".join([*chosen, str(number)])


def with_final_names(nests: Iterable[Nest], names: Names, taken: Iterable[str]) -> list[Nest]:
    """The nests under kernel names, in the order given. `taken`: names of buffers and sizes."""
    nests = list(nests)
    values = names.restored(name for nest in nests for s in walk(nest.body) if (name := defined(s)))
    used = {*taken, *values.values()}
    return [_renamed(nest, number, values, used) for number, nest in enumerate(nests)]


def _renamed(nest: Nest, number: int, values: dict[str, str], used: set[str]) -> Nest:
    name = _free(kernel_name(nest, number), used)
    axes = {axis.name: _free(f"i{k}", used) for k, axis in enumerate(nest.axes)}
    inner = enumerate(inner_axes(nest.body))
    axes.update({axis.name: _free(f"r{k}", used) for k, axis in inner})
    inside = {n: values[n] for s in walk(nest.body) if (n := defined(s)) and values[n] != n}
    new = Renaming({**inside, **axes})
    return replace(nest, name=name, axes=new.axes(nest.axes), body=relabel_block(nest.body, new))


def _free(name: str, used: set[str]) -> str:
    """The name, lengthened until nothing else has it: a buffer or a value may be called `sum_1` or `i0`."""
    while name in used:
        name = f"{name}_"
    return name
