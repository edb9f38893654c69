"""Entering a code object in the middle: the one place that edits bytecode.

In: a code object, an offset, and what lies on its stack there. Out: a code object whose arguments
are that stack and the locals, and whose body is the original, jumped into. With a `Tail` it runs
one instruction natively, under the handlers the original has there, and hands the rest to a resume
function. All other code of the compiler is Python source that CPython compiles.

    head          COPY_FREE_VARS, RESUME, push the stack from arguments, jump to the entry
    body          every instruction of the original; its cells are free variables now
    tail          after the native instruction: store results, empty the stack, call the resume

Three facts of CPython shape the code. A NULL cannot be popped, only eaten by a call. The exception
table's depths are those of the original, since the stack is the original's. And a handler that
covers the native instruction must not cover the tail: it would catch what the resume raises.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

from bytecode import Bytecode, CompilerFlags, Instr, Label
from bytecode.instr import CellVar, FreeVar, TryBegin, TryEnd

from compiler_core.capture.normalise import decode
from compiler_core.capture.versions import CURRENT

__all__ = ["FIRST", "CannotEnter", "Tail", "cells_of", "enter_at", "uses_super"]

FIRST = "__first"  # an argument that callers pass as None, see `_first_argument`
Element = Any  # Instr, Label, TryBegin, TryEnd: what a Bytecode is a list of


class CannotEnter(Exception):
    """This code object has no entry at this offset; the message says why."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows the native instruction whose (last physical) offset is `last`.

    It takes `pops` slots and leaves `pushes` values, none of them NULL. `resume` is the global
    name of the function that goes on; `exhausted` that of the other way out of a FOR_ITER.
    """

    last: int
    pops: int
    pushes: int
    resume: str
    exhausted: str | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """Slots from the bottom: which are NULL, which keep the exception handled before (PUSH_EXC_INFO)."""

    nulls: tuple[bool, ...]
    handled: frozenset[int]

    def arguments(self) -> list[str]:
        """The names under which the slots with a value are passed."""
        return [f"__s{i}" for i, null in enumerate(self.nulls) if not null]

    def without(self, top: int) -> Stack:
        """The stack below its `top` highest slots."""
        size = len(self.nulls) - top
        return Stack(self.nulls[:size], frozenset(i for i in self.handled if i < size))


@dataclass(frozen=True, slots=True)
class Layout:
    """How values travel into and out of entered code: cells by closure, the rest as arguments."""

    cells: list[str]
    first: list[str]
    stack: Stack
    locals: list[str]

    def arguments(self) -> list[str]:
        return [*self.first, *self.stack.arguments(), *self.locals]


def enter_at(
    code: CodeType,
    offset: int,
    nulls: Sequence[bool],
    local_names: Sequence[str],
    name: str,
    tail: Tail | None = None,
    handled: Iterable[int] = (),
) -> CodeType:
    """`code`, entered at the instruction group at `offset`.

    nulls: one bool per stack slot from the bottom, True where the slot is NULL (pushed again, not
    passed). handled: slots in which an `except` or `with` block in force keeps the exception that
    was handled before; the argument for such a slot is the exception handled now. local_names:
    bound locals, passed after the stack. Cells of `code` are free variables of the result, in
    sorted order, so a closure is passed as `(lambda: (a, b)).__closure__`. Code that uses `super()`
    gets one more argument, `__first`, in front: pass None.

    Raises CannotEnter for generators and for comprehensions that make cells in the body.
    """
    _check_enterable(code)
    cells = cells_of(code)
    layout = Layout(
        cells,
        [FIRST] if uses_super(code) else [],
        Stack(tuple(nulls), frozenset(handled)),
        [n for n in local_names if n not in cells],
    )
    body, at = _body(code)
    entry = Label()
    body.insert(_position(body, at[offset]), entry)
    if tail is not None:
        _splice_tail(body, at[tail.last], tail, layout)
    return _assemble(
        code, [*_head(code, layout), Instr("JUMP_FORWARD", entry), *body], layout, name
    )


def uses_super(code: CodeType) -> bool:
    """Does `super()` without arguments look for the first argument in this code's frame?"""
    return "__class__" in code.co_freevars and code.co_argcount > 0


def _first_argument(code: CodeType, layout: Layout) -> list[Element]:
    """Put the original's first argument where `super()` looks for it: the first slot of the frame."""
    name = code.co_varnames[0]
    if name in layout.cells:
        return [Instr("LOAD_DEREF", FreeVar(name)), Instr("STORE_FAST", FIRST)]
    if name in layout.locals:
        return [Instr("LOAD_FAST", name), Instr("STORE_FAST", FIRST)]
    raise CannotEnter(f"{code.co_name}: super() needs {name!r}, which is not bound here")


