"""What the writers of one kernel share: its lines, names, types and handles; and single statements.

In: a statement without a body. Out: one line of C with the statement's handle as its origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler_core.codegen.cpp.expressions import expression, literal
from compiler_core.codegen.cpp.half import loaded, rounded, stored
from compiler_core.codegen.cpp.index_text import IndexText
from compiler_core.codegen.cpp.names import Names
from compiler_core.codegen.cpp.row_values import RowValues
from compiler_core.codegen.statement_handles import StatementHandles, statements_of
from compiler_core.codegen.writer import Writer
from compiler_core.ir.checks import CHECKS
from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import Index
from compiler_core.ir.loop import (
    Axis,
    Buffer,
    Constant,
    Load,
    Loop,
    Nest,
    Place,
    Position,
    Reduce,
    Statement,
    Store,
    Value,
)  # fmt: skip
from compiler_core.provenance import NOWHERE, Origins

__all__ = ["KernelText"]


@dataclass(slots=True)
class KernelText:
    """A kernel under construction. `threads` is 0 where OpenMP decides.

    `form` are the accesses whose walk through memory decided how the loops are built: rows or
    columns. Lines that are there for the loops' sake, and not a statement's own, come from them too.
    """

    nest: Nest
    buffers: Mapping[str, Buffer]
    handles: StatementHandles
    threads: int = 0
    row: RowValues = field(default_factory=RowValues)
    writer: Writer = field(default_factory=Writer)
    form: Origins = NOWHERE
    names: Names = field(init=False)
    types: dict[str, DType] = field(default_factory=dict)
    index: IndexText = field(init=False)
    failed: str = field(init=False)  # the parameter that takes the first position out of bounds
    places: frozenset[str] = field(init=False)
    checks: dict[int, int] = field(init=False)  # id of a place → the number of its check

    def __post_init__(self) -> None:
        self.names = Names(f"{self.nest.name}_")
        for statement in statements_of(self.nest.body):
            if not isinstance(statement, Store | Loop):
                self.types[statement.name] = statement.dtype
        self.failed = self.names.fresh("failed")
        places = [s for s in statements_of(self.nest.body) if isinstance(s, Place)]
        self.places = frozenset(place.name for place in places)
        self.checks = {id(place): number for number, place in enumerate(places, 1)}
        self.index = IndexText(self.names.__getitem__, self._is_signed)

    def _is_signed(self, name: str) -> bool:
        return name in self.types and self.types[name].kind == "int" and name not in self.places

    def line(self, text: str, statement: Statement) -> None:
        """A line that one statement needs in loops of this form: an accumulator, an array."""
        self.writer.line(text, {self.handles[statement]} | self.form)

    def write_again(self, statement: Constant | Position) -> None:
        """A constant or position, once more inside another loop."""
        self.line(self.declaration(statement.name, self._value_of(statement)), statement)

    def _own_line(self, text: str, statement: Statement) -> None:
        self.writer.line(text, {self.handles[statement]})

    def write_plain(self, statement: Statement) -> None:
        """A statement without a body. Raises TypeError for one with a body."""
        if id(statement) in self.row.skipped:
            return
        if isinstance(statement, Store):
            buffer = self.buffers[statement.buffer]
            value = stored(self.names[statement.value], buffer.dtype)
            element = self.element(statement.buffer, statement.offset)
            self._own_line(f"{element} {'+=' if statement.adds else '='} {value};", statement)
            return
        if isinstance(statement, Place):
            self._write_place(statement)
            return
        assert not isinstance(statement, Reduce | Loop)
        if id(statement) in self.row.readers:
            origins = {self.handles[s] for s in self.row.served[id(statement)]}
            text = self._in_row(self.row.readers[id(statement)])
            self.writer.line(self.declaration(statement.name, text), origins)
            return
        self._own_line(self.declaration(statement.name, self._value_of(statement)), statement)
        if id(statement) in self.row.kept:
            text = self._in_row(self.row.kept[id(statement)])
            self.line(f"{text} = {self.names[statement.name]};", statement)

    def _write_place(self, place: Place) -> None:
        """The position, and what happens where it is out of bounds: this turn of the loop is left."""
        value, extent = self.names[place.value], self.index(place.extent)
        wraps = CHECKS[place.check].wraps
        text = f"{value} < 0 ? {value} + {extent} : {value}" if wraps else value
        self._own_line(self.declaration(place.name, text), place)
        name = self.names[place.name]
        leave = "continue" if self.writer.depth else "return"  # only loops indent
        note = f"v_fail({self.failed}, {self.checks[id(place)]}, {value})"
        with self.writer.block(f"if ({name} < 0 || {name} >= {extent}) {{"):
            self._own_line(f"{note};", place)
            self._own_line(f"{leave};", place)

    def declare_row(self) -> None:
        """The arrays that hold a row's costly values."""
        for statement in statements_of(self.nest.body):
            if id(statement) in self.row.kept and isinstance(statement, Value):
                name, axis = self.row.kept[id(statement)]
                text = f"{statement.dtype.c_compute} {self.names[name]}[{self.index(axis.extent)}];"
                self.line(text, statement)

    def _in_row(self, place: tuple[str, Axis]) -> str:
        name, axis = place
        return f"{self.names[name]}[{self.names[axis.name]}]"

    def declaration(self, name: str, value: str) -> str:
        """`const float x = value;` for a name of the IR."""
        return f"const {self.types[name].c_compute} {self.names[name]} = {value};"

    def element(self, buffer: str, offset: Index) -> str:
        return f"{self.names[buffer]}[{self.index(offset)}]"

    def _value_of(self, statement: Statement) -> str:
        match statement:
            case Constant(_, value, dtype):
                return literal(value, dtype)
            case Position(_, at, dtype):
                return _number(self.index(at), dtype)
            case Load(_, buffer, offset, dtype, mask, other):
                text = loaded(self.element(buffer, offset), dtype)
                return f"{self.names[mask]} ? {text} : {literal(other, dtype)}" if mask else text
            case Value(_, op, args, dtype):
                operands = [self.names[arg] for arg in args]
                return expression(op, operands, self.types[args[-1]], dtype)
            case Reduce() | Loop() | Store() | Place():
                raise TypeError(f"{type(statement).__name__} is not one line")


def _number(text: str, dtype: DType) -> str:
    """An `int64_t` expression as a number of a type."""
    if dtype.name == "i64":
        return text
    return rounded(f"({dtype.c_compute})({text})", dtype)
