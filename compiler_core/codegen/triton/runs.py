"""Which loops over tiles share a pass: what may be written before what.

In: statements in program order. Out: a `Run` of loops, and whether the next statement may go before its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compiler_core.codegen.statement_handles import statements_of
from compiler_core.ir.loop import Load, Loop, Reduce, Statement, Store, Value

__all__ = ["Inner", "Run"]

Inner = Reduce | Loop


@dataclass(slots=True)
class Run:
    """Loops that will share a pass, and the statements after them that wait for it."""

    loops: list[Inner] = field(default_factory=list)
    waiting: list[Statement] = field(default_factory=list)

    def allows(self, new: Statement) -> bool:
        """Whether a statement may be written before the run ends.

        It uses no result of the run, and no buffer that one of them stores to and the other touches.
        """
        mine = [*self.loops, *self.waiting]
        results = {s.name for s in mine if not isinstance(s, Loop | Store)}
        stored, touched = _buffers(mine)
        new_stored, new_touched = _buffers([new])
        return not (results & _names_used(new) or stored & new_touched or new_stored & touched)


def _buffers(statements: Iterable[Statement]) -> tuple[set[str], set[str]]:
    """Buffers that the statements store to; all that they touch."""
    inside = list(statements_of(tuple(statements)))
    stored = {n.buffer for n in inside if isinstance(n, Store)}
    return stored, stored | {n.buffer for n in inside if isinstance(n, Load)}


def _names_used(s: Statement) -> set[str]:
    used = {s.value} if isinstance(s, Reduce) else set()
    for n in statements_of((s,)):
        match n:
            case Value(args=args):
                used.update(args)
            case Load(offset=offset, mask=mask):
                used |= offset.names | ({mask} if mask else set())
            case Store(offset=offset, value=value):
                used |= offset.names | {value}
            case Reduce(value=value):
                used.add(value)
        if not isinstance(n, Reduce | Loop) and hasattr(n, "index"):
            used |= n.index.names
    return used
