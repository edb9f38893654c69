"""Merges the nests of a lowered program into kernels, and plans their buffers.

In: `Lowered`, a nest per operator. Out: `Fused`: the nests that are left are kernels, in execution
order, with what each buffer's memory is used for. A table of contents; README.md lists the files.
"""

from __future__ import annotations

from compiler_core.fuse.drop import drop_unread_nests
from compiler_core.fuse.finish import finish
from compiler_core.fuse.greedy import merge_greedily
from compiler_core.fuse.spread import spread_cheap_producers
from compiler_core.fuse.start import start
from compiler_core.ir.verify import verify_program
from compiler_core.options import Context
from compiler_core.stages import Fused, Lowered

__all__ = ["fuse"]


def fuse(
    lowered: Lowered, context: Context, forbid: frozenset[frozenset[str]] = frozenset()
) -> Fused:
    """Kernels and buffer plan of a lowered program.

    `forbid` holds pairs of lowered nests, by name, that must not share a kernel. Leaves one "fuse"
    record per candidate pair, one "reuse" record per reused buffer. Raises VerifyError when the
    options ask to verify and the result is not well formed.
    """
    work = start(lowered, context, forbid)  # origins become handles of `lower`; axes are coalesced
    drop_unread_nests(work)  # what only they read must not keep others from merging
    spread_cheap_producers(work)  # first: a cast that two kernels read must not be stored by one
    merge_greedily(work)  # the pair that saves most bytes goes first
    fused = finish(work)  # execution order, names, strategies, memory
    if context.options.is_verifying:
        verify_program(fused.program, "fuse")
    return fused
