"""Bytecode of the running CPython → the canonical dialect (`dialect.py`).

In: a code object. Out: `Decoded`, its instructions with spans, the offsets they start at, and the
exception table. Pure, and remembered for each code object. What a version writes is in
`versions/`; here is only how a row is applied.

A *group* is what one offset stands for: `KW_NAMES, PRECALL, CALL` of 3.11 is one `CALL`, a
`LOAD_METHOD` is `LOAD_ATTR, PUSH_NULL, SWAP`. All instructions of a group carry the offset of its
first code unit (an EXTENDED_ARG included), where a graph break falls and a resume enters.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import Any

from compiler_core.capture.by_code import ByCode
from compiler_core.capture.dialect import ExceptionEntry
from compiler_core.capture.versions import CURRENT
from compiler_core.capture.versions.table import Step
from compiler_core.provenance import Instruction, Span

__all__ = [
    "ARGUMENTS",
    "Decoded",
    "decode",
    "exception_table",
    "instructions",
    "opcode_at",
]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A code object in the dialect.

    index_of_offset: offset of a group (or of any code unit in it) → index of its first instruction.
    last: offset of a group → offset of its last physical instruction, the one that does the work.
    after: offset of a group → offset of the group behind it (absent for the last).
    """

    instructions: tuple[Instruction, ...]
    index_of_offset: dict[int, int]
    table: tuple[ExceptionEntry, ...]
    last: dict[int, int]
    after: dict[int, int]

    def group(self, offset: int) -> tuple[Instruction, ...]:
        """The instructions that one offset stands for."""
        first = self.index_of_offset[offset]
        start = self.instructions[first].offset
        rest = self.instructions[first:]
        return tuple(i for n, i in enumerate(rest) if i.offset == start and n < 8)

    def handler(self, offset: int) -> ExceptionEntry | None:
        """The exception table entry in force at an offset."""
        return next((e for e in self.table if e.start <= offset < e.end), None)

    def is_in_try(self, offset: int) -> bool:
        """Does code of the user's run when an exception is raised here?

        From CPython 3.12 the whole body of a generator has a handler that only converts StopIteration.
        """
        entry = self.handler(offset)
        if entry is None:
            return False
        first = self.instructions[self.index_of_offset[entry.target]]
        return not (first.op == "CALL_INTRINSIC_1" and "STOPITERATION_ERROR" in str(first.arg))


def instructions(code: CodeType) -> tuple[Instruction, ...]:
    """The instructions of a code object, in the dialect."""
    return decode(code).instructions


def exception_table(code: CodeType) -> tuple[ExceptionEntry, ...]:
    """The protected ranges, in the order they are searched."""
    return decode(code).table


def decode(code: CodeType) -> Decoded:
    """A code object in the dialect. An opcode that is not supported becomes UNSUPPORTED."""
    return _DECODED.made(code, _decode)


_DECODED: ByCode[Decoded] = ByCode()


def opcode_at(code: CodeType, offset: int) -> str:
    """The name that this CPython gives to the instruction at an offset."""
    return dis.opname[code.co_code[offset]]


def _decode(code: CodeType) -> Decoded:
    body = _Physical.of(code)
    groups = list(_groups(body.units))
    found: list[Instruction] = []
    index_of_offset: dict[int, int] = {}
    for group in groups:
        index_of_offset.update(dict.fromkeys(group.offsets, len(found)))
        found += _expand(group, body)
    starts = [group.offsets[0] for group in groups]
    return Decoded(
        tuple(found),
        index_of_offset,
        _exception_entries(code),
        {group.offsets[0]: group.parts[-1].offset for group in groups},
        dict(pairwise(starts)),
    )


def _exception_entries(code: CodeType) -> tuple[ExceptionEntry, ...]:
    parse: Callable[[CodeType], Any] = dis._parse_exception_table  # type: ignore[attr-defined]
    return tuple(ExceptionEntry(e.start, e.end, e.target, e.depth, e.lasti) for e in parse(code))


# ------------------------------------------------------------------------------ groups


@dataclass(frozen=True, slots=True)
class _Physical:
    """A code object as CPython wrote it. `units` are its instructions, EXTENDED_ARG among them."""

    code: CodeType
    units: tuple[dis.Instruction, ...]
    position: dict[int, int]  # offset → position in `units`
    prologue: int  # offset of the first RESUME: before it, cells are made
    cells: frozenset[str]

    @classmethod
    def of(cls, code: CodeType) -> _Physical:
        units = tuple(i for i in dis.get_instructions(code) if i.opname != "CACHE")
        resume = next((i.offset for i in units if i.opname == "RESUME"), 0)
        position = {i.offset: n for n, i in enumerate(units)}
        cells = frozenset(code.co_cellvars + code.co_freevars)
        return cls(code, units, position, resume, cells)

    def behind(self, offset: int, opcode: str) -> int:
        """The offset behind the instruction `opcode`, which is at `offset`."""
        here, after = self.units[self.position[offset] :][:2]
        if here.opname != opcode:
            raise AssertionError(f"{opcode} expected at {offset}, found {here.opname}")
        return after.offset


@dataclass(frozen=True, slots=True)
class _Group:
    """Physical instructions that decode together, and the offsets of all their code units."""

    parts: tuple[dis.Instruction, ...]
    offsets: tuple[int, ...]


