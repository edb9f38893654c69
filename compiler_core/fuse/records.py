"""The records that fusion leaves: one per candidate pair, one rewrite per merge, one per reduction on a GPU.

In: what was decided. Out: "fuse" decisions and rewrites in the recorder. `about` are the handles of
the two lowered nests that the buffer between them connects.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from compiler_core.fuse.benefit import Saving
from compiler_core.fuse.linear import product
from compiler_core.fuse.merge import merged
from compiler_core.fuse.plan import Refusal
from compiler_core.fuse.split_rules import Cut, Whole
from compiler_core.fuse.workspace import Group, Workspace
from compiler_core.ir.loop import Nest, Reduce
from compiler_core.ir.text import print_block
from compiler_core.provenance import handle
from compiler_core.recording import Decision, Rewrite

__all__ = ["record_merge", "record_refusal", "record_split"]

_RULE = f"compiler_core/fuse/{Path(merged.__code__.co_filename).name}:{inspect.getsourcelines(merged)[1]}"


def record_merge(
    work: Workspace, first: Group, second: Group, after: Group, shared: str, saving: Saving
) -> Decision:
    """A merge that was done. `bytes` are None where a size is symbolic; `estimate` has a number."""
    about = _ends(work, first, second, shared)
    recorder = work.context.recorder
    if recorder.explore:
        before = f"{_text(first.nest)}\n{_text(second.nest)}"
        rule = "merge producer into consumer"
        recorder.rewrite(Rewrite("fuse", rule, _RULE, before, _text(after.nest), about))
    reason = f"{shared} stays in registers" if shared in first.writes else f"{shared} is read once"
    return recorder.decide(
        "fuse",
        about,
        "fused",
        reason,
        category="fused",
        **_bytes(saving),
        first=list(first.members),
        second=list(second.members),
    )


def record_refusal(
    work: Workspace, first: Group, second: Group, refusal: Refusal, shared: str, estimate: int
) -> Decision:
    """A candidate pair that stays apart; `estimate` bytes was what it promised to save."""
    return work.context.recorder.decide(
        "fuse",
        _ends(work, first, second, shared),
        "refused",
        refusal.reason,
        category=refusal.category,
        bytes=None,
        estimate=estimate,
        first=list(first.members),
        second=list(second.members),
    )


def record_split(work: Workspace, s: Reduce, cut: Cut | Whole) -> Decision:
    """A reduction on a GPU: split, into how many parts, or left whole. Numbers are None where symbolic."""
    if isinstance(cut, Whole):
        return work.context.recorder.decide("split", s.origins, "whole", cut.reason)
    part = product(axis.extent for axis in cut.inner)
    reason = f"{cut.reason}: {cut.parts} parts of {part}"
    sizes = {"parts": cut.parts.constant, "part": part.constant}
    return work.context.recorder.decide("split", s.origins, "split", reason, **sizes)


def _bytes(saving: Saving) -> dict[str, int | None]:
    return {"bytes": saving.bytes if saving.is_exact else None, "estimate": saving.bytes}


def _text(nest: Nest) -> str:
    axes = ", ".join(f"{axis.name} < {axis.extent}" for axis in nest.axes)
    return f"nest {nest.name} for {axes}:\n{print_block(nest.body, 1)}"


def _ends(work: Workspace, first: Group, second: Group, shared: str) -> tuple[str, ...]:
    """The lowered nests at both ends of the buffer."""
    readers = work.takers.get(shared, ())
    one = work.maker.get(shared) if shared in first.writes else None
    if one is None:
        one = next((n for n in readers if n in first.members), first.members[0])
    other = next((n for n in readers if n in second.members and n != one), second.members[0])
    return tuple(handle("lower", f"{work.part}/{name}") for name in (one, other))
