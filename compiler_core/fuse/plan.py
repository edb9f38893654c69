"""What legality answers: a plan of the merge, or a refusal with its reason. Data only.

In: `legality.py` and `fit.py` make them. Out: `merge.py` builds from a plan, `greedy.py` records both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler_core.fuse.accesses import Access, stores
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Axis, Loop, Nest

__all__ = ["Plan", "Positions", "Refusal", "Site", "site_of"]

Positions = Mapping[str, Index]  # writer axis → where it is, over the reader's axes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not: a constant category, and the sentence with the facts of the case."""

    category: str
    reason: str


@dataclass(frozen=True, slots=True)
class Site:
    """Where a nest makes the value of a buffer: the store, and the loop around it if any."""

    access: Access
    loop: Loop | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How to join a producer and a consumer (for siblings: a first and a second).

    `axes` are the outer axes of the merged nest. `anchor` places the producer's axes over the
    consumer's; None where the producer's own statements are not needed (each read recomputes).
    `loop` are axes of the consumer's inner blocks that the producer's statements must loop over;
    `rest` are outer axes of the consumer that become a loop. `at` gives the producer's position for
    each load that is replaced, by the load's name; `sites` where each of its buffers is made.
    """

    consumer: Nest
    axes: tuple[Axis, ...]
    anchor: Positions | None = None
    loop: tuple[Axis, ...] = ()
    rest: tuple[Axis, ...] = ()
    at: dict[str, Positions] = field(default_factory=dict)
    sites: dict[str, Site] = field(default_factory=dict)


def site_of(nest: Nest, buffer: str) -> Site | None:
    """The one store to a buffer, where it stands in the nest's body or in a loop of it."""
    found = [access for access in stores(nest) if access.buffer == buffer]
    if len(found) != 1 or len(found[0].around) > 1:
        return None
    around = found[0].around
    if not around:
        return Site(found[0], None)
    return Site(found[0], around[0]) if isinstance(around[0], Loop) else None
