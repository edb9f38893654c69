"""Computes equal statements once; the one that stays takes the origins of all.

    x = load a[i]; y = load a[i]; z = mul x y      →      x = load a[i]; z = mul x x

Requires single assignment. A value of an outer block serves the inner ones, never the reverse. Two
reductions are equal when they are up to the names inside.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from compiler_core.fuse.blocks import Renaming, defined, relabel, used, walk, with_body
from compiler_core.ir.loop import (
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
from compiler_core.provenance import Origins

__all__ = ["share_equal_statements"]

_COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor", "eq", "ne"})


def share_equal_statements(nest: Nest) -> Nest:
    """The nest with each load and pure operation done once."""
    sharing = _Sharing(frozenset(s.buffer for s in walk(nest.body) if isinstance(s, Store)))
    body = sharing.block(nest.body, {})
    body = _with_origins(body, sharing.gained)
    return nest if body == nest.body else replace(nest, body=body)


@dataclass(slots=True)
class _Sharing:
    stored: frozenset[str]
    alias: dict[str, str] = field(default_factory=dict)
    gained: dict[str, Origins] = field(default_factory=dict)
    reductions: dict[str, Reduce] = field(default_factory=dict)
    alike: dict[Hashable, list[Reduce]] = field(default_factory=dict)

    def block(self, block: Block, known: dict[Hashable, str]) -> Block:
        """The block without repetitions of itself or of `known`, what the blocks around it have."""
        known = dict(known)
        result: list[Statement] = []
        for s in block:
            s = self._inside(self._aliased(s), known)
            key = self._key(s)
            name = defined(s)
            if key is None or name is None or key not in known:
                result.append(s)
                if key is not None and name is not None:
                    known[key] = name
                if isinstance(s, Reduce):
                    self.reductions[s.name] = s
                continue
            self._forget(s, name, known[key])
        return tuple(result)

    def _forget(self, s: Statement, name: str, first: str) -> None:
        """`first` stands for the statement from now on, and what is in it for what is in this one."""
        self.alias[name] = first
        self._credit(first, s.origins)
        if isinstance(s, Reduce):
            for mine, theirs in zip(walk(s.body), walk(self.reductions[first].body), strict=True):
                self._credit(defined(theirs) or "", mine.origins)

    def _credit(self, name: str, origins: Origins) -> None:
        self.gained[name] = self.gained.get(name, frozenset()) | origins

    def _aliased(self, s: Statement) -> Statement:
        if not self.alias or used(s).isdisjoint(self.alias):
            return s
        return relabel(s, Renaming(self.alias))

    def _inside(self, s: Statement, known: dict[Hashable, str]) -> Statement:
        if not isinstance(s, Reduce | Loop):
            return s
        s = with_body(s, self.block(s.body, known))
        return self._aliased(s)  # what a reduction yields may have been shared

    def _key(self, s: Statement) -> Hashable | None:
        match s:
            case Constant(value=value, dtype=dtype):
                return "constant", repr(value), dtype.name
            case Value(op=op, args=args, dtype=dtype):
                operands = tuple(sorted(args)) if op in _COMMUTATIVE else args
                return "value", op, operands, dtype.name
            case Position(index=index, dtype=dtype):
                return "position", index, dtype.name
            case Place(_, value, extent, check, dimension):
                return "place", value, extent, check, dimension
            case Load(buffer=buffer) if buffer not in self.stored:
                return "load", buffer, s.offset, s.mask, repr(s.other), s.dtype.name
            case Reduce():
                return self._reduction_key(s)
        return None

    def _reduction_key(self, s: Reduce) -> Hashable | None:
        """One key for all reductions that are equal up to the names inside."""
        if any(isinstance(t, Store | Loop) for t in walk(s.body)):
            return None
        shape = _shape_of(s)
        alike = self.alike.setdefault(shape, [])
        number = next((n for n, other in enumerate(alike) if _is_same(s, other)), len(alike))
        if number == len(alike):
            alike.append(s)
        return "reduce", shape, number


def _shape_of(s: Reduce) -> Hashable:
    """What equal reductions have in common, cheap to compare."""
    inside = tuple(
        (type(t).__name__, getattr(t, "op", ""), getattr(t, "buffer", "")) for t in walk(s.body)
    )
    return s.kind, s.dtype.name, tuple(axis.extent for axis in s.axes), inside


def _is_same(a: Reduce, b: Reduce) -> bool:
    """Whether two reductions of one shape are equal up to the names inside."""
    names = dict(zip(_names_in(a), _names_in(b), strict=True))
    return _anonymous(relabel(a, Renaming(names))) == _anonymous(b)


def _names_in(s: Reduce) -> list[str]:
    inner = [t for t in walk((s,)) if isinstance(t, Reduce)]
    return [n for t in walk((s,)) if (n := defined(t))] + [x.name for t in inner for x in t.axes]


def _anonymous(s: Statement) -> Statement:
    """The statement without origins."""
    s = replace(s, origins=frozenset())
    return with_body(s, tuple(map(_anonymous, s.body))) if isinstance(s, Reduce | Loop) else s


def _with_origins(block: Block, gained: dict[str, Origins]) -> Block:
    return tuple(_gaining(s, gained) for s in block) if gained else block


def _gaining(s: Statement, gained: dict[str, Origins]) -> Statement:
    if isinstance(s, Reduce | Loop):
        s = with_body(s, _with_origins(s.body, gained))
    more = gained.get(defined(s) or "")
    return replace(s, origins=s.origins | more) if more else s
