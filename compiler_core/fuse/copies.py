"""Values that fusion computes in several places name what each place computes them for.

Requires final nests. Establishes: where a lowered statement stands in the kernels more than once, each
copy has, beside its own handle, the handles of the statements that read it there (through further
copies, down to statements that stand once). Keeps everything else.

An edit of a reader can add or remove such a copy: what made it is the value's operator and the reader.
A reduction that was split stands in two kernels too, but each half stands once and whoever reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from compiler_core.fuse.blocks import body_of, defined, index_names, value_names, walk, with_body
from compiler_core.ir.loop import Block, Loop, Nest, Reduce, Statement
from compiler_core.provenance import NOWHERE, Handle, Origins

__all__ = ["name_readers_of_copies"]


def name_readers_of_copies(nests: Sequence[Nest], halved: Collection[Handle]) -> list[Nest]:
    """The nests, copies with their readers' handles. `halved`: handles of reductions that were split."""
    times = Counter(h for nest in nests for s in walk(nest.body) for h in s.origins - {*halved})
    return [replace(nest, body=_noted(nest.body, times, {})) for nest in nests]


def _noted(block: Block, times: Counter[str], readers: dict[str, Origins]) -> Block:
    """From the end, so that the readers of a value are known when it is met. `readers`: by value name."""
    noted: list[Statement] = []
    for s in reversed(block):
        purpose = readers.get(defined(s) or "", NOWHERE)
        is_copy = any(times[h] > 1 for h in s.origins) and bool(purpose)
        passed_on = purpose if is_copy else s.origins
        for name in (*value_names(s), *index_names(s)):
            readers[name] = readers.get(name, NOWHERE) | passed_on
        if isinstance(s, Reduce | Loop):
            s = with_body(s, _noted(body_of(s), times, readers))
        noted.append(replace(s, origins=s.origins | purpose) if is_copy else s)
    return tuple(reversed(noted))
