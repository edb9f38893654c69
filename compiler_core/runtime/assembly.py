"""The machine code of a C kernel as text, each instruction with the kernel lines that it came from.

In: a kernel. Out: an `Artifact("asm")`. The kernel is compiled once more with line tables, which do not
change the code, and disassembled by `objdump --inlines`: an instruction of an inlined function of
vmath.h is told by the whole chain of calls, and the line of the kernel is the last link.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from compiler_core.errors import NO_TOOL, ToolMissing
from compiler_core.runtime.build_cpp import FLAGS, compile_c, find_compiler, translation_unit
from compiler_core.stages import Artifact, ArtifactLine, KernelSource

__all__ = ["assembly_of", "parse_disassembly"]

_LOCATION = re.compile(r"^(?:inlined by )?(?P<file>\S+?):(?P<line>\d+)(?: \(.*\))?$")
_LABEL = re.compile(r"^[0-9a-f]+ <(?P<name>.+)>:$")
_INSTRUCTION = re.compile(r"^\s+(?P<at>[0-9a-f]+):\t(?P<text>.*)$")


def assembly_of(kernel: KernelSource) -> Artifact:
    """The disassembly. Raises ToolMissing (CC004) where there is no compiler or no objdump."""
    objdump = shutil.which("objdump") or shutil.which("llvm-objdump")
    if objdump is None:
        raise ToolMissing(NO_TOOL, "objdump (of binutils), to show machine code")
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "kernel.o"
        flags = [flag for flag in FLAGS if flag != "-shared"]
        compile_c(translation_unit([kernel]), built, [*flags, "-g", "-c"], find_compiler())
        command = [objdump, "-d", "-l", "--inlines", "--no-show-raw-insn", str(built)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    return parse_disassembly(result.stdout, f"{kernel.name}.c")


def parse_disassembly(text: str, kernel_file: str) -> Artifact:
    """Labels and instructions of `objdump -d -l --inlines`, with the lines in `kernel_file`.

    >>> artifact = parse_disassembly(
    ...     "0 <k>:\\n/tmp/k.c:3\\n   0:\\tret\\n/x/v.h:9\\ninlined by k.c:4 (k)\\n   1:\\tnop\\n", "k.c")
    >>> print(artifact.text)
    k:
        ret
        nop
    >>> [line.kernel_lines for line in artifact.lines]
    [(), (3,), (4,)]
    """
    texts: list[str] = []
    lines: list[ArtifactLine] = []
    here: tuple[int, ...] = ()
    fresh = True  # the next location starts a new chain
    for row in text.splitlines():
        if label := _LABEL.match(row):
            texts.append(f"{label['name']}:")
            lines.append(ArtifactLine(len(texts), (), False))
            here = ()
        elif instruction := _INSTRUCTION.match(row):
            texts.append(f"    {instruction['text'].expandtabs(8).rstrip()}")
            lines.append(ArtifactLine(len(texts), here, True))
            fresh = True
        elif location := _LOCATION.match(row):
            found = (int(location["line"]),) if Path(location["file"]).name == kernel_file else ()
            here, fresh = (found if fresh else found or here), False
    return Artifact("asm", "\n".join(texts), tuple(lines))
