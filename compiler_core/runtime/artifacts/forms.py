"""The `Artifact`s of a compiled kernel: each text with a map of its lines to the kernel's.

In: texts of one compile. Out: `ttir`, `ttgir`, `llir`, `ptx` in order; `sass` when asked for. TTIR and TTGIR
hold the kernel's lines; what is below holds TTGIR lines (location snapshot), so its map is composed.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler_core.runtime.artifacts.layout_copies import with_readers_of_copies
from compiler_core.runtime.artifacts.llir_text import ttgir_lines_of_llir
from compiler_core.runtime.artifacts.mlir_text import kernel_lines_of_mlir
from compiler_core.runtime.artifacts.ptx_flow import with_lines_from_flow
from compiler_core.runtime.artifacts.ptx_text import ttgir_lines_of_ptx
from compiler_core.runtime.artifacts.sass_text import SassLine, disassemble, ptx_lines_of_sass
from compiler_core.stages import Artifact, ArtifactLine

__all__ = ["artifacts_of", "instruction_names", "sass_artifact"]

_BELOW = {"llir": ttgir_lines_of_llir, "ptx": ttgir_lines_of_ptx}


def artifacts_of(texts: Mapping[str, str], kernel_path: str) -> tuple[Artifact, ...]:
    """An artifact for each text there is."""
    made: dict[str, Artifact] = {}
    for stage in ("ttir", "ttgir"):
        if stage in texts:
            lines = kernel_lines_of_mlir(texts[stage], kernel_path)
            made[stage] = Artifact(stage, texts[stage], with_readers_of_copies(texts[stage], lines))
    for stage, read in _BELOW.items():
        if stage in texts:
            lines = _composed(read(texts[stage]), made["ttgir"])
            if stage == "ptx":
                lines = with_lines_from_flow(texts[stage], lines)
            made[stage] = Artifact(stage, texts[stage], lines)
    return tuple(made.values())


def sass_artifact(binary: bytes, ptx: Artifact) -> Artifact:
    """The disassembly of a cubin. Raises ToolMissing without nvdisasm."""
    lines = ptx_lines_of_sass(disassemble(binary))
    mapped = tuple(
        ArtifactLine(number, _lines_of_ptx(line, ptx), bool(line.name))
        for number, line in enumerate(lines, 1)
    )
    return Artifact("sass", "\n".join(line.text for line in lines) + "\n", mapped)


def instruction_names(sass: Artifact) -> list[str]:
    """Names of the instructions of a SASS artifact."""
    return [line.name for line in ptx_lines_of_sass(sass.text) if line.name]


def _composed(found: list[tuple[int | None, bool]], ttgir: Artifact) -> tuple[ArtifactLine, ...]:
    def through(line: int | None) -> tuple[int, ...]:
        return ttgir.lines[line - 1].kernel_lines if line and line <= len(ttgir.lines) else ()

    return tuple(
        ArtifactLine(number, through(line), is_instruction)
        for number, (line, is_instruction) in enumerate(found, 1)
    )


def _lines_of_ptx(line: SassLine, ptx: Artifact) -> tuple[int, ...]:
    """The PTX line's kernel lines; a label or brace stands for the instruction before it."""
    place = min(line.ptx_line or 0, len(ptx.lines))
    while place and not ptx.lines[place - 1].is_instruction:
        place -= 1
    return ptx.lines[place - 1].kernel_lines if place else ()
