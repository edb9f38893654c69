"""Fits one nest into another: where the producer's axes lie among the consumer's.

In: two nests that may meet. Out: `Plan` or `Refusal`. The rule that everything serves: a merged nest
never loads what it stores. Each load of the producer's buffer is replaced by the value itself, found
by solving for the producer's position (`match.py`); so no position of the outer axes can read what
another one writes.

A producer with reductions ("row" below) keeps its outer axes: the consumer must read all its results
at one and the same outer position, and axes that it has besides become a loop. A pointwise producer
is recomputed where it is read; only if others need its buffer must it also run once, in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from compiler_core.fuse.accesses import Access, accesses, loads
from compiler_core.fuse.blocks import checks_places, is_pointwise
from compiler_core.fuse.limits import DIVISIONS, MOST_COPIES, is_parallel_enough, is_too_dear
from compiler_core.fuse.linear import steps
from compiler_core.fuse.match import Match, match
from compiler_core.fuse.plan import Plan, Positions, Refusal, Site, site_of
from compiler_core.fuse.reshape import split_axes
from compiler_core.fuse.solve import Solved, load_name, solve_loads, with_divisions
from compiler_core.fuse.strategy import runs_along, strategy_of
from compiler_core.fuse.workspace import Group, Workspace
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Axis, Load, Nest, Value

__all__ = ["fit_reader", "fit_siblings"]

_OVERHANG = 1.25  # how often a value may be computed: the last part of a split reduction has positions to spare


def fit_reader(
    work: Workspace, producer: Group, consumer: Group, needed: frozenset[str]
) -> Plan | Refusal:
    """Solve the consumer's loads; `needed` are the producer's buffers that must still be stored."""
    sites: dict[str, Site] = {}
    for buffer in producer.writes:
        if buffer not in consumer.reads:
            continue
        site = site_of(producer.nest, buffer)
        if site is None:
            return Refusal("reads another position of the producer", f"{buffer} is stored in parts")
        sites[buffer] = site
    solved = solve_loads(work, sites, consumer.nest)
    if is_pointwise(producer.nest):
        return _plan_pointwise(work, solved, sites, producer, needed)
    if solved.missed is not None:
        load = solved.missed
        return Refusal(
            "reads another position of the producer",
            f"the load of {load.buffer}[{load.statement.offset}] has no one position in it",
        )
    return _plan_row(work, solved, sites, producer)


def _plan_pointwise(
    work: Workspace,
    solved: Solved,
    sites: dict[str, Site],
    producer: Group,
    needed: frozenset[str],
) -> Plan | Refusal:
    """A producer without reductions: recompute at each read, run once in full if it must be stored."""
    reads = [a for a in loads(solved.nest) if a.buffer in sites]
    at = with_divisions(solved, sites, reads)
    if isinstance(at, Refusal):
        return at
    refusal = _refused_by_checks(producer, reads, solved) or _refused_by_cost(producer, reads, at)
    if refusal:
        return refusal
    plan = Plan(solved.nest, solved.nest.axes, at=at, sites=sites)
    if not needed:
        return plan
    anchor = next((a for a in reads if load_name(a) in solved.whole), None)
    if anchor is None:
        return Refusal(
            "different iteration space",
            f"{min(needed)} must be stored, and the consumer does not run over it once",
        )
    refusal = _refused_by_loop(work, solved.nest, anchor.inner)
    return refusal or replace(plan, anchor=at[load_name(anchor)], loop=anchor.inner)


def _refused_by_checks(producer: Group, reads: list[Access], solved: Solved) -> Refusal | None:
    """A producer that checks positions checks all of them, wherever it goes, and no others."""
    if not checks_places(producer.nest):
        return None
    if all(getattr(a.statement, "mask", None) is None for a in reads) and any(
        load_name(a) in solved.at for a in reads
    ):
        return None
    return Refusal(
        "would skip a bounds check", "the consumer reads a part, and every position must be checked"
    )


def _refused_by_cost(
    producer: Group, reads: list[Access], at: Mapping[str, Positions]
) -> Refusal | None:
    """Recomputing must stay cheap: few different positions, and little work where it is repeated."""
    different = {(a.buffer, tuple(at[load_name(a)].items()), a.inner) for a in reads}
    if len(different) > 1 and len(different) * producer.size > MOST_COPIES:
        return Refusal(
            "would recompute too much",
            f"it is read at {len(different)} different positions",
        )
    positions = max(1, steps(producer.nest.axes))
    times = max(steps(a.scope) for a in reads) / positions
    if times > _OVERHANG and is_too_dear(producer.nest):
        return Refusal(
            "would recompute too much", f"each of its values would be computed {times:.0f} times"
        )
    if any(isinstance(a.statement, Load) and a.statement.mask for a in reads):
        return _refused_by_mask(producer)
    return None


def _refused_by_mask(producer: Group) -> Refusal | None:
    divides = [
        s.name
        for s in producer.nest.body
        if isinstance(s, Value) and s.op in DIVISIONS and not s.dtype.is_float
    ]
    if not divides:
        return None
    return Refusal(
        "would compute where nothing is read",
        f"the integer division {divides[0]} would run where the consumer's mask does not hold",
    )


def _plan_row(
    work: Workspace, solved: Solved, sites: dict[str, Site], producer: Group
) -> Plan | Refusal:
    """A producer with reductions: one outer position for all reads; other outer axes become a loop."""
    outer = [axis.name for axis in producer.nest.axes]
    places = {tuple(at[name] for name in outer) for at in solved.at.values()}
    if len(places) != 1:
        return Refusal(
            "reads another position of the producer", "it is read at more than one outer position"
        )
    place = dict(zip(outer, next(iter(places)), strict=True))
    plan = Plan(solved.nest, solved.nest.axes, at=solved.at, sites=sites)
    return _plan_around(work, plan, producer.nest, place)


def _plan_around(
    work: Workspace, plan: Plan, first: Nest, place: Mapping[str, Index]
) -> Plan | Refusal:
    """Put `first` at `place` among the consumer's outer axes; those left become a loop."""
    nest = plan.consumer
    at_names = frozenset().union(*(e.names for e in place.values()))
    outer = tuple(axis for axis in nest.axes if axis.name in at_names)
    if at_names - {axis.name for axis in outer} - set(work.program.symbols):
        return _refused_by_depth(bool(plan.sites))
    rest = tuple(axis for axis in nest.axes if axis.name not in at_names)
    if rest and not is_pointwise(nest):
        return Refusal(
            "different iteration space", f"the consumer's reductions run over {_text(nest.axes)}"
        )
    if rest or not is_pointwise(nest):
        refusal = _refused_by_direction(first, nest, rest)
        if refusal:
            return refusal
    if rest:
        refusal = _refused_by_width(work, strategy_of(first), outer, rest)
        if refusal:
            return refusal
    return replace(plan, axes=outer, anchor=place, rest=rest)


