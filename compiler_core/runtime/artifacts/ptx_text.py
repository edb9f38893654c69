"""Lines of PTX text → lines of the TTGIR text.

In: PTX made after a location snapshot: `.loc` directives name lines of the TTGIR. Out: for each line, the
TTGIR line or None, and whether it is an instruction. NB: LLVM writes a new `.loc`, one line further on, for
each line *inside* an inline-assembly block (a masked load is such a block); these are wrong and skipped:
the whole block belongs to the location in force where it begins.
"""

from __future__ import annotations

import re

__all__ = ["ttgir_lines_of_ptx"]

_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?[a-z][\w.:]*(?:\s+[^:]*)?;")


def ttgir_lines_of_ptx(text: str) -> list[tuple[int | None, bool]]:
    """(TTGIR line or None, is it an instruction) for each line."""
    snapshots = {number for number, a, b in _FILE.findall(text) if (b or a).endswith(".ttgir")}
    found: list[tuple[int | None, bool]] = []
    current: int | None = None
    is_assembly = inside = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("// begin inline asm"):
            is_assembly = True
        elif stripped.startswith("// end inline asm"):
            is_assembly = False
        elif stripped.startswith("{") and not inside:
            inside = True
        elif stripped.startswith((".section", ".file")):
            inside = False
        location = _LOC.match(line)
        if location and not is_assembly:
            number = int(location.group(2))
            current = number if location.group(1) in snapshots and number else None
        is_instruction = (
            inside and not stripped.startswith((".", "//", "{ .")) and _is_instruction(line)
        )
        found.append((current if is_instruction else None, is_instruction))
    return found


def _is_instruction(line: str) -> bool:
    return _INSTRUCTION.match(line) is not None
