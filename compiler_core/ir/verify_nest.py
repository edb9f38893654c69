"""The rules of one nest: names, types, accesses.

In: a nest and the program around it. Out: nothing, or the first rule that is broken, as a `Fault`
that names the statement. `ir/verify.py` turns it into a message with the text around it.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compiler_core.errors import closest
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import Index
from compiler_core.ir.loop import (
    Axis,
    Block,
    Buffer,
    Constant,
    Load,
    Loop,
    Nest,
    Position,
    Program,
    Reduce,
    Statement,
    Store,
    Value,
)
from compiler_core.ir.ops import OPS, REDUCTIONS
from compiler_core.ir.text import StatementNames
from compiler_core.ir.verify_access import out_of_bounds, stored_twice
from compiler_core.provenance import Origins, stage_of

__all__ = ["Fault", "check_name", "check_nest", "check_origins"]

# stage → the stages that its origins may be of; a stage that is not here may have any
_ORIGINS = {
    "lower": {"forward", "backward", "synthetic"},
    "fuse": {"lower", "synthetic"},
}


class Fault(Exception):
    """A broken rule: `name` is the handle's last part, `problem` a sentence."""

    def __init__(self, name: str, problem: str):
        self.name, self.problem = name, problem


def check_nest(nest: Nest, program: Program, stage: str, written: set[str]) -> None:
    """Raise Fault for the first rule that the nest breaks.

    `written` are the buffers with a value before it; those that it stores to are added.
    """
    check_origins(nest.name, nest.origins, stage)
    scope = _Scope(program, stage, StatementNames(nest.name), written)
    _check_block(nest.body, scope.enter(nest.name, nest.axes))


def check_origins(name: str, origins: Origins, stage: str) -> None:
    """Every item has origins, of the stage just before it. Raises Fault."""
    if not origins:
        raise Fault(name, "it has no origins; name what it came from, or say synthetic(pass, why)")
    allowed = _ORIGINS.get(stage)
    wrong = sorted(h for h in origins if allowed and stage_of(h) not in allowed)
    if wrong:
        raise Fault(name, f"origin {wrong[0]} is not of the stage before {stage}")


def check_name(where: str, name: str) -> None:
    """A name is a Python identifier, so that the text can be read back. Raises Fault."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise Fault(where, f"{name!r} is not a name (a Python identifier)")


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known at one place: `types` of visible values, all names so far, axes around."""

    program: Program
    stage: str
    handles: StatementNames
    written: set[str]
    axes: tuple[Axis, ...] = ()
    types: dict[str, DType] = field(default_factory=dict)
    taken: dict[str, None] = field(default_factory=dict)

    def enter(self, where: str, axes: Sequence[Axis]) -> _Scope:
        """The scope inside a loop over these axes."""
        around = {axis.name for axis in self.axes}
        for axis in axes:
            check_name(where, axis.name)
            if axis.name in around or axis.name in self.program.symbols or axis.name in self.types:
                raise Fault(where, f"the axis {axis.name} has the name of something else in scope")
            around.add(axis.name)
            unknown = axis.extent.names - set(self.program.symbols)
            if unknown:
                raise Fault(
                    where, f"the extent of {axis.name} depends on {', '.join(sorted(unknown))}"
                )
        return replace(self, axes=(*self.axes, *axes), types=dict(self.types))

    def type_of(self, where: str, name: str) -> DType:
        """The type of a visible value."""
        if name in self.types:
            return self.types[name]
        if name in self.taken:
            raise Fault(where, f"{name} is defined in a block that is closed here")
        raise Fault(where, f"{name} is not defined before this{closest(name, self.types)}")

    def define(self, where: str, name: str, dtype: DType) -> None:
        check_name(where, name)
        if name in self.taken or any(axis.name == name for axis in self.axes):
            raise Fault(where, f"{name} is defined a second time in this nest")
        if dtype.name not in DTYPES:
            raise Fault(where, f"no statement computes in {dtype}: it is for library calls only")
        self.taken[name] = None
        self.types[name] = dtype

    def check_index(self, where: str, e: Index) -> None:
        """Names of an index are axes around, size symbols or visible integers."""
        axes = {axis.name for axis in self.axes}
        for name in sorted(e.names - axes - set(self.program.symbols)):
            if self.type_of(where, name).kind not in ("int", "uint"):
                raise Fault(where, f"the index {e} uses {name}, which is {self.types[name]}")

    def buffer(self, where: str, name: str) -> Buffer:
        if name not in self.program.buffers:
            raise Fault(where, f"there is no buffer {name}{closest(name, self.program.buffers)}")
        return self.program.buffers[name]


