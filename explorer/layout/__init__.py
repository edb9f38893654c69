"""Layered layout of graphs in linear time, in Python: deterministic, so that pictures can be tested.

    ranks → order within each rank → x by isotonic regression → paths

After Sugiyama, Tagawa & Toda (1981), with Sander's dummy nodes, barycentre sweeps, and x coordinates by
the pool-adjacent-violators algorithm. `hubs.py` copies parameters that everything reads; `lanes.py`
puts the backward graph beside the forward one.
"""

from explorer.layout.drawing import Box, Drawing
from explorer.layout.hubs import clone_hubs
from explorer.layout.lanes import in_lanes
from explorer.layout.layered import layered

__all__ = ["Box", "Drawing", "clone_hubs", "in_lanes", "layered"]
