"""The producer's position for each load of the consumer.

In: where a producer makes its buffers, and a consumer's nest. Out: `Solved`: the consumer, its axes split
where that lets a load meet the producer one to one; and the positions. What does not meet is divided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler_core.fuse.accesses import Access, loads
from compiler_core.fuse.blocks import defined, walk
from compiler_core.fuse.match import Match, digits, match
from compiler_core.fuse.plan import Positions, Refusal, Site
from compiler_core.fuse.reshape import split_axes
from compiler_core.fuse.workspace import Workspace
from compiler_core.ir.loop import Load, Nest

__all__ = ["Solved", "load_name", "solve_loads", "with_divisions"]


@dataclass(frozen=True, slots=True)
class Solved:
    """The consumer after splitting, and the producer's position for each load of it, by name.

    `whole` are loads that meet every position of the producer once; `missed` is the first load that
    has no match.
    """

    nest: Nest
    at: dict[str, Positions]
    whole: frozenset[str]
    missed: Access | None


def solve_loads(work: Workspace, sites: Mapping[str, Site], nest: Nest) -> Solved:
    """Match each load. A split changes the nest, so after each one all loads are matched again."""
    while True:
        found = {
            load_name(load): (load, match(sites[load.buffer].access, load, work.names))
            for load in loads(nest)
            if load.buffer in sites
        }
        splits = next((m.splits for _, m in found.values() if m and m.splits), None)
        if splits is None:
            break
        nest = split_axes(nest, splits)
    at: dict[str, Positions] = {name: m.at for name, (_, m) in found.items() if m}
    whole = frozenset(name for name, (load, m) in found.items() if m and _is_whole(m, load))
    missed = next((load for load, m in found.values() if m is None), None)
    return Solved(nest, at, whole, missed)


def _is_whole(found: Match, load: Access) -> bool:
    """Whether an unmasked load uses each axis that it runs over (a match uses none twice)."""
    mine = {axis.name for axis in load.scope if axis.extent.constant != 1}
    return mine <= found.covers and getattr(load.statement, "mask", None) is None


def with_divisions(
    solved: Solved, sites: Mapping[str, Site], reads: list[Access]
) -> dict[str, Positions] | Refusal:
    """All positions: by division for the loads that did not match."""
    at = dict(solved.at)
    known = {name: s for s in walk(solved.nest.body) if (name := defined(s))}
    for load in reads:
        if load_name(load) in at:
            continue
        positions = digits(sites[load.buffer].access, load, known)
        if positions is None:
            return Refusal(
                "reads another position of the producer",
                f"the position of {load.buffer}[{load.statement.offset}] cannot be computed",
            )
        at[load_name(load)] = positions
    return at


def load_name(load: Access) -> str:
    assert isinstance(load.statement, Load), "only loads are solved for"
    return load.statement.name
