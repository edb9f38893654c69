"""Builds the merged nest of a plan.

In: the producer's nest and a `Plan`. Out: one nest in which no statement loads what another stores.

    nest exp_0 for i<8, j<16: x = load a[..]; e = exp x; store b[i*16 + j] = e
    nest sum_0 for k<8: s = sum over r<16: y = load b[k*16 + r] yield y; store c[k] = s
    becomes
    nest for k<8: s = sum over r<16: x = load a[..]; e = exp x yield e; store c[k] = s

Origins: a copied statement keeps its own. The handle of a load that is replaced goes to the first
statement that used it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compiler_core.fuse.blocks import (
    Renaming,
    defined,
    index_names,
    needed_for,
    relabel,
    relabel_block,
    used,
    value_names,
    walk,
)  # fmt: skip
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.masked import masked
from compiler_core.fuse.plan import Plan, Positions, Site
from compiler_core.fuse.reshape import inner_axes
from compiler_core.ir.loop import (
    Block,
    Constant,
    Load,
    Loop,
    Nest,
    Reduce,
    Statement,
    Store,
    Value,
)  # fmt: skip
from compiler_core.provenance import Origins, union

__all__ = ["merged"]


def merged(producer: Nest, plan: Plan, names: Names) -> Nest:
    """The one nest that does what both did; it still stores all that both stored."""
    first = _placed(producer, plan, names)
    body = _Replacement(producer, plan, names).block(plan.consumer.body)
    if plan.rest:
        body = (Loop(plan.rest, body, plan.consumer.origins),)
    origins = union(producer.origins, plan.consumer.origins)
    return Nest(plan.consumer.name, plan.axes, first + body, origins)


def _visible(block: Block) -> list[str]:
    return [name for name in map(defined, block) if name]


def _placed(producer: Nest, plan: Plan, names: Names) -> Block:
    """The producer's own statements over the merged axes; nothing if all its reads recompute."""
    if plan.anchor is None:
        return ()
    if not plan.loop:
        return relabel_block(producer.body, Renaming({}, plan.anchor))
    fresh = {axis.name: names.fresh(axis.name) for axis in plan.loop}
    copies = {name: names.fresh(name) for name in _visible(producer.body)}
    inner = Renaming(fresh)
    place = {axis: inner.index(e) for axis, e in plan.anchor.items()}
    body = relabel_block(producer.body, Renaming(copies, place))
    return (Loop(inner.axes(plan.loop), body, producer.origins),)


@dataclass(slots=True)
class _Replacement:
    """Rewrites the consumer's block: loads of the producer's buffers become the values themselves."""

    producer: Nest
    plan: Plan
    names: Names
    alias: dict[str, str] = field(default_factory=dict)  # load → the value that stands for it
    owed: dict[str, Origins] = field(default_factory=dict)  # load → origins its first user takes

    def block(self, block: Block) -> Block:
        return tuple(new for s in block for new in self._statement(s))

    def _statement(self, s: Statement) -> Block:
        if isinstance(s, Load) and s.name in self.plan.at:
            return self._value_of(s)
        if isinstance(s, Reduce | Loop):
            s = replace(s, body=self.block(s.body))
        if used(s).isdisjoint(self.alias):
            return (s,)
        return (relabel(self._pay(s), Renaming(self.alias)),)

    def _pay(self, s: Statement) -> Statement:
        """Give a statement the origins of the loads that it is the first to use."""
        names = index_names(s).union(value_names(s)).intersection(self.owed)
        if not names:
            return s
        owed = union(*(self.owed.pop(name) for name in sorted(names)))
        return replace(s, origins=s.origins | owed)

    def _value_of(self, load: Load) -> Block:
        """The statements that give the value of a load, now under its alias or its own name.

        An operator that only copies leaves no statement of its own: who reads the copy names its load.
        """
        site = self.plan.sites[load.buffer]
        copied, value = self._made_at(load, site, self.plan.at[load.name])
        paid = [self.owed.pop(name) for name in sorted(used(load)) if name in self.owed]
        origins = union(load.origins, _copied_loads(_stored(site)), *paid)
        if load.mask is not None:
            return (*copied, *self._where(load, value, origins))
        self.alias[load.name], self.owed[load.name] = value, origins
        return copied

    def _made_at(self, load: Load, site: Site, at: Positions) -> tuple[Block, str]:
        """The value at this position, and the statements that must compute it first."""
        if self._is_here(site, at):
            return (), _stored(site).value
        return self._copy(load, site, at)

    def _is_here(self, site: Site, at: Positions) -> bool:
        """Whether the value stands in the body already, at the same position."""
        if site.loop is not None or self.plan.anchor is None or self.plan.loop:
            return False
        return all(at[axis.name] is self.plan.anchor[axis.name] for axis in self.producer.axes)

    def _copy(self, load: Load, site: Site, at: Positions) -> tuple[Block, str]:
        """The statements that compute the value at this position, under new names."""
        store = _stored(site)
        block = site.loop.body if site.loop else self.producer.body
        wanted = needed_for({store.value}, block)
        inside = [n for s in wanted for n in _all_names((s,))]
        mapping = {name: self.names.fresh(name) for name in inside}
        mapping.update(
            {axis.name: self.names.fresh(axis.name) for axis in inner_axes(tuple(wanted))}
        )
        copies = relabel_block(tuple(wanted), Renaming(mapping, at))
        copies = relabel_block(copies, Renaming(self.alias)) if self.alias else copies
        if load.mask is not None:
            mask = self.alias.get(load.mask, load.mask)
            copies = masked(copies, mask, load.origins, self.names)
        return copies, mapping.get(store.value, store.value)

    def _where(self, load: Load, value: str, origins: Origins) -> Block:
        """The value where the load's mask holds, and its constant elsewhere."""
        mask = self.alias.get(load.mask or "", load.mask or "")
        number = float(load.other) if load.dtype.is_float else load.other
        other = Constant(self.names.fresh(load.name), number, load.dtype, origins)
        return other, Value(load.name, "where", (mask, value, other.name), load.dtype, origins)


def _stored(site: Site) -> Store:
    assert isinstance(site.access.statement, Store), "a site is a store"
    return site.access.statement


def _copied_loads(store: Store) -> Origins:
    """The handles of loads whose value the store was the first to use."""
    return frozenset(h for h in store.origins if not h.endswith(f".store_{store.buffer}"))


def _all_names(block: Block) -> list[str]:
    return [name for s in walk(block) if (name := defined(s))]
