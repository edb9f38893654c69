"""PTX instructions whose kernel line only the flow of data tells.

In: PTX text and the kernel lines of its instructions. Out: the lines, in which

* a barrier also belongs to the shared-memory accesses that it keeps apart, before and after it;
* an instruction that lost its position (the optimiser drops it from library code that it merges)
  belongs to the instructions that read its result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from compiler_core.stages import ArtifactLine

__all__ = ["with_lines_from_flow"]

_REGISTER = re.compile(r"%[\w.]+")
_BARRIER = re.compile(r"\b(bar|barrier)\.")
_SHARED = re.compile(r"\b(ld|st|ldmatrix|stmatrix|atom|red)\S*\.shared")


def with_lines_from_flow(text: str, lines: Sequence[ArtifactLine]) -> tuple[ArtifactLine, ...]:
    """`lines`, one for each line of `text`, completed as the module says."""
    texts, result = text.splitlines(), list(lines)
    _place_lost(texts, result)
    _widen_barriers(texts, result)
    return tuple(result)


def _place_lost(texts: Sequence[str], lines: list[ArtifactLine]) -> None:
    """From the end: what reads a result is placed before what computes it."""
    readers: dict[str, set[int]] = {}
    for number in reversed(range(len(lines))):
        line = lines[number]
        if not line.is_instruction:
            continue
        registers = _REGISTER.findall(texts[number])
        if not line.kernel_lines and registers:
            line = replace(line, kernel_lines=tuple(sorted(readers.get(registers[0], ()))))
            lines[number] = line
        for register in registers[1:]:
            readers.setdefault(register, set()).update(line.kernel_lines)


def _widen_barriers(texts: Sequence[str], lines: list[ArtifactLine]) -> None:
    shared = [n for n, line in enumerate(lines) if line.is_instruction and _SHARED.search(texts[n])]
    for number, line in enumerate(lines):
        if not line.is_instruction or not _BARRIER.search(texts[number]):
            continue
        before = [n for n in shared if n < number][-1:]
        after = [n for n in shared if n > number][:1]
        own = set(line.kernel_lines).union(*(lines[n].kernel_lines for n in before + after))
        lines[number] = replace(line, kernel_lines=tuple(sorted(own)))
