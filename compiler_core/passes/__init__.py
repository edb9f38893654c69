"""Graph to graph: the rewrites that tidy an ATen graph before it is lowered.

In: a functional ATen graph. Out: an equal one with less in it. Each pass is a pure function in a file of
its own; this list is their order.
"""

from __future__ import annotations

from torch import fx

from compiler_core.options import Context
from compiler_core.passes.drop_noop_views import drop_noop_views
from compiler_core.passes.fold_constants import fold_constants
from compiler_core.passes.merge_common_subexpressions import merge_common_subexpressions
from compiler_core.passes.remove_dead_code import remove_dead_code
from compiler_core.passes.simplify_identities import simplify_identities

__all__ = [
    "PASSES", "drop_noop_views", "fold_constants", "merge_common_subexpressions", "remove_dead_code",
    "simplify_identities", "tidy",
]  # fmt: skip

PASSES = (
    remove_dead_code,  # autodiff leaves derivatives that nobody asked for; spare the others the work
    fold_constants,  # seeds of gradients and masks are uniform: their arithmetic is known
    simplify_identities,  # x * 1 and copies hide that two values are one
    drop_noop_views,  # double transposes hide it too
    merge_common_subexpressions,  # forward and backward compute the same things
    remove_dead_code,  # what the others left without a reader
)


def tidy(graph: fx.GraphModule, context: Context) -> fx.GraphModule:
    """Run the passes in order, timed; verified after each under `verify` and `strict`."""
    for run in PASSES:
        with context.recorder.phase(run.__name__):
            graph = run(graph, context)
        if context.options.is_verifying:
            graph.graph.lint()
    return graph