def _refused_by_depth(is_reader: bool) -> Refusal:
    """The first nest's outer positions are steps of an inner loop of the second."""
    if is_reader:
        return Refusal(
            "would recompute a reduction",
            "it would run again at each step of the consumer's inner loop",
        )
    return Refusal(
        "different iteration space", "the outer positions of one are inner ones of the other"
    )


def _refused_by_direction(first: Nest, second: Nest, rest: tuple[Axis, ...]) -> Refusal | None:
    """Both must walk memory the same way, or one of them would stride through it."""
    if not first.axes:
        return None
    mine = strategy_of(first)
    if is_pointwise(second):
        outer = {axis.name for axis in second.axes} - {axis.name for axis in rest}
        theirs = "column" if runs_along(outer, accesses(second)) else "row"
    else:
        theirs = strategy_of(second)
    if mine == theirs:
        return None
    return Refusal(
        "different iteration space", f"one runs along memory by {mine}, the other by {theirs}"
    )


def _refused_by_loop(work: Workspace, nest: Nest, loop: tuple[Axis, ...]) -> Refusal | None:
    return _refused_by_width(work, strategy_of(nest), nest.axes, loop) if loop else None


def _refused_by_width(
    work: Workspace, strategy: str, outer: tuple[Axis, ...], loop: tuple[Axis, ...]
) -> Refusal | None:
    """A loop inside few positions would leave most of the machine idle."""
    if is_parallel_enough(work.target, strategy, outer, loop):
        return None
    return Refusal(
        "too little parallel work",
        f"a loop over {_text(loop)} would run inside only {_text(outer) or 'one'} positions",
    )


def fit_siblings(work: Workspace, first: Nest, second: Nest, buffer: str) -> Plan | Refusal:
    """Two nests that read each element of a buffer once meet where they read the same one."""
    for mine, theirs in _meetings(first, second, buffer):
        found = match(mine, theirs, work.names)
        if found is None or not _covers(found, theirs):
            continue
        plan = Plan(split_axes(second, found.splits), ())
        place = {axis.name: found.at[axis.name] for axis in first.axes}
        return _plan_around(work, plan, first, place)
    return Refusal("different iteration space", f"they run over {buffer} in different shapes")


def _meetings(first: Nest, second: Nest, buffer: str) -> Iterator[tuple[Access, Access]]:
    theirs = [a for a in loads(second) if a.buffer == buffer]
    for mine in loads(first):
        if mine.buffer == buffer:
            yield from ((mine, other) for other in theirs)


def _covers(found: Match, reader: Access) -> bool:
    """Whether the match uses every axis that the reader runs over."""
    whole = {axis.name for axis in reader.scope if axis.extent.constant != 1}
    return whole - set(found.splits) <= found.covers


def _text(axes: tuple[Axis, ...]) -> str:
    return " × ".join(str(axis.extent) for axis in axes)