def cells_of(code: CodeType) -> list[str]:
    """Cells and free variables, sorted as CPython sorts the free variables of a lambda."""
    return sorted(code.co_cellvars + code.co_freevars)


def _check_enterable(code: CodeType) -> None:
    if code.co_flags & (CompilerFlags.GENERATOR | CompilerFlags.COROUTINE):
        raise CannotEnter(f"{code.co_name} is a generator or coroutine: its frame is suspended")
    for i in decode(code).instructions:
        if i.op == "UNSUPPORTED" and str(i.arg).startswith(("MAKE_CELL", "LOAD_FAST_AND_CLEAR")):
            raise CannotEnter(f"{code.co_name}: {i.arg}")


# ------------------------------------------------------------------------------ body


def _body(code: CodeType) -> tuple[list[Element], dict[int, Instr]]:
    """The elements of `code` with cells as free variables; and the instruction at each offset."""
    original = Bytecode.from_code(code)
    offsets = list(_offsets(code))
    real = [i for i in original if isinstance(i, Instr)]
    if len(real) != len(offsets):
        raise CannotEnter(f"{code.co_name}: {len(real)} instructions read, {len(offsets)} present")
    _restore_depths(original, code, {id(r): own for r, (_, own) in zip(real, offsets)})
    body: list[Element] = []
    at: dict[int, Instr] = {}
    where = iter(offsets)
    for i in original:
        if not isinstance(i, Instr):
            body.append(i)
            continue
        parts = [_with_free_variables(part) for part in _parts(i)]
        body += parts
        start, own = next(where)
        at[start] = at[own] = parts[0]
    return body, at


def _parts(i: Instr) -> list[Instr]:
    """An instruction that touches two locals as two: both numbers of the pair must fit in four bits."""
    if not is_pair(i.name):
        return [i]
    names: Any = i.arg
    row = CURRENT.rows[i.name]
    return [Instr(step.op, name, location=i.location) for step, name in zip(row, names)]


def is_pair(opcode: str) -> bool:
    """Does an opcode of this version touch two locals?"""
    return any(step.argument == "second" for step in CURRENT.rows.get(opcode, ()))


def _offsets(code: CodeType) -> Iterable[tuple[int, int]]:
    """For each instruction: the offset of its first code unit, and its own behind EXTENDED_ARGs."""
    start = None
    for i in dis.get_instructions(code):
        if i.opname == "CACHE":
            continue
        start = i.offset if start is None else start
        if i.opname != "EXTENDED_ARG":
            yield start, i.offset
            start = None


def _restore_depths(body: Iterable[Element], code: CodeType, offset: dict[int, int]) -> None:
    """Give every try range the handler depth of the exception table, which the package drops."""
    table, opened = decode(code).table, []
    for i in body:
        if isinstance(i, TryBegin):
            opened.append(i)
        elif isinstance(i, Instr) and opened:
            here = offset[id(i)]
            for begin in opened:
                begin.stack_depth = next(e.depth for e in table if e.start <= here < e.end)
            opened = []


def _with_free_variables(i: Instr) -> Instr:
    if i.name in ("MAKE_CELL", "COPY_FREE_VARS"):
        return Instr("NOP", location=i.location)
    arg = FreeVar(i.arg.name) if isinstance(i.arg, CellVar) else i.arg
    return Instr(i.name, arg, location=i.location)


def _position(body: list[Element], instr: Instr) -> int:
    return next(n for n, i in enumerate(body) if i is instr)


# ------------------------------------------------------------------------------ head


def _head(code: CodeType, layout: Layout) -> list[Element]:
    stack = layout.stack
    head = [Instr("COPY_FREE_VARS", len(layout.cells))] if layout.cells else []
    head.append(Instr("RESUME", 0))
    for i, null in enumerate(stack.nulls):
        head.append(Instr("PUSH_NULL") if null else Instr("LOAD_FAST", f"__s{i}"))
        if i in stack.handled:  # leaves what this thread handled before, as in the original
            head += [Instr("PUSH_EXC_INFO"), Instr("POP_TOP")]
    return [*head, *(_first_argument(code, layout) if layout.first else [])]


# ------------------------------------------------------------------------------ tail


