"""Builds one nest: axes, statements, names, origins.

In: an iteration space and calls in program order. Out: `Nest`. Statements take their origins from
the scope (`provenance.at`); a load adds the view operators that it looks through. Constants and
loads that a block already has are not emitted twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import (
    Axis,
    Block,
    Constant,
    Load,
    Nest,
    Place,
    Position,
    Reduce,
    Statement,
    Store,
)
from compiler_core.ir.loop import Value as ValueStatement
from compiler_core.ir.ops import OPS
from compiler_core.lower.operands import Operand, Refusal
from compiler_core.lower.scalars import BOOL, I64, Number, Scalar
from compiler_core.provenance import NOWHERE, Origins, current, union

__all__ = ["Names", "NestBuilder", "fitting"]


@dataclass(slots=True)
class Names:
    """Gives out names; none twice in a program."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, hint: str) -> str:
        """`hint`, or `hint_1`, `hint_2` … when that is taken."""
        name, count = hint, 0
        while name in self.taken:
            count += 1
            name = f"{hint}_{count}"
        self.taken.add(name)
        return name


class NestBuilder:
    """A nest under construction. `positions` are its loop variables, one per dimension of `shape`.

    A dimension of size 1 gets no axis: its position is the constant 0.
    """

    def __init__(self, names: Names, name: str, shape: Sequence[Index]):
        self.name, self._names = name, names
        self._block: list[Statement] = []
        self._known: dict[tuple[object, ...], Scalar] = {}
        self._device = ""
        self.axes, self.positions = self.iterate(shape, "i")

    def iterate(
        self, shape: Sequence[Index], letter: str
    ) -> tuple[tuple[Axis, ...], tuple[Index, ...]]:
        """Axes for a space of this shape, and the position in each of its dimensions."""
        axes: list[Axis] = []
        positions: list[Index] = []
        for number, extent in enumerate(shape):
            if extent.constant == 1:
                positions.append(index(0))
                continue
            axis = Axis(self._names.fresh(f"{self.name}_{letter}{number}"), extent)
            axes.append(axis)
            positions.append(Sym(axis.name))
        return tuple(axes), tuple(positions)

    def build(self, origins: Origins) -> Nest:
        """The nest, without statements that nothing reads (an operand that a formula ignores)."""
        return Nest(self.name, self.axes, _live(self._block), origins)

    def constant(self, value: Number, dtype: DType, through: Origins = NOWHERE) -> Scalar:
        """A number in a type that can hold it. Raises Refusal when it cannot."""
        value = fitting(value, dtype)
        key = ("constant", dtype.name, repr(value), through)
        if key not in self._known:
            name = self._fresh("c")
            self._block.append(Constant(name, value, dtype, union(current(), through)))
            self._known[key] = Scalar(name, dtype, self)
        return self._known[key]

    def number_of(self, scalar: Scalar) -> Number | None:
        """The number that a scalar is at every position; None if it depends on anything."""
        found = (s for s in self._block if isinstance(s, Constant) and s.name == scalar.name)
        return next((s.value for s in found), None)

    def position(self, at: Index, dtype: DType) -> Scalar:
        """An index expression as a number."""
        name = self._fresh("at")
        self._block.append(Position(name, at, dtype, current()))
        return Scalar(name, dtype, self)

    def size(self, of: Index, dtype: DType) -> Scalar:
        """A number of elements: a constant if it is one."""
        return (
            self.position(of, dtype) if of.constant is None else self.constant(of.constant, dtype)
        )

    def place(self, value: Scalar, extent: Index, check: str, dimension: int = 0) -> Index:
        """An integer that was read from memory, as a position in a dimension of this extent.

        Raises Refusal where the dimension has no positions: eager's error is then another one.
        """
        if extent.constant == 0:
            raise Refusal("the dimension has no positions")
        key = ("place", value.name, extent, check, dimension)
        if key not in self._known:
            name = self._fresh("place")
            self._block.append(Place(name, value.name, extent, check, dimension, I64, current()))
            self._known[key] = Scalar(name, I64, self)
        return Sym(self._known[key].name)

    def load(
        self,
        source: Operand,
        positions: Sequence[Index],
        mask: Scalar | None = None,
        other: Number = 0,
    ) -> Scalar:
        """An element of an operand, broadcast from the right to `positions`."""
        self._check_device(source)
        if source.number is not None and mask is None:
            return self.constant(source.number, source.dtype, source.through)
        offset = source.offset_at(positions)
        mask_name = mask.name if mask else None
        key = ("load", source.view.buffer, offset, mask_name, repr(other))
        if key not in self._known:
            name = self._fresh("x")
            origins = union(current(), source.through)
            self._block.append(
                Load(name, source.view.buffer, offset, source.dtype, mask_name, other, origins)
            )
            self._known[key] = Scalar(name, source.dtype, self)
        return self._known[key]

    def operation(self, op: str, *operands: Scalar, dtype: DType | None = None) -> Scalar:
        """One `Value`. The result's type follows from the operation's rule unless given."""
        if dtype is None:
            dtype = BOOL if OPS[op].rule == "bool" else operands[-1].dtype
        name = self._fresh(op)
        self._block.append(
            ValueStatement(name, op, tuple(x.name for x in operands), dtype, current())
        )
        return Scalar(name, dtype, self)

    def reduce(
        self,
        kind: str,
        shape: Sequence[Index],
        body: Callable[[Sequence[Index]], Scalar],
    ) -> Scalar:
        """Fold what `body` gives at each position of a space of this shape.

        A space of one position needs no fold: its value is the result, its position 0.
        """
        axes, positions = self.iterate(shape, "r")
        if not axes:
            return self.constant(0, I64) if kind in ("argmax", "argmin") else body(positions)
        name = self._fresh(kind)
        outer, known = self._block, dict(self._known)
        self._block = []
        value = body(positions)
        inner, self._block, self._known = tuple(self._block), outer, known
        dtype = I64 if kind in ("argmax", "argmin") else value.dtype
        self._block.append(Reduce(name, kind, axes, inner, value.name, dtype, current()))
        return Scalar(name, dtype, self)

    def store(
        self,
        target: Operand,
        value: Scalar,
        positions: Sequence[Index] | None = None,
        readers: Origins = NOWHERE,
        adds: bool = False,
    ) -> None:
        """Write `value` at `positions` (the nest's own when not given), or add it there."""
        self._check_device(target)
        offset = target.offset_at(self.positions if positions is None else positions)
        origins = union(current(), readers)
        self._block.append(Store(target.view.buffer, offset, value.name, origins, adds))

    def _check_device(self, operand: Operand) -> None:
        """Raise Refusal for a nest that would touch the memory of two devices."""
        self._device = self._device or operand.device
        if operand.device != self._device:
            raise Refusal(f"operands lie on {self._device} and on {operand.device}")

    def _fresh(self, hint: str) -> str:
        return self._names.fresh(f"{self.name}_{hint}")


