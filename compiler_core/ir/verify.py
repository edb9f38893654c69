"""Whether a program of the loop IR is well formed.

In: a `Program`, and the stage that made it. Out: nothing, or a VerifyError that names the first rule
that is broken and shows the text around it. Runs after every pass in tests, and with `verify=True`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compiler_core.errors import ILL_FORMED, VerifyError, closest
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Buffer, Call, Nest, Program, View
from compiler_core.ir.text import lines_of
from compiler_core.ir.verify_nest import check_nest
from compiler_core.ir.verify_scope import Fault, check_name, check_origins

__all__ = ["verify_program"]

_ROLES = ("in", "out", "temp", "const")
_AROUND = 5  # lines shown before and after the fault


def verify_program(program: Program, stage: str = "") -> None:
    """Raise VerifyError for the first broken rule of `program`.

    `stage` ("lower", "fuse") also checks that origins are of the stage before it.

    Rules: names are identifiers, defined once, before use and where they are visible; operations have
    their operands' number and types (`ir/ops.py`); loads and stores agree with their buffers, stay
    inside them as far as can be proven, and read nothing that was never written; arguments are stored
    to only if updated; no two positions of the axes provably store to one place; axes have names of
    their own; outputs are written; every nest, call and statement has origins.
    """
    try:
        _check(program, stage)
    except Fault as fault:
        raise VerifyError(ILL_FORMED, _message(program, stage, fault)) from None


def _check(program: Program, stage: str) -> None:
    _check_arguments(program)
    for name, buffer in program.buffers.items():
        _check_buffer(name, buffer, program)
    written = {name for name, b in program.buffers.items() if b.role in ("in", "const")}
    seen: set[str] = set()
    for item in program.body:
        check_name(item.name, item.name)
        if item.name in seen:
            raise Fault(item.name, f"there are two nests or calls named {item.name}")
        seen.add(item.name)
        if isinstance(item, Nest):
            check_nest(item, program, stage, written)
        else:
            _check_call(item, program, stage, written)
    _check_results(program, written)


def _check_arguments(program: Program) -> None:
    for name, source in program.symbols.items():
        check_name(name, name)
        if source is None:
            if name not in program.inputs:
                raise Fault(name, f"the size {name} is read nowhere and is no argument")
            continue
        buffer = program.buffers.get(source[0])
        if buffer is None or source[0] not in program.inputs or source[1] >= len(buffer.shape):
            raise Fault(name, f"the size {name} is read from dimension {source[1]} of {source[0]}")
    for name in program.inputs:
        if name not in program.buffers and name not in program.symbols:
            raise Fault("", f"the argument {name} is neither a buffer nor a size")


def _check_buffer(name: str, buffer: Buffer, program: Program) -> None:
    check_name(name, name)
    if buffer.name != name or buffer.role not in _ROLES:
        raise Fault(name, f"the buffer {name} calls itself {buffer.name} ({buffer.role})")
    if len(buffer.shape) != len(buffer.strides):
        raise Fault(name, f"{name} has {len(buffer.shape)} sizes, {len(buffer.strides)} strides")
    _check_sizes(name, (*buffer.shape, *buffer.strides), program)
    if buffer.role in ("in", "const") and name not in program.inputs:
        raise Fault(name, f"{name} has the role {buffer.role!r} but is no argument")


def _check_sizes(where: str, sizes: Iterable[Index], program: Program) -> None:
    unknown = frozenset[str]().union(*(e.names for e in sizes)) - set(program.symbols)
    if unknown:
        raise Fault(where, f"{', '.join(sorted(unknown))} is no size of this program")


def _check_call(call: Call, program: Program, stage: str, written: set[str]) -> None:
    check_origins(call.name, call.origins, stage)
    for value in (*call.args, *(value for _, value in call.kwargs)):
        _check_argument(call.name, value, program, written)
    for name in call.outputs:
        if name is not None and name not in program.buffers:
            raise Fault(call.name, f"there is no buffer {name}{closest(name, program.buffers)}")
        if name is not None and program.buffers[name].role in ("in", "const"):
            raise Fault(call.name, f"{name} is an argument: a call cannot give its value")
    written.update(name for name in call.outputs if name is not None)


def _check_argument(where: str, value: Any, program: Program, written: set[str]) -> None:
    match value:
        case Index():
            _check_sizes(where, [value], program)
        case View(buffer, shape, strides, offset):
            if buffer not in program.buffers:
                raise Fault(where, f"there is no buffer {buffer}{closest(buffer, program.buffers)}")
            if buffer not in written:
                raise Fault(where, f"{buffer} is read before anything is written to it")
            if len(shape) != len(strides):
                raise Fault(
                    where, f"a view of {buffer} has {len(shape)} sizes, {len(strides)} strides"
                )
            _check_sizes(where, (*shape, *strides, offset), program)
        case tuple():
            for part in value:
                _check_argument(where, part, program, written)


def _check_results(program: Program, written: set[str]) -> None:
    for target, source in program.mutated:
        if target not in program.inputs or target not in program.buffers:
            raise Fault("update", f"{target} is updated but is no argument")
        _check_result("update", source, program, written)
    for output in program.outputs:
        _check_result("return", output, program, written)
    for name, buffer in program.buffers.items():
        if buffer.role == "out" and name not in written:
            raise Fault(name, f"the output {name} is never written")


def _check_result(where: str, output: Any, program: Program, written: set[str]) -> None:
    if not isinstance(output, str):
        _check_argument(where, output, program, written)
    elif output not in program.buffers:
        raise Fault(where, f"there is no buffer {output}{closest(output, program.buffers)}")
    elif output not in written:
        raise Fault(where, f"the output {output} is never written")


def _message(program: Program, stage: str, fault: Fault) -> str:
    """The rule, and about ten lines of text around the item with the fault."""
    lines = lines_of(program)
    at = next(
        (k for k, line in enumerate(lines) if fault.name and fault.name in (line.name, line.label)),
        0,
    )
    shown = [
        f"{'>' if k == at else ' '}{k + 1:>4} | {lines[k]}".rstrip()
        for k in range(max(0, at - _AROUND), min(len(lines), at + _AROUND + 1))
    ]
    place = f"{stage}:{program.name}/{fault.name}" if stage else fault.name or program.name
    return "\n".join([f"{place}: {fault.problem}", *shown])
