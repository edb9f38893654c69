"""Statements without loops, one line each: values, positions, loads and stores.

In: a statement of the IR and the scope. Out: a line in `lines`, with the statement's handle as origin,
and a variable in the scope. A text that the scope has already is not written again: the first line
gets the second statement's handle too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from compiler_core.codegen.statement_handles import StatementHandles
from compiler_core.codegen.triton.casts import (
    cast,
    from_memory,
    held,
    literal,
    to_memory,
    typed_literal,
)
from compiler_core.codegen.triton.expressions import expression, takes_literals
from compiler_core.codegen.triton.index_text import IndexText
from compiler_core.codegen.triton.names import Names
from compiler_core.codegen.triton.tile import NO_DIMS, Dims, Scope, Variable
from compiler_core.codegen.writer import Writer
from compiler_core.errors import InternalError, register
from compiler_core.ir.checks import CHECKS
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import (
    Axis,
    Buffer,
    Constant,
    Load,
    Place,
    Position,
    Statement,
    Store,
    Value,
)  # fmt: skip
from compiler_core.provenance import Handle, union

__all__ = ["StatementWriter", "no_kernel_text"]

NO_TEXT = register(
    "CC511",
    "an operation has no Triton text for its operand type",
    "The loop IR holds an operation on a type for which the table in codegen/triton has no entry.",
    "Report it with the program; under strict=False the graph runs in eager.",
)


def no_kernel_text(detail: str) -> InternalError:
    return InternalError(NO_TEXT, detail)


@dataclass(slots=True)
class StatementWriter:
    """What the statements of one kernel share. `flatten` rewrites offsets to the linear position."""

    lines: Writer
    names: Names
    helpers: set[str]
    buffers: dict[str, Buffer]
    pointers: dict[str, str]  # buffer -> parameter
    handles: StatementHandles
    is_wide: bool
    unit: dict[str, Index]  # axes of one position, all 0
    dtypes: dict[str, DType]  # of all statements that have a name
    places: frozenset[str] = NO_DIMS  # positions from memory: never negative
    flat: list[tuple[tuple[Axis, ...], str]] = field(
        default_factory=list
    )  # axes -> position's name
    touched: set[tuple[str, str, str, int]] = field(default_factory=set)
    phase: int = 0  # counts inner loops, for barriers

    def origin(self, statement: Statement) -> Handle:
        return self.handles[statement]

    # ------------------------------------------------------------------------------ one statement

    def write(self, statement: Statement, scope: Scope) -> None:
        """Write a statement that has no body."""
        match statement:
            case Constant(name, value, dtype):
                origins = union([self.origin(statement)])
                scope.names[name] = Variable(
                    literal(value, dtype), dtype, constant=value, origins=origins
                )
            case Value():
                self._value(statement, scope)
            case Position():
                self._position(statement, scope)
            case Place():
                self._place(statement, scope)
            case Load():
                self._load(statement, scope)
            case Store(adds=True):
                self._add(statement, scope)
            case Store():
                self._store(statement, scope)
            case _:
                raise no_kernel_text(f"statement {type(statement).__name__}")

    def define(
        self, name: str, text: str, dtype: DType, dims: Dims, origins: Iterable[Handle], scope: Scope,
        buffer: str = "",
    ) -> Variable:  # fmt: skip
        """A line `name = text`, or the variable that has this text already."""
        known = scope.find(text)
        if known is None:
            identifier = self.names.fresh(name)
            line = self.lines.line(f"{identifier} = {text}", origins)
            known = Variable(identifier, dtype, dims, line)
            scope.remember(text, known, buffer)
        elif known.line is not None:
            known.line.origins.update(origins)
        return known

    def _value(self, s: Value, scope: Scope) -> None:
        args = [scope.names[arg] for arg in s.args]
        operand = (args[1] if s.op == "where" else args[0]).dtype
        text = expression(s.op, self._operands(s.op, args, operand), operand, s.dtype, self.helpers)
        if text is None:
            raise no_kernel_text(f"{s.op} on {operand} ({self.origin(s)})")
        origins = union([self.origin(s)], *(arg.origins for arg in args))
        same = next((arg for arg in args if arg.text == text and arg.line is not None), None)
        if same is not None and same.line is not None:  # floor of an integer: nothing to write
            same.line.origins.update(origins)
            scope.names[s.name] = Variable(same.text, s.dtype, same.dims, same.line)
            return
        dims = NO_DIMS.union(*(arg.dims for arg in args))
        known = self.define(s.name, text, s.dtype, dims, origins, scope)
        scope.names[s.name] = Variable(known.text, s.dtype, known.dims, known.line)

    def _operands(self, op: str, args: list[Variable], operand: DType) -> list[str]:
        """The operands' texts; numbers stay bare where the other operand gives them their type."""
        branches = args[1:] if op == "where" else args
        bare = takes_literals(op, operand) and any(arg.constant is None for arg in branches)
        return [
            arg.text
            if arg.constant is None or (bare and arg.dtype.name != "bool")
            else typed_literal(arg.constant, arg.dtype)
            for arg in args
        ]

    def _position(self, s: Position, scope: Scope) -> None:
        e = self.flatten(s.index)
        if e.constant is not None:
            text = literal(e.constant, s.dtype)
            scope.names[s.name] = Variable(
                text, s.dtype, constant=e.constant, origins=union([self.origin(s)])
            )
            return
        text = self.index(e, scope)
        if self.is_wide or s.dtype.name != "i32":
            # written out even where it changes nothing: a position may be narrower than it looks
            text = cast(
                text, DTYPES["i32" if s.dtype.name == "i16" else "i16"], s.dtype, self.helpers
            )
        scope.names[s.name] = self.define(
            s.name, text, s.dtype, scope.dims_of(e.names), self._used(s, e, scope), scope
        )

    def _place(self, s: Place, scope: Scope) -> None:
        """The position in 64 bits, and the assertion that it is in bounds, where the tile has elements."""
        value, check = scope.names[s.value], CHECKS[s.check]
        extent, origins = self.index(s.extent, scope), union([self.origin(s)], value.origins)
        read = value.text if value.constant is None else typed_literal(value.constant, value.dtype)
        text = cast(read, value.dtype, s.dtype, self.helpers)
        if check.wraps:
            text = f"tl.where({read} < 0, {read} + {extent}, {read}).to(tl.int64)"
        at = value
        if text != value.text or value.constant is not None:
            at = self.define(s.name, text, s.dtype, value.dims, origins, scope)
        elif at.line is not None:
            at.line.origins.update(origins)
        scope.names[s.name] = Variable(at.text, s.dtype, at.dims, at.line)
        masks = scope.tile.masks_of(at.dims)
        mask = f", mask={' & '.join(masks)}" if masks else ""
        message = check.on_device(s.dimension, extent)
        condition = f"({at.text} >= 0) & ({at.text} < {extent})"
        self.lines.line(f'tl.device_assert({condition}, "{message}"{mask})', origins)

    def _add(self, s: Store, scope: Scope) -> None:
        """One atomic addition for each position of the tile: none is shared by two positions."""
        tile, e = scope.tile, self.flatten(s.offset)
        pointer, dims = self._pointer(s.buffer, e, scope)
        value = scope.names[s.value]
        text = self._stored(value, self.buffers[s.buffer].dtype)
        if dims != tile.active:
            pointer = f"tl.broadcast_to({pointer}, {tile.shape()})"
        if value.dims != tile.active:
            text = f"tl.broadcast_to({text}, {tile.shape()})"
        masks = tile.masks_of(tile.active)
        arguments = [pointer, text, *([f"mask={' & '.join(masks)}"] if masks else [])]
        origins = union(self._used(s, e, scope), value.origins)
        self.lines.line(f'tl.atomic_add({", ".join(arguments)}, sem="relaxed")', origins)

    def _load(self, s: Load, scope: Scope) -> None:
        e = self.flatten(s.offset)
        pointer, dims = self._pointer(s.buffer, e, scope)
        condition = None if s.mask is None else self._condition(scope.names[s.mask])
        extra = NO_DIMS if condition is None else condition.dims - dims
        if extra:
            dims |= extra
            pointer = f"tl.broadcast_to({pointer}, {scope.tile.shape(dims)})"
        masks = scope.tile.masks_of(dims) + ([condition.text] if condition else [])
        arguments = [pointer, *([f"mask={' & '.join(masks)}"] if masks else [])]
        if condition is not None:
            arguments.append(f"other={self._other(s)}")
        buffer = self.buffers[s.buffer]
        text = from_memory(f"tl.load({', '.join(arguments)})", buffer.dtype)
        text = cast(text, buffer.dtype, s.dtype, self.helpers)
        origins = union(self._used(s, e, scope), condition.origins if condition else ())
        if scope.find(text) is None:
            self._barrier(s, pointer, scope)
        scope.names[s.name] = self.define(s.name, text, s.dtype, dims, origins, scope, s.buffer)

    def _condition(self, mask: Variable) -> Variable:
        """A mask that joins others; a constant one gets its type."""
        if mask.constant is None:
            return mask
        return replace(mask, text=typed_literal(mask.constant, mask.dtype))

    def _other(self, s: Load) -> str:
        dtype = self.buffers[s.buffer].dtype
        return str(int(s.other)) if dtype.name == "bool" else literal(s.other, dtype)

    def _store(self, s: Store, scope: Scope) -> None:
        e = self.flatten(s.offset)
        pointer, dims = self._pointer(s.buffer, e, scope)
        value, dtype = scope.names[s.value], self.buffers[s.buffer].dtype
        tile = scope.tile
        needed = dims | value.dims | frozenset(d for d in tile.active if d in tile.masks)
        if needed != dims:  # an axis that the offset does not name has one position
            pointer = f"tl.broadcast_to({pointer}, {tile.shape(needed)})"
        self._barrier(s, pointer, scope)
        scope.forget(s.buffer)
        masks = tile.masks_of(needed)
        arguments = [pointer, self._stored(value, dtype)]
        arguments += [f"mask={' & '.join(masks)}"] if masks else []
        origins = union(self._used(s, e, scope), value.origins)
        self.lines.line(f"tl.store({', '.join(arguments)})", origins)

    def _stored(self, value: Variable, dtype: DType) -> str:
        text = value.text
        if value.constant is not None:
            text = typed_literal(value.constant, value.dtype)
        return to_memory(cast(text, value.dtype, dtype, self.helpers), dtype, self.helpers)

    def _barrier(self, s: Load | Store, pointer: str, scope: Scope) -> None:
        """Threads of a program exchange values through memory only across a barrier.

        Needed before an access to a buffer whose last accesses of the other kind were at another offset
        or in another phase: another thread may have made them.
        """
        kind = "store" if isinstance(s, Store) else "load"
        mine = (pointer, self.phase)
        for buffer, other, *place in self.touched:
            if buffer == s.buffer and "store" in (kind, other) and tuple(place) != mine:
                self.lines.line("tl.debug_barrier()", [self.origin(s)])
                self.touched.clear()
                break
        self.touched.add((s.buffer, kind, *mine))

    # ------------------------------------------------------------------------------ offsets

    def flatten(self, e: Index) -> Index:
        """The expression with a whole row-major position written as one name."""
        e = e.substitute(self.unit)
        for axes, position in self.flat:
            e = _with_position(e, axes, position)
        return e

    def index(self, e: Index, scope: Scope) -> str:
        """An index expression's text."""
        return IndexText(self._namer(scope), self._signed(scope), self.helpers).write(e)

    def _namer(self, scope: Scope) -> Callable[[str], str]:
        def text_of(name: str) -> str:
            variable = scope.names[name]
            if (
                name not in self.dtypes
                or variable.constant is not None
                or variable.dtype.name == "i64"
            ):
                return variable.text
            widened = "tl.int64" if self.is_wide else "tl.int32"
            return (
                variable.text
                if held(variable.dtype) == widened
                else f"{variable.text}.to({widened})"
            )

        return text_of

    def _signed(self, scope: Scope) -> Callable[[str], bool]:
        """Values of statements may be negative; axes and sizes are not."""
        return lambda name: (
            name in self.dtypes and self.dtypes[name].kind != "uint" and name not in self.places
        )

    def _pointer(self, buffer: str, e: Index, scope: Scope) -> tuple[str, Dims]:
        pointer = self.pointers[buffer]
        if e == 0:
            return pointer, NO_DIMS
        return f"{pointer} + {self.index(e, scope)}", scope.dims_of(e.names)

    def _used(self, s: Statement, e: Index, scope: Scope) -> frozenset[Handle]:
        return union([self.origin(s)], *(scope.names[n].origins for n in e.names))


def _with_position(e: Index, axes: tuple[Axis, ...], position: str) -> Index:
    """e with slope * (row-major position over the axes) replaced by slope * position, where it is of that form."""
    if len(axes) < 2 or axes[-1].name not in e.names:
        return e
    parts = e.split(axes[-1].name)
    if parts is None:
        return e
    linear = index(0)
    for axis in axes:
        linear = linear * axis.extent + Sym(axis.name)
    own = {axis.name for axis in axes}
    rest = e - parts[0] * linear
    if own & rest.names or own & parts[0].names:
        return e
    return rest + parts[0] * Sym(position)