def _check_block(block: Block, scope: _Scope) -> None:
    for statement in block:
        where = scope.handles.of(statement)
        check_origins(where, statement.origins, scope.stage)
        _check_statement(statement, where, scope)
        if not isinstance(statement, Store | Loop):
            scope.define(where, statement.name, statement.dtype)


def _check_statement(statement: Statement, where: str, scope: _Scope) -> None:
    match statement:
        case Constant():
            _check_constant(statement, where)
        case Value():
            _check_value(statement, where, scope)
        case Position():
            scope.check_index(where, statement.index)
            if statement.dtype.kind == "bool":
                raise Fault(where, "a position is a number, not a truth value")
        case Load():
            _check_load(statement, where, scope)
        case Store():
            _check_store(statement, where, scope)
        case Loop():
            _check_block(statement.body, scope.enter(where, statement.axes))
        case Reduce():
            _check_reduce(statement, where, scope)


def _check_constant(statement: Constant, where: str) -> None:
    value, kind = statement.value, statement.dtype.kind
    if kind != "float" and isinstance(value, float):
        raise Fault(where, f"the constant {value} is no {statement.dtype}")
    if kind == "bool" and value not in (0, 1):
        raise Fault(where, f"the constant {value} is no truth value")


def _check_value(statement: Value, where: str, scope: _Scope) -> None:
    op = OPS.get(statement.op)
    if op is None:
        raise Fault(where, f"there is no operation {statement.op}{closest(statement.op, OPS)}")
    if len(statement.args) != op.arity:
        raise Fault(where, f"{op.name} takes {op.arity} operands, not {len(statement.args)}")
    types = [scope.type_of(where, name) for name in statement.args]
    shown = f"{op.name} of {', '.join(map(str, types))} as {statement.dtype}"
    if op.rule == "cast":
        return
    if op.rule == "where":
        first, *types = types
        if first.kind != "bool":
            raise Fault(where, f"{shown}: the first operand of where must be bool")
    if len(set(types)) != 1:
        raise Fault(where, f"{shown}: the operands must agree")
    if op.rule == "float" and not types[0].is_float:
        raise Fault(where, f"{shown}: {op.name} is for floating types")
    result = DTYPES["bool"] if op.rule == "bool" else types[0]
    if statement.dtype != result:
        raise Fault(where, f"{shown}: the result is {result}")


def _check_load(statement: Load, where: str, scope: _Scope) -> None:
    buffer = scope.buffer(where, statement.buffer)
    scope.check_index(where, statement.offset)
    if statement.dtype != buffer.dtype:
        raise Fault(where, f"{buffer.name} holds {buffer.dtype}, the load says {statement.dtype}")
    if buffer.name not in scope.written:
        raise Fault(where, f"{buffer.name} is read before anything is written to it")
    if statement.mask is not None:
        if scope.type_of(where, statement.mask).kind != "bool":
            raise Fault(where, f"the mask {statement.mask} is not bool")
        return
    problem = out_of_bounds(statement.offset, scope.axes, buffer)
    if problem:
        raise Fault(where, problem)


def _check_store(statement: Store, where: str, scope: _Scope) -> None:
    buffer = scope.buffer(where, statement.buffer)
    scope.check_index(where, statement.offset)
    mutated = {target for target, _ in scope.program.mutated}
    if buffer.role in ("in", "const") and buffer.name not in mutated:
        raise Fault(
            where, f"{buffer.name} is an argument: only those that are updated are stored to"
        )
    dtype = scope.type_of(where, statement.value)
    if dtype != buffer.dtype:
        raise Fault(where, f"{buffer.name} holds {buffer.dtype}, {statement.value} is {dtype}")
    problem = out_of_bounds(statement.offset, scope.axes, buffer)
    problem = problem or stored_twice(statement.offset, scope.axes)
    if problem:
        raise Fault(where, problem)
    scope.written.add(buffer.name)


def _check_reduce(statement: Reduce, where: str, scope: _Scope) -> None:
    kind = statement.kind
    if kind not in REDUCTIONS:
        raise Fault(where, f"there is no reduction {kind}{closest(kind, REDUCTIONS)}")
    inner = scope.enter(where, statement.axes)
    _check_block(statement.body, inner)
    dtype = inner.type_of(where, statement.value)
    if kind in ("any", "all") and dtype.kind != "bool":
        raise Fault(where, f"{kind} folds truth values, {statement.value} is {dtype}")
    result = DTYPES["i64"] if kind in ("argmax", "argmin") else dtype
    if statement.dtype != result:
        raise Fault(where, f"{kind} of {dtype} is {result}, not {statement.dtype}")
