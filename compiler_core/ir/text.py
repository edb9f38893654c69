"""The loop IR as text, and the handle of every line of it.

In: a `Program`. Out: its text (the grammar on top of `ir/loop.py`), one statement a line. The one
idea: a program is first laid out as `Line`s that remember which item they show, so the text, the
line numbers and the handles of statements can never disagree. `ir/parse.py` reads the text back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.ir.index import Index
from compiler_core.ir.loop import (
    Axis,
    Block,
    Buffer,
    Call,
    Constant,
    Load,
    Loop,
    Nest,
    Place,
    Position,
    Program,
    Reduce,
    Statement,
    Store,
    Value,
    View,
)
from compiler_core.provenance import Handle, Origins

__all__ = [
    "Line", "StatementNames", "argument_text", "lines_of", "named_statements", "number_text", "print_block", "print_nest", "print_program",
    "statement_handles",
]  # fmt: skip

_WIDEST = 28  # columns up to which the '=' of a block's statements are aligned


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a program's text: the item it shows, and the item's name within the program.

    `name` is '<nest>.<statement>', '<nest>' or '<call>'; "" where the line shows none of these. A
    declaration has a `label` instead: what it declares, 'update' or 'return'.
    """

    depth: int
    text: str
    name: str = ""
    item: Statement | Nest | Call | None = None
    label: str = ""

    def __str__(self) -> str:
        return "  " * self.depth + self.text


def print_program(program: Program) -> str:
    """The program's text, without a newline at the end.

    >>> from compiler_core.ir.parse import parse_program
    >>> print(print_program(parse_program('''
    ... program double(x):
    ...   size s0 = x.size(0)
    ...   in x: f32[s0] stride [1]
    ...   out y: f32[s0] stride [1]
    ...   nest add_0 for i < s0:
    ...     a: f32 = load x[i]
    ...     b: f32 = add a a
    ...     store y[i] = b
    ...   return y''')))
    program double(x):
      size s0 = x.size(0)
      in  x: f32[s0] stride [1]
      out y: f32[s0] stride [1]
    <BLANKLINE>
      nest add_0 for i < s0:
        a: f32 = load x[i]
        b: f32 = add a a
        store y[i] = b
    <BLANKLINE>
      return y
    """
    return "\n".join(str(line) for line in lines_of(program))


def print_nest(nest: Nest, depth: int = 0) -> str:
    """The text of one nest, indented by 2 * depth."""
    return "\n".join(str(line) for line in _nest(nest, depth))


def print_block(block: Block, depth: int = 0) -> str:
    """The text of some statements, indented by 2 * depth."""
    names = StatementNames("")
    return "\n".join(str(line) for line in _block(block, depth, names))


def statement_handles(
    program: Program, stage: str, part: str
) -> dict[Handle, tuple[str, Origins, int]]:
    """{handle: (label, origins, line from 1)} of all nests, calls and statements.

    `stage` is "lower" or "fuse", `part` "forward" or "backward".
    """
    return {
        f"{stage}:{part}/{line.name}": (" ".join(line.text.split()), line.item.origins, number)
        for number, line in enumerate(lines_of(program), 1)
        if line.name and line.item is not None
    }


def named_statements(nest: Nest) -> Iterator[tuple[str, Statement]]:
    """Each statement of a nest, outer before inner, with the last part of its handle."""
    for line in _block(nest.body, 0, StatementNames("")):
        if line.name and isinstance(line.item, Statement):
            yield line.name, line.item


def lines_of(program: Program) -> list[Line]:
    """The layout of a program's text."""
    lines = [Line(0, f"program {program.name}({', '.join(program.inputs)}):")]
    lines += [Line(1, _size(name, source), label=name) for name, source in program.symbols.items()]
    width = max((len(b.role) for b in program.buffers.values()), default=0)
    lines += [Line(1, _buffer(b, width), label=b.name) for b in program.buffers.values()]
    for item in program.body:
        if isinstance(item, Nest) or not isinstance(lines[-1].item, Call):
            lines.append(Line(0, ""))
        lines += _nest(item) if isinstance(item, Nest) else [_call(item, program)]
    lines.append(Line(0, ""))
    for target, source in program.mutated:
        lines.append(Line(1, f"update {target} = {source}", label="update"))
    outputs = ", ".join(
        output if isinstance(output, str) else argument_text(output) for output in program.outputs
    )
    return [*lines, Line(1, f"return {outputs}".rstrip(), label="return")]


# ---------------------------------------------------------------------------------- declarations


def _size(name: str, source: tuple[str, int] | None) -> str:
    return f"size {name}" if source is None else f"size {name} = {source[0]}.size({source[1]})"


def _buffer(buffer: Buffer, width: int) -> str:
    place = "" if buffer.device == "cpu" else f" on {buffer.device}"
    layout = f"{buffer.dtype}{_list(buffer.shape)} stride {_list(buffer.strides)}"
    return f"{buffer.role:<{width}} {buffer.name}: {layout}{place}"


