"""Drops nests that nobody reads.

In: a workspace. Out: the workspace without groups that store only to temps without readers, and those
that only they read. One "drop" record each. Library calls stay: they may draw random numbers.
"""

from __future__ import annotations

from compiler_core.fuse.workspace import Workspace
from compiler_core.provenance import handle

__all__ = ["drop_unread_nests"]


def drop_unread_nests(work: Workspace) -> None:
    """Remove dead groups, the last ones first."""
    for group in reversed(work.groups()):
        if any(work.is_kept(buffer, ()) for buffer in group.writes):
            continue
        work.remove(group)
        about = {handle("lower", f"{work.part}/{name}") for name in group.members}
        work.context.recorder.decide("drop", about, "dropped", "nobody reads what it writes")