def _live(block: Sequence[Statement], wanted: Iterable[str] = ()) -> Block:
    """The statements of a block that its stores, or `wanted` names, need."""
    needed, kept = set(wanted), []
    for statement in reversed(block):
        if not isinstance(statement, Store) and statement.name not in needed:  # type: ignore[union-attr]
            continue
        if isinstance(statement, Reduce):
            body = _live(statement.body, {statement.value})
            statement = replace(statement, body=body)
        needed.update(_reads(statement))
        kept.append(statement)
    return tuple(reversed(kept))


def _reads(statement: Statement) -> tuple[str, ...]:
    """Names that a statement reads from the blocks around it."""
    match statement:
        case ValueStatement():
            return statement.args
        case Store():
            return (statement.value, *statement.offset.names)
        case Load():
            return (*statement.offset.names, *((statement.mask,) if statement.mask else ()))
        case Place():
            return (statement.value,)
        case Reduce():
            return tuple(name for inner in statement.body for name in _reads(inner))
    return ()


def fitting(value: Number, dtype: DType) -> Number:
    """The Python number that a constant of this type holds."""
    if dtype.kind == "float":
        return float(value)
    if dtype.kind == "bool":
        return bool(value)
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        raise Refusal(f"the number {value} is not a value of {dtype}")
    low, high = _range(dtype)
    if not low <= value <= high:
        raise Refusal(f"the number {value} does not fit {dtype}")
    return int(value)


def _range(dtype: DType) -> tuple[int, int]:
    bits = 8 * dtype.bytes
    return (0, 2**bits - 1) if dtype.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