def _call(call: Call, program: Program) -> Line:
    arguments = [argument_text(arg, program) for arg in call.args]
    arguments += [f"{key}={argument_text(arg, program)}" for key, arg in call.kwargs]
    results = ", ".join("None" if name is None else name for name in call.outputs)
    equals = f"{results} = " if call.outputs else ""
    text = f"call {call.name}: {equals}{call.target}({', '.join(arguments)})"
    return Line(1, f"{text} because {call.reason!r}", call.name, call)


def argument_text(value: Any, program: Program | None = None) -> str:
    """An argument of a call, or a returned value, as Python text.

    A view of the whole of a buffer prints as the buffer's name where a program is given.
    """
    match value:
        case View(buffer, shape, strides, offset):
            if program is not None and _is_whole(value, program):
                return buffer
            return f"view({buffer}, {_list(shape)}, {_list(strides)}, {offset})"
        case tuple() | list():
            return "[" + ", ".join(argument_text(part, program) for part in value) + "]"
        case torch.device():
            return f"device({str(value)!r})"
        case bool() | int() | float():
            return number_text(value)
        case None | str():
            return repr(value)
        case Index() | torch.dtype() | torch.layout() | torch.memory_format():
            return str(value)
    raise TypeError(f"a call cannot hold {type(value).__name__}: {value!r}")


def number_text(value: float | int | bool) -> str:
    """A number as the parser reads it: `inf`, `-inf`, `nan`, `True`, `1.5`, `3`."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)


def _is_whole(view: View, program: Program) -> bool:
    buffer = program.buffers.get(view.buffer)
    if buffer is None or view.offset != 0:
        return False
    return (buffer.shape, buffer.strides) == (view.shape, view.strides)


def _list(parts: Iterable[Index]) -> str:
    return "[" + ", ".join(map(str, parts)) + "]"


# ---------------------------------------------------------------------------------- statements


class StatementNames:
    """Gives each statement of one nest its name in handles: a repeated one gets `.2`, `.3`, …"""

    def __init__(self, nest: str):
        self.prefix = nest and nest + "."
        self.seen: Counter[str] = Counter()
        self.loops = 0

    def of(self, statement: Statement) -> str:
        match statement:
            case Store(buffer):
                name = f"store_{buffer}"
            case Loop():
                name, self.loops = f"loop_{self.loops}", self.loops + 1
            case _:
                name = statement.name
        self.seen[name] += 1
        again = f".{self.seen[name]}" if self.seen[name] > 1 else ""
        return self.prefix + name + again


def _nest(nest: Nest, depth: int = 1) -> list[Line]:
    axes = f" for {_axes(nest.axes)}" if nest.axes else ""
    head = Line(depth, f"nest {nest.name}{axes}:", nest.name, nest)
    return [head, *_block(nest.body, depth + 1, StatementNames(nest.name))]


def _block(block: Block, depth: int, names: StatementNames) -> list[Line]:
    width = _width([f"{s.name}: {s.dtype}" for s in block if not isinstance(s, Store | Loop)])
    lines: list[Line] = []
    for statement in block:
        lines.append(Line(depth, _statement(statement, width), names.of(statement), statement))
        if isinstance(statement, Reduce | Loop):
            lines += _block(statement.body, depth + 1, names)
        if isinstance(statement, Reduce):
            lines.append(Line(depth + 1, f"yield {statement.value}"))
    return lines


def _width(heads: Sequence[str]) -> int:
    return max((len(head) for head in heads if len(head) <= _WIDEST), default=0)


def _statement(statement: Statement, width: int) -> str:
    match statement:
        case Store(buffer, offset, value, adds=adds):
            return f"store {buffer}[{offset}] {'+=' if adds else '='} {value}"
        case Loop(axes):
            return f"for {_axes(axes)}:"
    return f"{f'{statement.name}: {statement.dtype}':<{width}} = {_right_side(statement)}"


def _right_side(statement: Constant | Value | Position | Place | Load | Reduce) -> str:
    match statement:
        case Constant(value=value):
            return f"const {number_text(value)}"
        case Value(op=op, args=args):
            return " ".join([op, *args])
        case Position(index=index):
            return f"index {index}"
        case Place(_, value, extent, check, dimension):
            return f"place {value} < {extent} as {check} {dimension}"
        case Load(buffer=buffer, offset=offset, mask=None):
            return f"load {buffer}[{offset}]"
        case Load(buffer=buffer, offset=offset, mask=mask, other=other):
            return f"load {buffer}[{offset}] if {mask} else {number_text(other)}"
        case Reduce(kind=kind, axes=axes):
            return f"{kind} over {_axes(axes)}:"


def _axes(axes: Iterable[Axis]) -> str:
    return ", ".join(f"{axis.name} < {axis.extent}" for axis in axes)
