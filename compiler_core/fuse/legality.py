"""May these two nests become one? The answer is a plan, or a refusal with its reason.

In: two groups of a workspace. Out: `Plan` (how `merge.py` would join them) or `Refusal`. Here stands
what speaks against a pair whatever is in its nests; `fit.py` then fits the nests into each other.
"""

from __future__ import annotations

from compiler_core.fuse.blocks import adds_in_place, is_pointwise
from compiler_core.fuse.fit import fit_reader, fit_siblings
from compiler_core.fuse.limits import MOST_BUFFERS, MOST_STATEMENTS
from compiler_core.fuse.plan import Plan, Refusal
from compiler_core.fuse.workspace import Group, Workspace
from compiler_core.ir.loop import Call

__all__ = ["examine", "examine_copy", "examine_siblings"]


_ALONE = Refusal(
    "too little parallel work", "sums at positions from memory are spread over their own axes"
)


def examine(work: Workspace, producer: Group, consumer: Group) -> Plan | Refusal:
    """Producer and consumer of at least one buffer."""
    if adds_in_place(consumer.nest) and not is_pointwise(producer.nest):
        return _ALONE
    pair = (producer.number, consumer.number)
    needed = frozenset(buffer for buffer in producer.writes if work.is_kept(buffer, pair))
    return _refused_by_graph(work, producer, consumer) or fit_reader(
        work, producer, consumer, needed
    )


def examine_copy(work: Workspace, producer: Group, consumer: Group) -> Plan | Refusal:
    """The same, when the producer goes into each of its consumers and is stored for none."""
    if work.fixed.isdisjoint((*producer.reads, *producer.writes)):
        return _refused_by_graph(work, producer, consumer) or fit_reader(
            work, producer, consumer, frozenset()
        )
    return Refusal("written in place", "a copy would read what others have written since")


def examine_siblings(work: Workspace, a: Group, b: Group, buffer: str) -> Plan | Refusal:
    """Two readers of one buffer, with nothing between them; `a` is to come first."""
    if adds_in_place(a.nest) or adds_in_place(b.nest):
        return _ALONE
    return _refused_by_graph(work, a, b) or fit_siblings(work, a.nest, b.nest, buffer)


def _refused_by_graph(work: Workspace, a: Group, b: Group) -> Refusal | None:
    """What speaks against a pair whatever is in its nests."""
    names = {*a.members, *b.members}
    if any(pair <= names for pair in work.forbid):
        return Refusal("forbidden", "the caller asked to keep them apart")
    touched = {*a.reads, *a.writes, *b.reads, *b.writes}
    in_place = _in_place(a, b) & work.fixed
    if in_place:
        return Refusal(
            "written in place", f"{min(in_place)} is written more than once, or by its reader"
        )
    if len({work.buffer(name).device for name in touched}) > 1:
        return Refusal("different devices", "they work on different devices")
    if len(touched) > MOST_BUFFERS:
        return Refusal(
            "too many buffers", f"{len(touched)} buffers; a kernel has at most {MOST_BUFFERS}"
        )
    if a.size + b.size > MOST_STATEMENTS:
        return Refusal(
            "too many statements",
            f"{a.size + b.size} statements; a kernel has at most {MOST_STATEMENTS}",
        )
    return _refused_by_path(work, a, b) or _refused_by_path(work, b, a)


def _in_place(a: Group, b: Group) -> set[str]:
    """Buffers that both touch, or that one of them reads and writes."""
    mine, theirs = {*a.reads, *a.writes}, {*b.reads, *b.writes}
    return (mine & theirs) | ({*a.reads} & {*a.writes}) | ({*b.reads} & {*b.writes})


def _refused_by_path(work: Workspace, first: Group, last: Group) -> Refusal | None:
    """Another node that needs `first` and is needed by `last` would have to run in their middle."""
    goal = last.number
    between = [n for n in work.successors(first.number) if n != goal and work.reaches(n, goal)]
    if not between:
        return None
    call = _call_on_the_way(work, between, goal)
    if call is not None:
        return Refusal(
            "dependency through a library call", f"{call.name} ({call.target}) runs between them"
        )
    name = _label(work, min(between))
    return Refusal("cycle", f"{name} runs after one and before the other")


def _call_on_the_way(work: Workspace, between: list[int], goal: int) -> Call | None:
    for number, node in work.nodes.items():
        if not isinstance(node, Call) or not work.reaches(number, goal):
            continue
        if any(n == number or work.reaches(n, number) for n in between):
            return node
    return None


def _label(work: Workspace, number: int) -> str:
    node = work.nodes[number]
    return node.name if isinstance(node, Call) else node.members[0]
