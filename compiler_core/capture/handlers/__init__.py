"""Handlers of the canonical operations, one file per family, 3-12 lines each.

Each pops, computes and pushes. Guards and provenance are not their business: `frame.pop` makes the
guards, and the graph builder reads where the frames are.
"""

from compiler_core.capture.handlers import (  # noqa: F401  (each registers its handlers)
    attributes,
    building,
    calls,
    control,
    exceptions,
    generators,
    iteration,
    matching,
    names,
    operations,
    stack,
)
from compiler_core.capture.handlers.table import HANDLERS

__all__ = ["HANDLERS"]