def _splice_tail(body: list[Element], native: Instr, tail: Tail, layout: Layout) -> None:
    """Put the tail behind the native instruction, outside the handler that covers it."""
    where = _position(body, native)
    body[where] = _plain(native)
    below = replace(layout, stack=layout.stack.without(tail.pops))
    code = _leave(below, tail.pushes, tail.resume, native)
    if tail.exhausted is not None:
        _splice_exhausted(body, where, native, tail.exhausted, layout)
    covering = _open_range(body, where)
    if covering is None:
        body[where + 1 : where + 1] = code
    elif isinstance(body[where + 1], TryEnd):
        body[where + 2 : where + 2] = code
    else:
        again = TryBegin(covering.target, covering.push_lasti, covering.stack_depth)
        end = next(
            n
            for n in range(where, len(body))
            if isinstance(body[n], TryEnd) and body[n].entry is covering
        )
        body[end] = TryEnd(again)
        body[where + 1 : where + 1] = [TryEnd(covering), *code, again]


def _splice_exhausted(
    body: list[Element], where: int, native: Instr, resume: str, layout: Layout
) -> None:
    """Give FOR_ITER a second way out, at the end of the code: the iterator is gone from the stack."""
    label = Label()
    body[where] = Instr(native.name, label, location=native.location)
    passed_over = [Instr(op) for op in CURRENT.skipped_after.get(native.name, ())]
    below = replace(layout, stack=layout.stack.without(1))
    last_range = _open_range(body, len(body) - 1)
    body += [TryEnd(last_range)] if last_range is not None else []
    body += [label, *passed_over, *_leave(below, 0, resume, native)]


def _plain(i: Instr) -> Instr:
    """The form of an instruction that leaves one value and no NULL, for the resume to push it."""
    if i.name == "LOAD_METHOD":
        return Instr("LOAD_ATTR", i.arg, location=i.location)
    if isinstance(i.arg, tuple) and i.arg[0] is True:
        return Instr(i.name, (False, *i.arg[1:]), location=i.location)
    return i


def _leave(layout: Layout, pushes: int, resume: str, native: Instr) -> list[Element]:
    """Store the results, empty the stack, `return resume(closure, stack, results, locals)`."""
    stack, cells = layout.stack, layout.cells
    results = [f"__r{k}" for k in range(pushes)]
    code = [Instr("STORE_FAST", r) for r in reversed(results)]
    for i in reversed(range(len(stack.nulls))):
        code += _drop(stack, i)
    closure = f"(lambda: ({', '.join(cells)},)).__closure__" if cells else "None"
    first = ["None"] * len(layout.first)
    passed = [*stack.arguments(), *results, *layout.locals]
    call = f"return {resume}({', '.join([closure, *first, *passed])})"
    code += _compiled(call, sorted(set(passed)), cells)
    return [Instr(p.name, p.arg, location=native.location) for i in code for p in _parts(i)]


def _drop(stack: Stack, slot: int) -> list[Instr]:
    if stack.nulls[slot]:
        return [Instr(op, arg) if arg is not None else Instr(op) for op, arg in CURRENT.pop_null]
    return [Instr("POP_EXCEPT" if slot in stack.handled else "POP_TOP")]


def _compiled(statement: str, arguments: Sequence[str], cells: Sequence[str]) -> list[Instr]:
    """The instructions of a statement in a function with these locals and free variables."""
    inner = f"def __leave({', '.join(arguments)}):\n        {statement}\n"
    source = f"def __cells({', '.join(cells)}):\n    {inner}"
    code = _nested(_nested(compile(source, "<tail>", "exec"), "__cells"), "__leave")
    dropped = ("RESUME", "COPY_FREE_VARS", "MAKE_CELL")
    return [i for i in Bytecode.from_code(code) if isinstance(i, Instr) and i.name not in dropped]


def _nested(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def _open_range(body: list[Element], where: int) -> TryBegin | None:
    """The try range that an element lies in."""
    covering = None
    for i in body[: where + 1]:
        if isinstance(i, TryBegin):
            covering = i
        elif isinstance(i, TryEnd):
            covering = None
    return covering


# ------------------------------------------------------------------------------ assembly


def _assemble(code: CodeType, elements: list[Element], layout: Layout, name: str) -> CodeType:
    new, arguments = Bytecode(elements), layout.arguments()
    new.name = new.qualname = name
    new.filename, new.first_lineno = code.co_filename, code.co_firstlineno
    new.argnames, new.argcount = arguments, len(arguments)
    new.posonlyargcount = new.kwonlyargcount = 0
    new.freevars, new.cellvars, new.docstring = layout.cells, [], None
    new.flags = CompilerFlags(code.co_flags & ~(CompilerFlags.VARARGS | CompilerFlags.VARKEYWORDS))
    size = code.co_stacksize + len(arguments) + 8  # the tail's call holds all arguments
    # The package would count handler depths from the new entry, where the stack is deeper.
    return new.to_code(stacksize=size, compute_exception_stack_depths=False)
