"""Costly values of one pass over a row, kept for the next.

In: the body of a kernel that goes over a row several times (softmax: largest, sum of exp, quotients).
Out: which statements keep their value in an array of the row, and which read it there instead of being
computed again. A value is kept if it takes a transcendental function, both passes have the same length,
known and short enough for the first-level cache, and compute it from the same operands in the same way.

Before: sum over q: c1 = exp(x[q] - m).   for k: c2 = exp(x[k] - m); y[k] = c2 / z.
After:  sum over q: c1 = exp(x[q] - m); kept[q] = c1.   for k: y[k] = kept[k] / z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from compiler_core.codegen.cpp.half import is_small_float
from compiler_core.ir.index import Sym
from compiler_core.ir.loop import (
    Axis,
    Block,
    Constant,
    Load,
    Loop,
    Place,
    Position,
    Reduce,
    Statement,
    Store,
    Value,
)  # fmt: skip

__all__ = ["COSTLY", "RowValues", "row_values"]

LONGEST = 4096  # elements of a row that is kept: 16 KiB of floats

COSTLY = frozenset(
    """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh sigmoid
    erf pow atan2 fmod remainder floordiv""".split()  # noqa: SIM905
)

Meaning: TypeAlias = tuple[object, ...]


@dataclass(slots=True)
class RowValues:
    """What is kept, by `id` of statements: the keeper's value goes to `name[axis]`, a reader takes it there.

    `served` are the statements that a reader makes needless, itself included.
    """

    kept: dict[int, tuple[str, Axis]] = field(default_factory=dict)
    readers: dict[int, tuple[str, Axis]] = field(default_factory=dict)
    served: dict[int, tuple[Statement, ...]] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Pass:
    """A loop or reduction over a row with one axis, and what its values mean."""

    axis: Axis
    body: Block
    result: str  # the name that the pass yields, "" for a loop
    meanings: dict[str, Meaning]


def row_values(body: Block) -> RowValues:
    """The plan for a kernel's body. Empty where nothing is worth keeping."""
    plan = RowValues()
    passes = list(_passes(body))
    first: dict[Meaning, tuple[_Pass, Value]] = {}
    for one in passes:
        for value in _outermost_costly(one):
            meaning = one.meanings[value.name]
            if meaning not in first:
                first[meaning] = one, value
                continue
            maker, keeper = first[meaning]
            if maker is not one:
                _keep(plan, maker, keeper, one, value)
    return plan


def _keep(plan: RowValues, maker: _Pass, keeper: Value, reader: _Pass, value: Value) -> None:
    name = f"{keeper.name}_row"
    plan.kept[id(keeper)] = name, maker.axis
    plan.readers[id(value)] = name, reader.axis
    needless = _needless_without(reader, value)
    plan.skipped |= {id(statement) for statement in needless}
    plan.served[id(value)] = (value, *needless)


def _passes(body: Block) -> Iterator[_Pass]:
    for statement in body:
        if not isinstance(statement, Reduce | Loop) or len(statement.axes) != 1:
            continue
        (axis,) = statement.axes
        length = axis.extent.constant
        is_flat = not any(isinstance(inner, Reduce | Loop) for inner in statement.body)
        if is_flat and length is not None and length <= LONGEST:
            result = statement.value if isinstance(statement, Reduce) else ""
            yield _Pass(axis, statement.body, result, _meanings(axis, statement.body))


def _meanings(axis: Axis, body: Block) -> dict[str, Meaning]:
    """What each value is, with the axis called alike in every pass; names from outside are themselves."""
    found: dict[str, Meaning] = {}

    def of(name: str) -> Meaning:
        return found.get(name, (name,))

    at = {axis.name: Sym("@")}
    stored: set[str] = {s.buffer for s in body if isinstance(s, Store)}
    for s in body:
        match s:
            case Constant(name, value, dtype):
                found[name] = ("constant", repr(value), dtype.name)
            case Position(name, index, dtype):
                found[name] = ("position", index.substitute(at), dtype.name, axis.extent)
            case Load(name, buffer, offset, dtype, mask, other) if buffer not in stored:
                is_indirect = not offset.names.isdisjoint(found)
                place = (id(s),) if is_indirect else (offset.substitute(at), axis.extent)
                masked = (of(mask), repr(other)) if mask else ()
                found[name] = ("load", buffer, dtype.name, *place, *masked)
            case Load(name):
                found[name] = ("load", id(s))
            case Value(name, op, args, dtype):
                found[name] = (op, dtype.name, *(of(arg) for arg in args))
    return found


def _outermost_costly(one: _Pass) -> Iterator[Value]:
    """Values of costly operations that are not only operands of further costly ones."""
    values = [s for s in one.body if isinstance(s, Value) and _is_costly(s)]
    operands = {arg for value in values for arg in value.args}
    for value in values:
        if value.name not in operands:
            yield value


def _is_costly(value: Value) -> bool:
    """A transcendental function, or a rounding for which there is no instruction."""
    is_rounding = value.op == "cast" and is_small_float(value.dtype) and value.dtype.name != "bf16"
    return value.op in COSTLY or is_rounding


def _needless_without(one: _Pass, value: Value) -> list[Statement]:
    """Statements of a pass that only serve a value which is read instead."""
    gone = {id(value)}
    needless: list[Statement] = []
    for s in reversed(one.body):
        if isinstance(s, Store | Reduce | Loop) or id(s) in gone or s.name == one.result:
            continue
        if not any(s.name in _operands(other) for other in one.body if id(other) not in gone):
            gone.add(id(s))
            needless.append(s)
    return needless[::-1]


def _operands(s: Statement) -> frozenset[str]:
    match s:
        case Value(_, _, args):
            return frozenset(args)
        case Store(_, offset, value):
            return offset.names | {value}
        case Load(_, _, offset, _, mask):
            return offset.names | ({mask} if mask else set())
        case Position(_, at):
            return at.names
        case Place(_, value):
            return frozenset({value})
    return frozenset()
