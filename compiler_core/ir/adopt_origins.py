"""Give an edited program the origins of the one it was made from.

In: a program without origins (just parsed) and the old one. Out: the new one, where every nest, call,
buffer and statement whose handle is in the old one has its origins; others say that they were edited
in. So a text that was saved, changed and put back can still be followed to the user's lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler_core.ir.loop import Block, Call, Loop, Nest, Program, Reduce, Statement
from compiler_core.ir.text import StatementNames, lines_of
from compiler_core.provenance import Origins, synthetic

__all__ = ["adopt_origins"]

_EDITED = synthetic("edit", "a line that was not in the program")


def adopt_origins(program: Program, like: Program) -> Program:
    """`program` with the origins of the items of the same name in `like`."""
    known = {
        line.name: line.item.origins
        for line in lines_of(like)
        if line.name and line.item is not None
    }
    body = tuple(
        _nest(item, known) if isinstance(item, Nest) else _call(item, known)
        for item in program.body
    )
    buffers = {
        name: replace(buffer, origins=like.buffers[name].origins)
        if name in like.buffers
        else buffer
        for name, buffer in program.buffers.items()
    }
    return replace(program, body=body, buffers=buffers)


def _nest(nest: Nest, known: Mapping[str, Origins]) -> Nest:
    body = _block(nest.body, known, StatementNames(nest.name))
    return replace(nest, body=body, origins=known.get(nest.name, _EDITED))


def _call(call: Call, known: Mapping[str, Origins]) -> Call:
    return replace(call, origins=known.get(call.name, _EDITED))


def _block(block: Block, known: Mapping[str, Origins], names: StatementNames) -> Block:
    return tuple(_statement(statement, known, names) for statement in block)


def _statement(
    statement: Statement, known: Mapping[str, Origins], names: StatementNames
) -> Statement:
    origins = known.get(names.of(statement), _EDITED)
    if isinstance(statement, Reduce | Loop):
        body = _block(statement.body, known, names)
        return replace(statement, body=body, origins=origins)
    return replace(statement, origins=origins)
