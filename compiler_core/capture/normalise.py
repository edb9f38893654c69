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

from compiler_core.capture.dialect import ExceptionEntry, Instruction
from compiler_core.capture.versions import CURRENT
from compiler_core.capture.versions.table import Step, Version
from compiler_core.provenance import Span

__all__ = [
    "ARGUMENTS",
    "Decoded",
    "decode",
    "exception_table",
    "instructions",
    "opcode_at",
    "same_code",
]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A code object in the dialect.

    index_of_offset: offset of a group (or of any code unit in it) → index of its first instruction.
    last: offset of a group → offset of its last physical instruction, the one that does the work.
    after: offset of a group → offset of the group behind it (absent for the last).
    """

    code: CodeType
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


def instructions(code: CodeType) -> tuple[Instruction, ...]:
    """The instructions of a code object, in the dialect."""
    return decode(code).instructions


def exception_table(code: CodeType) -> tuple[ExceptionEntry, ...]:
    """The protected ranges, in the order they are searched."""
    return decode(code).table


def decode(code: CodeType) -> Decoded:
    """A code object in the dialect. An opcode that is not supported becomes UNSUPPORTED."""
    return _decode(same_code(code))


def opcode_at(code: CodeType, offset: int) -> str:
    """The name that this CPython gives to the instruction at an offset."""
    return dis.opname[code.co_code[offset]]


@dataclass(frozen=True, slots=True, eq=False)
class _Code:
    """A code object as a key by identity: equal ones may come from different files."""

    code: CodeType

    def __hash__(self) -> int:
        return id(self.code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.code is self.code


same_code = _Code


@functools.lru_cache(maxsize=2048)
def _decode(key: _Code) -> Decoded:
    code = key.code
    groups = list(_groups(code, CURRENT))
    found: list[Instruction] = []
    index_of_offset: dict[int, int] = {}
    for group in groups:
        index_of_offset.update(dict.fromkeys(group.offsets, len(found)))
        found += _expand(group, code, CURRENT)
    starts = [group.offsets[0] for group in groups]
    return Decoded(
        code,
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
class _Group:
    """Physical instructions that decode together, and the offsets of all their code units."""

    parts: tuple[dis.Instruction, ...]
    offsets: tuple[int, ...]


def _groups(code: CodeType, version: Version) -> Iterator[_Group]:
    physical = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    position = 0
    while position < len(physical):
        size = _size(physical, position, version)
        units = physical[position : position + size]
        parts = tuple(i for i in units if i.opname != "EXTENDED_ARG")
        yield _Group(parts, tuple(i.offset for i in units))
        position += size


def _size(physical: list[dis.Instruction], position: int, version: Version) -> int:
    """How many physical instructions, EXTENDED_ARG among them, the group at a position takes."""
    for pattern in (*version.groups, (None,)):
        end = position
        for name in pattern:
            while physical[end].opname == "EXTENDED_ARG":
                end += 1
            if name is not None and physical[end].opname != name:
                break
            end += 1
            if end == len(physical) and name != pattern[-1]:
                break
        else:
            return end - position
    raise AssertionError("the pattern of one instruction always fits")


# ------------------------------------------------------------------------------ one group


def _expand(group: _Group, code: CodeType, version: Version) -> Iterator[Instruction]:
    worker, offset = group.parts[-1], group.offsets[0]
    span = _span(worker, code)
    refused = _refusal(group, code, version)
    if refused:
        yield Instruction("UNSUPPORTED", refused, offset, None, span)
        return
    target = _target(worker, code, version)
    for step in version.rows[worker.opname]:
        if CONDITIONS[step.when](worker):
            op, arg = step.op, _argument(step, group, code, version)
            if op == "LOAD_FAST" and arg in code.co_cellvars + code.co_freevars:
                op = "LOAD_CLOSURE"
            jump = target if op in _JUMPING else None
            yield Instruction(op, arg, offset, jump, span)


_JUMPING = frozenset(
    ("JUMP", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE",
     "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "FOR_ITER", "SEND")
)  # fmt: skip


def _refusal(group: _Group, code: CodeType, version: Version) -> str | None:
    """Why a group is UNSUPPORTED, or None."""
    worker = group.parts[-1]
    reason = version.reason(worker.opname)
    if reason:
        return f"{worker.opname}: {reason}"
    if worker.opname not in version.rows:
        return f"{worker.opname}: it has no meaning without the call behind it"
    cells = code.co_cellvars + code.co_freevars
    late_cell = worker.opname == "MAKE_CELL" and worker.offset > first_resume(code)
    cleared = worker.opname == "LOAD_FAST_AND_CLEAR" and worker.argval in cells
    if late_cell or cleared:
        return f"{worker.opname}: a closure keeps a variable of an inlined comprehension"
    return None


def first_resume(code: CodeType) -> int:
    """Offset of the first RESUME: before it lies the prologue, which makes cells."""
    return next((i.offset for i in dis.get_instructions(code) if i.opname == "RESUME"), 0)


def _target(worker: dis.Instruction, code: CodeType, version: Version) -> int | None:
    """Where a jump goes on: past the instructions that only tidy up after a loop."""
    if worker.opcode not in _jump_opcodes():
        return None
    target: int = worker.argval
    for name in version.skipped_after.get(worker.opname, ()):
        target = _following(code, target, name)
    return target


def _following(code: CodeType, offset: int, name: str) -> int:
    """The offset behind the instruction `name` that is at an offset."""
    after = [i for i in dis.get_instructions(code) if i.offset >= offset]
    if after[0].opname != name:
        raise AssertionError(f"{name} expected at {offset}, found {after[0].opname}")
    return after[1].offset


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


def _argument(step: Step, group: _Group, code: CodeType, version: Version) -> Any:
    if step.argument == "fixed":
        return step.value
    if step.argument == "call":
        return group.parts[-1].arg, _keywords(group.parts[0], code)
    return ARGUMENTS[step.argument](group.parts[-1], version)


def _keywords(first: dis.Instruction, code: CodeType) -> tuple[str, ...]:
    """The keyword names of a call, from the instruction that begins its group."""
    is_named = first.opname in ("KW_NAMES", "LOAD_CONST")
    names: tuple[str, ...] = code.co_consts[first.arg or 0] if is_named else ()
    return names


def _format(i: dis.Instruction, version: Version) -> tuple[str | None, bool]:
    return version.conversions[(i.arg or 0) & 3], bool((i.arg or 0) & 4)


ARGUMENTS: dict[str, Callable[[dis.Instruction, Version], Any]] = {
    "none": lambda i, v: None,
    "value": lambda i, v: i.argval,
    "number": lambda i, v: i.arg or 0,
    "flag": lambda i, v: bool((i.arg or 0) & 1),
    "first": lambda i, v: i.argval[0],
    "second": lambda i, v: i.argval[1],
    "operator": lambda i, v: i.argrepr,
    "intrinsic": lambda i, v: i.argrepr,
    "before_after": lambda i, v: ((i.arg or 0) & 0xFF, (i.arg or 0) >> 8),
    "format": _format,
    "conversion": lambda i, v: (v.conversions[i.arg or 0], False),
    "no_spec": lambda i, v: (None, False),
    "with_spec": lambda i, v: (None, True),
}

CONDITIONS: dict[str, Callable[[dis.Instruction], bool]] = {
    "always": lambda i: True,
    "low": lambda i: bool((i.arg or 0) & 1),
    "bool": lambda i: bool((i.arg or 0) & 16),
    "plain": lambda i: not (i.arg or 0) & 16,
    "subscript": lambda i: i.argrepr == "[]",
    "operator": lambda i: i.argrepr != "[]",
}
