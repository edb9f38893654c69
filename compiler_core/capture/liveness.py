"""Which locals may still be read from a place in a code object on.

In: a decoded code object and an offset. Out: names. Backward dataflow over the canonical
instructions, exception handlers included. What is not live is not carried over a break.
"""

from __future__ import annotations

from types import CodeType

from compiler_core.capture.by_code import ByCode
from compiler_core.capture.normalise import Decoded, decode
from compiler_core.provenance import Instruction

__all__ = ["live_names"]

_READS = ("LOAD_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST")
_ENDS = ("RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP")


def live_names(code: CodeType, offset: int) -> frozenset[str]:
    """Locals that may be read at or after the instruction group at `offset`."""
    return _LIVE.made(code, _live)[decode(code).index_of_offset[offset]]


_LIVE: ByCode[tuple[frozenset[str], ...]] = ByCode()


def _live(code: CodeType) -> tuple[frozenset[str], ...]:
    decoded = decode(code)
    live: list[frozenset[str]] = [frozenset()] * len(decoded.instructions)
    changed = True
    while changed:
        changed = False
        for index in range(len(live) - 1, -1, -1):
            new = _before(decoded, live, index)
            if new != live[index]:
                live[index], changed = new, True
    return tuple(live)


def _before(decoded: Decoded, live: list[frozenset[str]], index: int) -> frozenset[str]:
    i = decoded.instructions[index]
    out = frozenset[str]().union(*(live[n] for n in _successors(decoded, i, index)))
    if i.op == "STORE_FAST":
        out -= {i.arg}
    if i.op in _READS:
        out |= {i.arg}
    handler = decoded.handler(i.offset)
    return out | live[decoded.index_of_offset[handler.target]] if handler is not None else out


def _successors(decoded: Decoded, i: Instruction, index: int) -> list[int]:
    found = [] if i.op in _ENDS or index + 1 == len(decoded.instructions) else [index + 1]
    if i.target is not None:
        found.append(decoded.index_of_offset[i.target])
    return found
