"""Turns a workspace into `Fused`: order, final names, strategies, buffers.

In: groups that will not be merged any further, and calls. Out: the stage's value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler_core.fuse.accesses import read_buffers, written_buffers
from compiler_core.fuse.blocks import body_of, expressions, walk, with_body
from compiler_core.fuse.buffers import last_uses, live_buffers, plan_reuse
from compiler_core.fuse.coalesce import coalesce
from compiler_core.fuse.copies import name_readers_of_copies
from compiler_core.fuse.names import with_final_names
from compiler_core.fuse.order import execution_order
from compiler_core.fuse.start import call_with_own_handle, makers_of
from compiler_core.fuse.strategy import strategy_of
from compiler_core.fuse.tidy import tidy
from compiler_core.fuse.viewed import viewed_buffers
from compiler_core.fuse.workspace import Group, Workspace
from compiler_core.ir.loop import Block, Load, Loop, Nest, Program, Reduce, Statement, Store
from compiler_core.provenance import Origins
from compiler_core.stages import Fused, Kernel

__all__ = ["finish"]


def finish(work: Workspace) -> Fused:
    """The fused program with its kernels and buffer plan."""
    nodes = execution_order(work)
    groups = [node for node in nodes if isinstance(node, Group)]
    taken = [*work.program.buffers, *work.program.symbols]
    nests = with_final_names((_settled(group.nest) for group in groups), work.names, taken)
    nests = name_readers_of_copies(_with_readers(nests), work.halved)
    finished = iter(nests)
    body = tuple(
        next(finished) if isinstance(node, Group) else call_with_own_handle(node, work.part)
        for node in nodes
    )
    buffers = live_buffers(work.program.buffers, body)
    program = replace(work.program, body=body, buffers=buffers)
    kernels = [_kernel(nest, group, program) for nest, group in zip(nests, groups, strict=True)]
    last_use = last_uses(body, _alive_at_the_end(program))
    makers = makers_of(work.program, work.part)
    reuse = plan_reuse(buffers, body, last_use, makers, work.context)
    by_name = {kernel.name: kernel for kernel in kernels}
    return Fused(program, by_name, reuse, last_use, work.target, work.part)


def _alive_at_the_end(program: Program) -> set[str]:
    """Buffers that are returned, and arguments that are updated then, with what they are updated by."""
    seen = {name for name, buffer in program.buffers.items() if buffer.role in ("out", "const")}
    for result in (*program.outputs, *(name for pair in program.mutated for name in pair)):
        seen.update([result] if isinstance(result, str) else viewed_buffers((result,)))
    return seen


def _settled(nest: Nest) -> Nest:
    """The final axes; loops that coalescing made alike are merged once more."""
    nest = coalesce(nest)
    return coalesce(tidy(nest, lambda buffer: True))


def _kernel(nest: Nest, group: Group, program: Program) -> Kernel:
    names = frozenset().union(
        *(axis.extent.names for axis in nest.axes),
        *(e.names for s in walk(nest.body) for e in expressions(s)),
    )
    symbols = tuple(name for name in program.symbols if name in names)
    reads, writes = read_buffers(nest), written_buffers(nest)
    return Kernel(nest.name, strategy_of(nest), reads, writes, symbols, group.members)


# ---------------------------------------------------------------------------------- stores name their readers


def _with_readers(nests: list[Nest]) -> list[Nest]:
    """Each store's origins with those of the loads, in other kernels, that read the buffer."""
    readers: dict[str, Origins] = {}
    for nest in nests:
        for s in walk(nest.body):
            if isinstance(s, Load):
                readers[s.buffer] = readers.get(s.buffer, frozenset()) | s.origins
    return [replace(nest, body=_naming(nest.body, readers)) for nest in nests]


def _naming(block: Block, readers: Mapping[str, Origins]) -> Block:
    return tuple(_naming_one(s, readers) for s in block)


def _naming_one(s: Statement, readers: Mapping[str, Origins]) -> Statement:
    if isinstance(s, Reduce | Loop):
        return with_body(s, _naming(body_of(s), readers))
    if isinstance(s, Store) and s.buffer in readers:
        return replace(s, origins=s.origins | readers[s.buffer])
    return s
