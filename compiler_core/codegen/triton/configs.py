"""How large a program's tile is, and how many warps work on it: fixed rules by the sizes.

In: element counts (None where symbolic). Out: XBLOCK, RBLOCK, num_warps. The aims: 16 bytes a thread for
pointwise work; a whole row in one program while it fits in registers; for columns, enough programs to
occupy the machine, each reading at least 64 contiguous bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "LONGEST_ROW",
    "Config",
    "column_config",
    "next_power_of_2",
    "pointwise_config",
    "row_config",
]

LONGEST_ROW = 16384  # elements of a row that one program keeps
_TILE = 2048  # elements of a tile of several short rows
_COLUMN_TILE = 4096
_PROGRAMS = 264  # two for each multiprocessor of an H100 or H200


@dataclass(frozen=True, slots=True)
class Config:
    """xblock 0: the program has no block of outer positions but one of them. rblock 0: no inner block."""

    xblock: int
    rblock: int
    num_warps: int
    persistent: bool = False


def next_power_of_2(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def pointwise_config(numel: int | None) -> Config:
    """1024 elements a program, fewer where that would leave the machine idle."""
    if numel == 1:
        return Config(0, 0, 1)
    for block in (1024, 512, 256):
        if numel is None or numel >= block * _PROGRAMS:
            return Config(block, 0, 4)
    return Config(min(128, next_power_of_2(numel or 1)), 0, 4)


def row_config(rows: int | None, length: int | None) -> Config:
    """Rows that are contiguous: one row a program if it is long, several if short."""
    if length is None or length > LONGEST_ROW:
        few = rows is not None and rows <= 8
        block = 8192 if few else 2048
        if length is None:
            block = 4096 if few else 1024
        return Config(0, block, block // 256)
    if length == 0:
        return Config(0, 1, 1)
    block = next_power_of_2(length)
    if block >= 512 or rows == 1:
        return Config(0, block, min(16, max(2, block // 512)), persistent=True)
    many = max(1, _TILE // block)
    return Config(min(many, next_power_of_2(rows or many), 128), block, 4, persistent=True)


def column_config(columns: int | None, length: int | None, reductions: int = 1) -> Config:
    """Reductions along a stride: a tile of neighbouring columns, looped over the length.

    Several reductions share a smaller tile: each holds one of partial results in registers and one of what
    they lost, and a program that takes very many leaves no room for others beside it.
    """
    if columns == 1:
        return row_config(1, length)
    xblock = 64
    while columns is not None and xblock > 16 and columns < xblock * _PROGRAMS:
        xblock //= 2
    rblock = (_COLUMN_TILE if reductions <= 1 else _COLUMN_TILE // 2) // xblock
    if length is not None and 1 <= length <= rblock:
        return Config(xblock, next_power_of_2(length), 4, persistent=True)
    return Config(xblock, rblock, 8)
