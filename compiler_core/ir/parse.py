"""The loop IR read back from its text.

In: the text that `ir/text.py` prints, perhaps edited by hand. Out: a `Program` equal to the printed
one but for origins (`like=` brings those back). Comments (`#`), blank lines and the alignment of
columns mean nothing; the indent says which block a line belongs to.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from compiler_core.errors import closest
from compiler_core.ir.adopt_origins import adopt_origins
from compiler_core.ir.dtypes import DType
from compiler_core.ir.loop import (
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
)
from compiler_core.ir.ops import OPS, REDUCTIONS
from compiler_core.ir.parse_expressions import (
    NAME,
    TextLine,
    parse_arguments,
    parse_axes,
    parse_dtype,
    parse_index,
    parse_indices,
    parse_number,
)

__all__ = ["parse_program"]

_COMMENT = re.compile(r"""^((?:[^#'"]|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")*)#.*$""")
_PROGRAM = re.compile(rf"program ({NAME})\((.*)\)\s*:")
_SIZE = re.compile(rf"size ({NAME})(?:\s*=\s*({NAME})\.size\((\d+)\))?")
_BUFFER = re.compile(
    rf"(in|out|temp|const)\s+({NAME})\s*:\s*(\w+)\s*\[(.*)\]\s*stride\s*\[(.*)\](?:\s+on\s+(\S+))?"
)
_NEST = re.compile(rf"nest ({NAME})(?:\s+for\s+(.*))?\s*:")
_CALL = re.compile(rf"call ({NAME})\s*:\s*(?:([\w, ]+?)\s*=\s*)?([\w.]+)\((.*)\) because (.+)")
_UPDATE = re.compile(rf"update ({NAME})\s*=\s*({NAME})")
_STORE = re.compile(rf"store\s+({NAME})\s*\[(.*)\]\s*(\+?=)\s*({NAME})")
_LOOP = re.compile(r"for\b\s*(.*):")
_YIELD = re.compile(rf"yield\s+({NAME})")
_TYPED = re.compile(rf"({NAME})\s*:\s*(\w+)\s*=\s*(\w+)\s*(.*)")
_OVER = re.compile(r"over\b\s*(.*):")
_LOAD = re.compile(rf"({NAME})\s*\[(.*)\](?:\s*if\s+({NAME})\s+else\s+(.+))?")
_PLACE = re.compile(rf"({NAME})\s*<\s*(.+?)\s+as\s+({NAME})\s+(\d+)")
_WORDS = {"const", "index", "place", "load", *OPS, *REDUCTIONS}


def parse_program(text: str, like: Program | None = None) -> Program:
    """The program of a text. Raises VerifyError that shows the line and what was expected.

    With `like`, items whose handle is in that program take over its origins. The result is not yet
    verified: `ir/verify.py: verify_program` does that.
    """
    program = _Parser(text).program()
    return program if like is None else adopt_origins(program, like)


class _Parser:
    """The lines of a text and how far they are read."""

    def __init__(self, text: str):
        stripped = ((n, _COMMENT.sub(r"\1", raw)) for n, raw in enumerate(text.splitlines(), 1))
        self.lines = [
            TextLine(n, len(raw) - len(raw.lstrip()), raw.strip())
            for n, raw in stripped
            if raw.strip()
        ]
        self.at = 0
        self.end = TextLine(len(text.splitlines()) + 1, 0, "")
        self.buffers: dict[str, Buffer] = {}

    @property
    def line(self) -> TextLine:
        """The next line, not read yet; an empty one at the end."""
        return self.lines[self.at] if self.at < len(self.lines) else self.end

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read the line if all of it matches."""
        found = pattern.fullmatch(self.line.content)
        self.at += found is not None
        return found

    def program(self) -> Program:
        head = self.accept(_PROGRAM)
        if head is None:
            self.line.fail("'program <name>(<arguments>):'")
        symbols = self.symbols()
        while self.line.content.split(" ")[0] in ("in", "out", "temp", "const"):
            buffer = self.buffer()
            self.buffers[buffer.name] = buffer
        body: list[Nest | Call] = []
        while self.line.content.startswith(("nest ", "call ")):
            body.append(self.nest() if self.line.content.startswith("nest") else self.call())
        mutated = []
        while found := self.accept(_UPDATE):
            mutated.append((found[1], found[2]))
        outputs = self.outputs()
        if self.at < len(self.lines):
            self.line.fail("the end of the program after 'return'")
        inputs = tuple(part.strip() for part in head[2].split(",") if part.strip())
        return Program(head[1], symbols, self.buffers, tuple(body), inputs, outputs, tuple(mutated))

    def symbols(self) -> dict[str, tuple[str, int] | None]:
        symbols: dict[str, tuple[str, int] | None] = {}
        while found := self.accept(_SIZE):
            symbols[found[1]] = (found[2], int(found[3])) if found[2] else None
        return symbols

    def buffer(self) -> Buffer:
        line = self.line
        found = self.accept(_BUFFER)
        if found is None:
            line.fail("'<role> <name>: <type>[<sizes>] stride [<strides>]'")
        role, name, dtype, shape, strides, device = found.groups()
        sizes = parse_indices(line, shape), parse_indices(line, strides)
        return Buffer(name, parse_dtype(line, dtype), *sizes, role, device or "cpu")

    def call(self) -> Call:
        line = self.line
        found = self.accept(_CALL)
        if found is None:
            line.fail("'call <name>: <buffers> = <target>(<arguments>) because '<reason>''")
        name, results, target, arguments, reason = found.groups()
        args, kwargs = parse_arguments(line, arguments, self.buffers)
        outputs = tuple(part.strip() for part in (results or "").split(",") if part.strip())
        return Call(
            name,
            target,
            args,
            kwargs,
            tuple(None if output == "None" else output for output in outputs),
            self.reason(line, reason),
        )

    def reason(self, line: TextLine, text: str) -> str:
        try:
            reason = ast.literal_eval(text)
        except (SyntaxError, ValueError):
            reason = None
        if not isinstance(reason, str):
            line.fail("a reason in quotes", text)
        return reason

    def outputs(self) -> tuple[Any, ...]:
        line = self.line
        if not re.match(r"return\b", line.content):
            line.fail("'nest', 'call', 'update' or 'return'")
        self.at += 1
        text = line.content.removeprefix("return")
        named = set(self.buffers)
        outputs = parse_arguments(line, text.strip(), {})[0]
        return tuple(str(o) if str(o) in named else o for o in outputs)

    def nest(self) -> Nest:
        line = self.line
        found = self.accept(_NEST)
        if found is None:
            line.fail("'nest <name> for <axes>:'")
        axes = parse_axes(line, found[2] or "")
        return Nest(found[1], axes, self.block(line)[0])

    def block(self, head: TextLine) -> tuple[Block, str | None]:
        """The statements that are indented deeper than `head`, and what they yield."""
        indent = self.line.indent
        statements: list[Statement] = []
        while indent > head.indent and self.line.indent >= indent:
            if self.line.indent > indent:
                self.line.fail(f"a line indented by {indent}")
            if found := self.accept(_YIELD):
                return tuple(statements), found[1]
            statements.append(self.statement())
        return tuple(statements), None

    def statement(self) -> Statement:
        line = self.line
        if found := self.accept(_STORE):
            offset, adds = parse_index(line, found[2]), found[3] == "+="
            return Store(found[1], offset, found[4], adds=adds)
        if found := self.accept(_LOOP):
            return Loop(parse_axes(line, found[1]), self.block(line)[0])
        found = self.accept(_TYPED)
        if found is None:
            line.fail("'<name>: <type> = <operation>', 'store', 'for' or 'yield'")
        name, dtype, word, rest = found.groups()
        if word not in _WORDS:
            line.fail(f"an operation of the loop IR{closest(word, _WORDS)}", found.start(3))
        return self.typed(line, name, parse_dtype(line, dtype), word, rest)

    def typed(self, line: TextLine, name: str, dtype: DType, word: str, rest: str) -> Statement:
        if word == "const":
            return Constant(name, parse_number(line, rest), dtype)
        if word == "index":
            return Position(name, parse_index(line, rest), dtype)
        if word == "place":
            return self.place(line, name, dtype, rest)
        if word == "load":
            return self.load(line, name, dtype, rest)
        if word in REDUCTIONS:
            return self.reduce(line, name, dtype, word, rest)
        args = tuple(rest.split())
        for arg in args:
            if not re.fullmatch(NAME, arg):
                line.fail("the names of operands", arg)
        return Value(name, word, args, dtype)

    def place(self, line: TextLine, name: str, dtype: DType, rest: str) -> Place:
        found = _PLACE.fullmatch(rest)
        if found is None:
            line.fail("'place <name> < <index> as <check> <dimension>'", "place")
        value, extent, check, dimension = found.groups()
        return Place(name, value, parse_index(line, extent), check, int(dimension), dtype)

    def load(self, line: TextLine, name: str, dtype: DType, rest: str) -> Load:
        found = _LOAD.fullmatch(rest)
        if found is None:
            line.fail("'load <buffer>[<index>]' or '… if <name> else <number>'", "load")
        buffer, offset, mask, other = found.groups()
        number = 0 if other is None else parse_number(line, other)
        return Load(name, buffer, parse_index(line, offset), dtype, mask, number)

    def reduce(self, line: TextLine, name: str, dtype: DType, kind: str, rest: str) -> Reduce:
        found = _OVER.fullmatch(rest)
        if found is None:
            line.fail(f"'{kind} over <axes>:'", kind)
        axes = parse_axes(line, found[1])
        body, value = self.block(line)
        if value is None:
            self.line.fail(f"'yield <name>' at the end of the reduction of line {line.number}")
        return Reduce(name, kind, axes, body, value, dtype)
