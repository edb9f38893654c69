"""Lines of LLVM IR text → lines of the TTGIR text.

In: LLVM IR made after a location snapshot, so that `!dbg` names lines of the TTGIR. Out: for each line of
the text, the TTGIR line or None, and whether it is an instruction.
"""

from __future__ import annotations

import re

__all__ = ["ttgir_lines_of_llir"]

_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s+(?:%[\w.]+ = )?(?:tail |musttail |notail )?[a-z]\w+")
_DEBUG = re.compile(r"!dbg !(\d+)")


def ttgir_lines_of_llir(text: str) -> list[tuple[int | None, bool]]:
    """(TTGIR line or None, is it an instruction) for each line."""
    locations = {number: int(line) for number, line in _LOCATION.findall(text)}
    found: list[tuple[int | None, bool]] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("define"):
            inside = True
            found.append((None, False))
            continue
        if line.startswith("}"):
            inside = False
        is_instruction = inside and _INSTRUCTION.match(line) is not None
        debug = _DEBUG.search(line) if is_instruction else None
        found.append((locations.get(debug.group(1)) if debug else None, is_instruction))
    return found
