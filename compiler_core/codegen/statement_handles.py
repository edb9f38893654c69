"""The handle of each statement of a kernel, as provenance names it.

In: a nest of a `Fused` and its part. Out: a lookup from statement to `fuse:<part>/<kernel>.<name>`.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler_core.ir.loop import Block, Loop, Nest, Reduce, Statement
from compiler_core.ir.text import named_statements
from compiler_core.provenance import Handle, Origins, handle

__all__ = ["StatementHandles", "statements_of"]


def statements_of(block: Block) -> Iterator[Statement]:
    """Every statement of a block and of the blocks inside, in the order of the text."""
    for statement in block:
        yield statement
        if isinstance(statement, Reduce | Loop):
            yield from statements_of(statement.body)


class StatementHandles:
    """Statements of one nest by identity: two equal stores are two statements."""

    def __init__(self, nest: Nest, part: str):
        self.nest: Handle = handle("fuse", f"{part}/{nest.name}")
        self._named = list(named_statements(nest))  # held, so that ids stay theirs
        self._of = {id(item): f"{self.nest}.{name}" for name, item in self._named}

    def __getitem__(self, statement: Statement) -> Handle:
        return self._of[id(statement)]

    def within(self, block: Block) -> Origins:
        """Handles of all statements of a block."""
        return frozenset(self[statement] for statement in statements_of(block))
