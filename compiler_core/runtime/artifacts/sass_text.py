"""SASS, the machine code: its text, and its lines → lines of the PTX text.

In: a cubin. Out: the disassembly without annotations, and for each line the PTX line or None and the
instruction's name. `nvdisasm` comes inside the triton package; one call takes about half a second, so this
is done only when it is asked for.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from compiler_core.errors import NO_TOOL, ToolMissing

__all__ = ["SassLine", "disassemble", "nvdisasm_path", "ptx_lines_of_sass"]

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:\{?\s*)(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
_POSITION = re.compile(r'//## File "[^"]*", line (\d+)')


@dataclass(frozen=True, slots=True)
class SassLine:
    """`name` is the instruction's, '' for other lines. `ptx_line` is None where no PTX stands behind it."""

    text: str
    name: str
    ptx_line: int | None


def nvdisasm_path() -> str:
    """The disassembler. Raises ToolMissing where the triton package has none."""
    try:
        from triton import knobs

        return str(knobs.nvidia.nvdisasm.path)
    except (ImportError, RuntimeError) as error:
        raise ToolMissing(NO_TOOL, f"nvdisasm, part of the triton package: {error}") from error


def disassemble(cubin: bytes) -> str:
    """The annotated disassembly. Raises ToolMissing; CalledProcessError for bytes that are no cubin."""
    tool = nvdisasm_path()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        run = subprocess.run(
            [tool, "-c", "-gp", str(path)], check=True, capture_output=True, text=True
        )
    return run.stdout


def ptx_lines_of_sass(annotated: str) -> list[SassLine]:
    """The lines of the disassembly; annotations are taken out of the text."""
    lines: list[SassLine] = []
    current: int | None = None
    for text in annotated.splitlines():
        position = _POSITION.search(text)
        if position:
            current = int(position.group(1))
            continue
        match = _INSTRUCTION.match(text)
        lines.append(SassLine(text, match.group(1) if match else "", current if match else None))
    return lines
