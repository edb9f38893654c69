"""The rules of one nest: names, types, accesses.

In: a nest and the program around it. Out: nothing, or the first rule that is broken, as a `Fault`
that names the statement. `ir/verify.py` turns it into a message with the text around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler_core.errors import closest
from compiler_core.ir.checks import CHECKS
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.loop import (
    Block,
    Buffer,
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
from compiler_core.ir.text import StatementNames
from compiler_core.ir.verify_access import out_of_bounds, stored_twice
from compiler_core.ir.verify_scope import Fault, Scope, check_origins

__all__ = ["check_nest"]


def check_nest(nest: Nest, program: Program, stage: str, written: set[str]) -> None:
    """Raise Fault for the first rule that the nest breaks.

    `written` are the buffers with a value before it; those that it stores to are added.
    """
    check_origins(nest.name, nest.origins, stage)
    added = frozenset(_added_to(nest.body))
    scope = Scope(program, stage, StatementNames(nest.name), written, added)
    _check_block(nest.body, scope.enter(nest.name, nest.axes))


def _added_to(block: Block) -> Iterator[str]:
    """Buffers that a block adds to."""
    for statement in block:
        if isinstance(statement, Store) and statement.adds:
            yield statement.buffer
        elif isinstance(statement, Loop | Reduce):
            yield from _added_to(statement.body)


def _check_block(block: Block, scope: Scope) -> None:
    for statement in block:
        where = scope.handles.of(statement)
        check_origins(where, statement.origins, scope.stage)
        _check_statement(statement, where, scope)
        if not isinstance(statement, Store | Loop):
            scope.define(where, statement.name, statement.dtype)


def _check_statement(statement: Statement, where: str, scope: Scope) -> None:
    match statement:
        case Constant():
            _check_constant(statement, where)
        case Value():
            _check_value(statement, where, scope)
        case Position():
            scope.check_index(where, statement.index)
            if statement.dtype.kind == "bool":
                raise Fault(where, "a position is a number, not a truth value")
        case Place():
            _check_place(statement, where, scope)
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


def _check_value(statement: Value, where: str, scope: Scope) -> None:
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


def _check_place(statement: Place, where: str, scope: Scope) -> None:
    if statement.check not in CHECKS:
        raise Fault(where, f"there is no check {statement.check}{closest(statement.check, CHECKS)}")
    found = scope.type_of(where, statement.value)
    if found.name not in ("i32", "i64") or statement.dtype.name != "i64":
        raise Fault(where, f"a place is an i64 made of an i32 or i64, not {found}")
    unknown = statement.extent.names - set(scope.program.symbols)
    if unknown:
        raise Fault(where, f"the extent of a place depends on {', '.join(sorted(unknown))}")
    scope.places.add(statement.name)


def _check_load(statement: Load, where: str, scope: Scope) -> None:
    buffer = scope.buffer(where, statement.buffer)
    scope.check_index(where, statement.offset)
    if statement.dtype != buffer.dtype:
        raise Fault(where, f"{buffer.name} holds {buffer.dtype}, the load says {statement.dtype}")
    if buffer.name not in scope.written:
        raise Fault(where, f"{buffer.name} is read before anything is written to it")
    if buffer.name in scope.added:
        raise Fault(where, f"the nest adds to {buffer.name}, so it does not read it")
    if statement.mask is not None:
        if scope.type_of(where, statement.mask).kind != "bool":
            raise Fault(where, f"the mask {statement.mask} is not bool")
        return
    problem = out_of_bounds(statement.offset, scope.axes, buffer)
    if problem:
        raise Fault(where, problem)


def _check_store(statement: Store, where: str, scope: Scope) -> None:
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
    if statement.adds:
        problem = problem or _wrong_sum(buffer, scope)
    else:
        problem = (
            problem or stored_twice(statement.offset, scope.axes) or _may_meet(statement, scope)
        )
    if problem:
        raise Fault(where, problem)
    scope.written.add(buffer.name)


def _wrong_sum(buffer: Buffer, scope: Scope) -> str | None:
    """What is wrong with adding to a buffer."""
    if buffer.name not in scope.written:
        return f"{buffer.name} is added to before anything is written to it"
    if buffer.dtype.kind == "bool" or (buffer.dtype.is_float and buffer.dtype.bytes < 4):
        return f"sums are not kept in {buffer.dtype}"
    return None


def _may_meet(statement: Store, scope: Scope) -> str | None:
    """A plain store needs a position of its own for each position of the axes."""
    met = sorted(statement.offset.names & scope.places)
    if met:
        return f"two positions may have the same {met[0]}: only += may store there"
    if statement.buffer in scope.added:
        return f"the nest adds to {statement.buffer}, so it does not store to it"
    return None


def _check_reduce(statement: Reduce, where: str, scope: Scope) -> None:
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
