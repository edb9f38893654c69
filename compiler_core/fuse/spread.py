"""Recomputes cheap producers in each of their readers, so that nobody stores them.

In: a workspace. Out: the workspace without nests such as casts, masks and constants whose inputs cost
no more to read than their result would: reading `x` and converting it is cheaper than storing the
converted copy for two readers. A producer with one reader is left to the greedy merges.
"""

from __future__ import annotations

from compiler_core.fuse.accesses import accesses
from compiler_core.fuse.benefit import footprint, saving_of
from compiler_core.fuse.blocks import is_pointwise, walk
from compiler_core.fuse.legality import examine_copy
from compiler_core.fuse.limits import CHEAP_OPERATIONS, HEAVY
from compiler_core.fuse.merge import merged
from compiler_core.fuse.plan import Plan
from compiler_core.fuse.records import record_merge
from compiler_core.fuse.tidy import tidy
from compiler_core.fuse.workspace import Group, Workspace
from compiler_core.ir.loop import Load, Value

__all__ = ["spread_cheap_producers"]


def spread_cheap_producers(work: Workspace) -> None:
    """Inline each cheap nest with several readers into all of them, where all of them may."""
    for number in [group.number for group in work.groups()]:
        group = work.group(number)
        readers = _readers(work, group)
        if len(readers) < 2 or not _is_cheap(work, group):
            continue
        plans = [examine_copy(work, group, reader) for reader in readers]
        if not all(isinstance(plan, Plan) for plan in plans):
            continue
        for reader, plan in zip(readers, plans, strict=True):
            assert isinstance(plan, Plan)
            _inline(work, group, reader, plan)
        work.remove(group)


def _readers(work: Workspace, group: Group) -> list[Group]:
    """The nests that read a group's one buffer; none if anything else needs it."""
    if len(group.writes) != 1 or work.is_kept(group.writes[0], work.nodes):
        return []
    nodes = [work.nodes[number] for number in sorted(work.readers.get(group.writes[0], ()))]
    groups = [node for node in nodes if isinstance(node, Group)]
    return groups if len(groups) == len(nodes) else []


def _is_cheap(work: Workspace, group: Group) -> bool:
    if not is_pointwise(group.nest):
        return False
    ops = [s.op for s in walk(group.nest.body) if isinstance(s, Value)]
    if len(ops) > CHEAP_OPERATIONS or sum(op in HEAVY for op in ops) > 1:
        return False
    reads = {
        a.buffer: footprint(work, a) for a in accesses(group.nest) if isinstance(a.statement, Load)
    }
    result = work.bytes(group.writes[0])
    return len(reads) <= 3 and sum(reads.values()) <= result * 1.25


def _inline(work: Workspace, producer: Group, reader: Group, plan: Plan) -> None:
    nest = tidy(merged(producer.nest, plan, work.names), lambda buffer: True)
    members = tuple(dict.fromkeys(producer.members + reader.members))
    changed = work.replace_nest(reader, nest, members)
    saving = saving_of(work, (producer.nest, reader.nest), nest)
    record_merge(work, producer, reader, changed, producer.writes[0], saving)
