"""What goes into a layout and what comes out: boxes with sizes; places and paths."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Box", "Drawing", "Edge", "Point"]

Edge = tuple[int, int]  # positions of two boxes, producer first
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A node to be placed. `about` are its origins: what a backward node has in common with a forward one."""

    name: str
    width: float
    height: float
    lane: int = 0  # 0 forward, 1 backward
    about: tuple[str, ...] = ()
    is_source: bool = False  # an input or parameter


@dataclass(frozen=True, slots=True)
class Drawing:
    """Centres of the boxes and the points of each edge (None: too long, drawn as a stub at both ends)."""

    places: list[Point]
    paths: list[list[Point] | None]
    width: float
    height: float
    lanes: tuple[tuple[str, float, float], ...] = ()  # title, left, width
