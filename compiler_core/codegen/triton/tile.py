"""What a statement of the IR becomes in a program: variables, the tile they fill, the scope they live in.

A kernel's tile has an order of dimensions: `x` for positions of the nest's axes, `r0`, `r1` … for the
positions of inner loops. A variable knows which of them it varies along; in a two-dimensional tile it has
size 1 along the others, so it broadcasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compiler_core.codegen.writer import Line
from compiler_core.ir.dtypes import DType
from compiler_core.provenance import NOWHERE, Origins

__all__ = ["NO_DIMS", "Dims", "Scope", "Seen", "Tile", "Variable"]

Dims = frozenset[str]
NO_DIMS: Dims = frozenset()


@dataclass(frozen=True, slots=True)
class Variable:
    """A name of the IR in the kernel: an identifier, or a number (`constant` is then set).

    `line` is the line that makes it. A number has none; its origins go to the lines that use it.
    """

    text: str
    dtype: DType
    dims: Dims = NO_DIMS
    line: Line | None = None
    constant: float | int | bool | None = None
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Tile:
    """The block of positions that statements at one place of a kernel work on."""

    order: tuple[str, ...]
    active: Dims
    blocks: dict[str, str]  # dimension -> its constant, such as XBLOCK
    masks: dict[str, str]  # dimension -> its mask, where one is needed

    def shape(self, dims: Dims | None = None) -> str:
        """The shape of what varies along `dims` (by default, all active ones)."""
        wanted = self.active if dims is None else dims
        return f"[{', '.join(self.blocks[d] if d in wanted else '1' for d in self.order)}]"

    def masks_of(self, dims: Dims) -> list[str]:
        return [self.masks[d] for d in self.order if d in dims and d in self.masks]

    def inside(self, dim: str, block: str, mask: str | None) -> Tile:
        """The tile of statements that also vary along `dim`."""
        masks = {**self.masks, dim: mask} if mask else self.masks
        order = (*(d for d in self.order if not d.startswith("r")), dim)
        return Tile(order, self.active | {dim}, {**self.blocks, dim: block}, masks)


Seen = dict[
    str, tuple[Variable, str]
]  # text -> the variable that has it, the buffer it was read from


@dataclass(slots=True)
class Scope:
    """Names, and texts already written, at one place of the kernel; inner scopes see outer ones."""

    tile: Tile
    names: dict[str, Variable] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=lambda: [{}])

    def inner(self, tile: Tile | None = None, is_loop: bool = True) -> Scope:
        """The scope of a block inside. Lines in a loop are not visible after it, so they are kept apart."""
        seen = [*self.seen, {}] if is_loop else self.seen
        return Scope(tile or self.tile, dict(self.names), seen)

    def find(self, text: str) -> Variable | None:
        return next((seen[text][0] for seen in reversed(self.seen) if text in seen), None)

    def remember(self, text: str, variable: Variable, buffer: str = "") -> None:
        self.seen[-1][text] = (variable, buffer)

    def forget(self, buffer: str) -> None:
        """What was read from a buffer is out of date: it was written."""
        for seen in self.seen:
            for text in [text for text, (_, source) in seen.items() if source == buffer]:
                del seen[text]

    def dims_of(self, names: Iterable[str]) -> Dims:
        return NO_DIMS.union(*(self.names[n].dims for n in names if n in self.names))