def _groups(units: tuple[dis.Instruction, ...]) -> Iterator[_Group]:
    position = 0
    while position < len(units):
        size = _size(units, position)
        taken = units[position : position + size]
        parts = tuple(i for i in taken if i.opname != "EXTENDED_ARG")
        yield _Group(parts, tuple(i.offset for i in taken))
        position += size


def _size(units: tuple[dis.Instruction, ...], position: int) -> int:
    """How many units the group at a position takes: the longest pattern that fits, or one opcode."""
    for pattern in CURRENT.groups:
        end = _end(units, position, pattern)
        if end is not None:
            return end - position
    end = position
    while units[end].opname == "EXTENDED_ARG":
        end += 1
    return end + 1 - position


def _end(units: tuple[dis.Instruction, ...], start: int, pattern: tuple[str, ...]) -> int | None:
    """Where the opcodes of a pattern end, if they stand at `start`."""
    end = start
    for name in pattern:
        while end < len(units) and units[end].opname == "EXTENDED_ARG":
            end += 1
        if end == len(units) or units[end].opname != name:
            return None
        end += 1
    return end


# ------------------------------------------------------------------------------ one group


def _expand(group: _Group, body: _Physical) -> Iterator[Instruction]:
    worker, offset = group.parts[-1], group.offsets[0]
    span = _span(worker, body.code)
    refused = _refusal(worker, body)
    if refused:
        yield Instruction("UNSUPPORTED", refused, offset, None, span)
        return
    target = _target(worker, body)
    for step in CURRENT.rows[worker.opname]:
        if CONDITIONS[step.when](worker):
            op, arg = step.op, _argument(step, group, body.code)
            if op == "LOAD_FAST" and arg in body.cells:
                op = "LOAD_CLOSURE"
            yield Instruction(op, arg, offset, target if op in _JUMPING else None, span)


_JUMPING = frozenset(
    ("JUMP", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE",
     "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "FOR_ITER", "SEND")
)  # fmt: skip


def _refusal(worker: dis.Instruction, body: _Physical) -> str | None:
    """Why a group is UNSUPPORTED, or None."""
    reason = CURRENT.reason(worker.opname)
    if reason:
        return f"{worker.opname}: {reason}"
    if worker.opname not in CURRENT.rows:
        return f"{worker.opname}: it has no meaning without the call behind it"
    late_cell = worker.opname == "MAKE_CELL" and worker.offset > body.prologue
    cleared = worker.opname == "LOAD_FAST_AND_CLEAR" and worker.argval in body.cells
    if late_cell or cleared:
        return f"{worker.opname}: a closure keeps a variable of an inlined comprehension"
    return None


def _target(worker: dis.Instruction, body: _Physical) -> int | None:
    """Where a jump goes on: past the instructions that only tidy up after a loop."""
    if worker.opcode not in _jump_opcodes():
        return None
    target: int = worker.argval
    for opcode in CURRENT.skipped_after.get(worker.opname, ()):
        target = body.behind(target, opcode)
    return target


@functools.cache
def _jump_opcodes() -> frozenset[int]:
    return frozenset((*dis.hasjrel, *dis.hasjabs))


def _span(worker: dis.Instruction, code: CodeType) -> Span | None:
    """The source of an instruction; columns are 0 where CPython was told to drop them (-X)."""
    at = worker.positions
    if at is None or at.lineno is None:
        return None
    end = at.end_lineno or at.lineno
    return Span(code.co_filename, at.lineno, end, at.col_offset or 0, at.end_col_offset or 0)


# ------------------------------------------------------------------------------ arguments


def _argument(step: Step, group: _Group, code: CodeType) -> Any:
    if step.argument == "fixed":
        return step.value
    if step.argument == "call":
        return group.parts[-1].arg, _keywords(group.parts[0], code)
    return ARGUMENTS[step.argument](group.parts[-1])


def _keywords(first: dis.Instruction, code: CodeType) -> tuple[str, ...]:
    """The keyword names of a call, from the instruction that begins its group."""
    is_named = first.opname in ("KW_NAMES", "LOAD_CONST")
    names: tuple[str, ...] = code.co_consts[first.arg or 0] if is_named else ()
    return names


def _format(i: dis.Instruction) -> tuple[str | None, bool]:
    return CONVERSIONS[(i.arg or 0) & 3], bool((i.arg or 0) & 4)


CONVERSIONS = (None, "str", "repr", "ascii")

ARGUMENTS: dict[str, Callable[[dis.Instruction], Any]] = {
    "none": lambda i: None,
    "value": lambda i: i.argval,
    "number": lambda i: i.arg or 0,
    "flag": lambda i: bool((i.arg or 0) & 1),
    "first": lambda i: i.argval[0],
    "second": lambda i: i.argval[1],
    "operator": lambda i: i.argrepr,
    "intrinsic": lambda i: i.argrepr,
    "before_after": lambda i: ((i.arg or 0) & 0xFF, (i.arg or 0) >> 8),
    "format": _format,
    "conversion": lambda i: (CONVERSIONS[i.arg or 0], False),
    "no_spec": lambda i: (None, False),
    "with_spec": lambda i: (None, True),
}

CONDITIONS: dict[str, Callable[[dis.Instruction], bool]] = {
    "always": lambda i: True,
    "low": lambda i: bool((i.arg or 0) & 1),
    "bool": lambda i: bool((i.arg or 0) & 16),
    "plain": lambda i: not (i.arg or 0) & 16,
    "subscript": lambda i: i.argrepr == "[]",
    "operator": lambda i: i.argrepr != "[]",
}
