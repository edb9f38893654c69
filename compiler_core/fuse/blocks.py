"""Walking and renaming the statements of a nest.

In: blocks of statements. Out: what they define and use, and copies under other names. The one idea:
a `Renaming` maps value names to value names and positions to index expressions, and is applied to a
whole block at once, so that no pass looks inside a statement by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from compiler_core.ir.index import Index, Sym
from compiler_core.ir.loop import (
    Axis,
    Block,
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

__all__ = [
    "Renaming", "adds_in_place", "body_of", "checks_places", "defined", "expressions", "index_names", "is_pointwise",
    "needed_for", "relabel", "relabel_block", "size",
    "used", "value_names", "walk", "with_body",
]  # fmt: skip


class Renaming:
    """New names for values, and expressions for axes."""

    def __init__(self, values: Mapping[str, str], at: Mapping[str, Index] | None = None):
        self.values = values
        self.at: dict[str, Index] = {old: Sym(new) for old, new in values.items()}
        self.at.update(at or {})

    def value(self, name: str) -> str:
        return self.values.get(name, name)

    def index(self, e: Index) -> Index:
        return e.substitute(self.at)

    def axes(self, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(Axis(self.value(axis.name), axis.extent) for axis in axes)


def body_of(s: Statement) -> Block:
    """The statements inside a reduction or a loop."""
    return s.body if isinstance(s, Reduce | Loop) else ()


def with_body(s: Reduce | Loop, body: Block) -> Reduce | Loop:
    """The same statement around another body; the same object if nothing changed."""
    same = len(body) == len(s.body) and all(a is b for a, b in zip(body, s.body, strict=True))
    return s if same else replace(s, body=body)


def walk(block: Block) -> Iterator[Statement]:
    """All statements, inner ones after the reduction or loop around them."""
    for s in block:
        yield s
        yield from walk(body_of(s))


def defined(s: Statement) -> str | None:
    """The name that a statement gives; stores and loops give none."""
    return None if isinstance(s, Store | Loop) else s.name


def expressions(s: Statement) -> tuple[Index, ...]:
    """The index expressions of a statement itself (not of its body)."""
    match s:
        case Load(offset=e) | Store(offset=e) | Position(index=e):
            return (e,)
        case Place(extent=extent):
            return (extent,)
        case Reduce(axes=axes) | Loop(axes=axes):
            return tuple(axis.extent for axis in axes)
    return ()


def value_names(s: Statement) -> tuple[str, ...]:
    """The values that a statement itself takes as operands."""
    match s:
        case Value(args=args):
            return args
        case Load(mask=str(mask)):
            return (mask,)
        case Store(value=value) | Reduce(value=value) | Place(value=value):
            return (value,)
    return ()


def index_names(s: Statement) -> frozenset[str]:
    """Axes, symbols and integer values in the statement's own index expressions."""
    return frozenset().union(*(e.names for e in expressions(s)))


def used(s: Statement) -> frozenset[str]:
    """Every name that a statement or its body mentions and does not define."""
    names = index_names(s).union(value_names(s))
    if not isinstance(s, Reduce | Loop):
        return names
    inside = {name for name in map(defined, s.body) if name} | {axis.name for axis in s.axes}
    return names.union(*map(used, s.body)) - inside


def relabel(s: Statement, new: Renaming) -> Statement:
    """A copy of a statement, its body included, under other names."""
    match s:
        case Constant():
            return replace(s, name=new.value(s.name))
        case Value():
            return replace(s, name=new.value(s.name), args=tuple(map(new.value, s.args)))
        case Position():
            return replace(s, name=new.value(s.name), index=new.index(s.index))
        case Place():
            return replace(s, name=new.value(s.name), value=new.value(s.value))
        case Load():
            mask = new.value(s.mask) if s.mask else None
            return replace(s, name=new.value(s.name), offset=new.index(s.offset), mask=mask)
        case Store():
            return replace(s, offset=new.index(s.offset), value=new.value(s.value))
        case Reduce():
            body = relabel_block(s.body, new)
            name, value = new.value(s.name), new.value(s.value)
            return replace(s, name=name, axes=new.axes(s.axes), body=body, value=value)
        case Loop():
            return replace(s, axes=new.axes(s.axes), body=relabel_block(s.body, new))


def relabel_block(block: Block, new: Renaming) -> Block:
    return tuple(relabel(s, new) for s in block)


def needed_for(wanted: set[str], block: Sequence[Statement]) -> list[Statement]:
    """The statements of one block that values depend on, in order."""
    wanted = set(wanted)
    chosen: list[Statement] = []
    for s in reversed(block):
        name = defined(s)
        if name in wanted:
            chosen.append(s)
            wanted |= used(s)
    return chosen[::-1]


def is_pointwise(nest: Nest) -> bool:
    """No reduction and no inner loop."""
    return not any(isinstance(s, Reduce | Loop) for s in nest.body)


def checks_places(nest: Nest) -> bool:
    """Whether the nest checks positions that it reads."""
    return any(isinstance(s, Place) for s in walk(nest.body))


def adds_in_place(nest: Nest) -> bool:
    """Whether the nest adds to what a buffer holds."""
    return any(isinstance(s, Store) and s.adds for s in walk(nest.body))


def size(nest: Nest) -> int:
    """The number of statements."""
    return sum(1 for _ in walk(nest.body))
