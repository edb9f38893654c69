"""What happened so far in this process, as counts that a test can rely on.

A graph is counted when it *runs* for the first time, through generated code or the chosen backend:
a function that was never compiled, or whose graph was built and never used, counts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

__all__ = ["Counters", "counters"]


@dataclass(slots=True)
class Counters:
    """`graphs` built and executed; `fallbacks` because something inside failed; `breaks`; `recompiles`
    (a further version of a frame); `skipped_frames`; ATen operators in kernels (`ops_generated`), in
    library calls (`ops_library`) and in graphs that run in eager (`ops_eager`); `cache_hits` of built kernels.
    """

    graphs: int = 0
    fallbacks: int = 0
    breaks: int = 0
    recompiles: int = 0
    skipped_frames: int = 0
    ops_generated: int = 0
    ops_library: int = 0
    ops_eager: int = 0
    cache_hits: int = 0

    def snapshot(self) -> Counters:
        """A copy that later work does not change."""
        return replace(self)

    def clear(self) -> None:
        for f in fields(self):
            setattr(self, f.name, 0)


counters = Counters()
