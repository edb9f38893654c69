"""Turns a lowered program into a workspace: one group per nest, every origin a handle of `lower`.

In: `Lowered`. Out: `Workspace`. Each statement's origins become its own handle in the lowered program
(`lower:<part>/<nest>.<statement>`), from here on only united. Long reductions are split. Axes are
coalesced once, so that nests over the same elements meet in the same form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import torch

from compiler_core.fuse.accesses import read_buffers, written_buffers
from compiler_core.fuse.blocks import defined, walk, with_body
from compiler_core.fuse.coalesce import coalesce
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.reshape import inner_axes
from compiler_core.fuse.split import split_reductions
from compiler_core.fuse.viewed import viewed_buffers
from compiler_core.fuse.workspace import Workspace
from compiler_core.ir.loop import Block, Call, Loop, Nest, Program, Reduce, Statement, View
from compiler_core.ir.text import named_statements
from compiler_core.options import Context
from compiler_core.provenance import Handle, handle
from compiler_core.stages import Lowered

__all__ = ["call_with_own_handle", "makers_of", "start"]


def start(lowered: Lowered, context: Context, forbid: frozenset[frozenset[str]]) -> Workspace:
    """The workspace of a program in which nothing is merged yet."""
    program = lowered.program
    work = Workspace(
        program, lowered.part, lowered.target, context, Names(_all_names(program)), forbid
    )
    work.kept, work.fixed = _escaping(program), _written_in_place(program)
    work.places = {item.name: place for place, item in enumerate(program.body)}
    for place, item in enumerate(program.body):
        if isinstance(item, Call):
            work.add_call(item)
            continue
        for nest in split_reductions(work, _with_own_handles(item, lowered.part)):
            nest = coalesce(nest)
            work.add(nest, (item.name,), place)
            work.maker.update(dict.fromkeys(written_buffers(nest), item.name))
            for buffer in read_buffers(nest):
                work.takers[buffer] = (*work.takers.get(buffer, ()), item.name)
    work.following = _kept_order(work)
    work.find_reachability()
    return work


def _all_names(program: Program) -> set[str]:
    names = {*program.buffers, *program.symbols, *(item.name for item in program.body)}
    for nest in program.body:
        if isinstance(nest, Nest):
            names.update(axis.name for axis in (*nest.axes, *inner_axes(nest.body)))
            names.update(name for s in walk(nest.body) if (name := defined(s)))
    return names


def _with_own_handles(nest: Nest, part: str) -> Nest:
    own = {
        id(s): frozenset({handle("lower", f"{part}/{nest.name}.{name}")})
        for name, s in named_statements(nest)
    }

    def named(block: Block) -> Block:
        return tuple(_owned(s) for s in block)

    def _owned(s: Statement) -> Statement:
        origins = own[id(s)]
        if isinstance(s, Reduce | Loop):
            s = with_body(s, named(s.body))
        return replace(s, origins=origins)

    origins = frozenset({handle("lower", f"{part}/{nest.name}")})
    return replace(nest, body=named(nest.body), origins=origins)


def call_with_own_handle(call: Call, part: str) -> Call:
    return replace(call, origins=frozenset({handle("lower", f"{part}/{call.name}")}))


def makers_of(program: Program, part: str) -> dict[str, Handle]:
    """For each buffer that the program fills, the handle of the store or call that does."""
    makers: dict[str, Handle] = {}
    for item in program.body:
        if isinstance(item, Call):
            own = handle("lower", f"{part}/{item.name}")
            makers.update(dict.fromkeys([b for b in item.outputs if b], own))
        else:
            for buffer in written_buffers(item):
                makers[buffer] = handle("lower", f"{part}/{item.name}.store_{buffer}")
    return makers


def _escaping(program: Program) -> frozenset[str]:
    """Buffers that somebody outside the nests and calls sees: outputs, new values of arguments."""
    names = {buffer.name for buffer in program.buffers.values() if buffer.role != "temp"}
    for output in (*program.outputs, *(value for _, value in program.mutated)):
        if isinstance(output, str):
            names.add(output)
        elif isinstance(output, View):
            names.add(output.buffer)
    return frozenset(names)


def _written_in_place(program: Program) -> frozenset[str]:
    """Buffers that several items write, or that a nest both reads and writes."""
    writers: Counter[str] = Counter()
    both: set[str] = set()
    for item in program.body:
        if isinstance(item, Call):
            writers.update(b for b in item.outputs if b)
        else:
            writers.update(written_buffers(item))
            both |= set(written_buffers(item)) & set(read_buffers(item))
    return frozenset(both.union(name for name, count in writers.items() if count > 1))


def _kept_order(work: Workspace) -> dict[int, frozenset[int]]:
    """Order that no buffer shows: random calls among each other, and users of buffers written twice."""
    after: dict[int, set[int]] = {}
    calls = [
        n for n, node in sorted(work.nodes.items()) if isinstance(node, Call) and _is_ordered(node)
    ]
    for first, second in pairwise(calls):
        after.setdefault(first, set()).add(second)
    for buffer in sorted(work.fixed):
        for first, second in _order_around(work, buffer):
            after.setdefault(first, set()).add(second)
    return {number: frozenset(numbers) for number, numbers in after.items()}


def _order_around(work: Workspace, buffer: str) -> Iterator[tuple[int, int]]:
    """Pairs in order: who writes the buffer with who reads or writes it next; readers with the next writer."""
    writer: int | None = None
    readers: list[int] = []
    for number, node in sorted(work.nodes.items()):
        is_call = isinstance(node, Call)
        reads = viewed_buffers((node.args, node.kwargs)) if isinstance(node, Call) else node.reads
        writes = node.outputs if isinstance(node, Call) else node.writes
        if buffer not in reads and buffer not in writes:
            continue
        if writer is not None:
            yield writer, number
        if buffer in writes or (is_call and _is_ordered(node)):  # type: ignore[arg-type]
            yield from ((reader, number) for reader in readers)
            writer, readers = number, []
        else:
            readers.append(number)


def _is_ordered(call: Call) -> bool:
    """Whether a call does more than fill its outputs: draws random numbers, or writes something."""
    packet: object = torch.ops
    for part in call.target.split("."):
        packet = getattr(packet, part, None)
    if not isinstance(packet, torch._ops.OpOverload):
        return True
    return torch.Tag.nondeterministic_seeded in packet.tags or packet._schema.is_mutable
