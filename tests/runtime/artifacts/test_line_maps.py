"""Every stage's lines lead to the right lines of the kernel."""

from __future__ import annotations

from typing import Any

import pytest

from compiler_core.runtime.artifacts.mlir_text import kernel_lines_of_mlir
from compiler_core.runtime.artifacts.ptx_text import ttgir_lines_of_ptx
from compiler_core.stages import Artifact


def instructions(artifact: Artifact) -> list[tuple[str, tuple[int, ...]]]:
    texts = artifact.text.splitlines()
    return [(texts[n.number - 1], n.kernel_lines) for n in artifact.lines if n.is_instruction]


def lines_behind(softmax: Any, stage: str, word: str) -> set[str]:
    """Kernel lines behind the instructions that contain a word."""
    found = [lines for text, lines in instructions(softmax.artifacts[stage]) if word in text]
    assert found, f"no {word} in {stage}"
    return {softmax.lines[n - 1].split(" = ")[0].split("(")[0] for lines in found for n in lines}


@pytest.mark.parametrize(
    "stage,share", [("ttir", 0.9), ("ttgir", 0.9), ("llir", 0.98), ("ptx", 0.98), ("sass", 0.98)]
)
def test_nearly_every_instruction_has_a_kernel_line(softmax: Any, stage: str, share: float) -> None:
    """The rest are constants in MLIR, and a prologue of two instructions in SASS."""
    artifact = softmax.artifacts[stage]
    assert len(artifact.lines) == len(artifact.text.splitlines())
    found = instructions(artifact)
    assert len(found) > 40
    assert sum(bool(lines) for _, lines in found) >= share * len(found)
    assert all(1 <= n <= len(softmax.lines) for _, lines in found for n in lines)


@pytest.mark.parametrize(
    "stage,word,lines",
    [
        ("ttir", "tt.load", {"a", "f"}),
        ("ttir", "arith.maximumf", {"m"}),
        ("ttir", "tt.precise_divf", {"c4"}),
        ("ttgir", "tt.store", {"tl.store"}),
        ("ptx", "ld.global", {"a", "f"}),  # inside inline assembly
        ("ptx", "st.global", {"tl.store"}),
        ("ptx", "ex2.approx", {"b3"}),
        ("ptx", "div.rn.f32", {"c4"}),
        ("sass", "LDG", {"a", "f"}),
        ("sass", "STG", {"tl.store"}),
        ("sass", "MUFU.EX2", {"b3"}),
    ],
)
def test_instruction_belongs_to_its_line(
    softmax: Any, stage: str, word: str, lines: set[str]
) -> None:
    assert lines_behind(softmax, stage, word) == lines


def test_two_sums_are_told_apart(softmax: Any) -> None:
    """Both are `tl.sum`, inlined from the same library line; the shuffles belong to three reductions."""
    shuffles = lines_behind(softmax, "sass", "SHFL")
    assert shuffles == {"m", "s", "q"}


def test_locations_of_every_form() -> None:
    text = """\
#loc = loc("k.py":1:0)
%a = arith.addf %x, %y : f32 loc("name"("k.py":3:4))
%b = arith.addf %x, %y : f32 loc(callsite("lib.py":7:1 at "k.py":4:2))
%c = arith.addf %x, %y : f32 loc(fused["k.py":5:1, "k.py":6:1])
%d = arith.addf %x, %y : f32 loc(#loc7)
%e = arith.addf %x, %y : f32 loc(callsite(#loc7 at callsite("lib.py":1:1 at #loc8)))
%f = arith.addf %x, %y : f32 loc(unknown)
%g = arith.addf %x, %y : f32 loc("lib.py":2:2)
%h = "tt.reduce"(%a) ({
}) : (tensor<4xf32>) -> f32 loc("k.py":9:1 to :9)
#loc7 = loc("k.py":7:0)
#loc8 = loc("m"(#loc7))
"""
    lines = kernel_lines_of_mlir(text, "k.py")
    assert [n.kernel_lines for n in lines] == [
        (),
        (3,),
        (4,),
        (5, 6),
        (7,),
        (7,),
        (),
        (),
        (9,),
        (9,),
        (),
        (),
    ]
    assert [n.is_instruction for n in lines] == [False] + [True] * 8 + [False] * 3


def test_locations_inside_inline_assembly_are_not_believed() -> None:
    text = """\
\t.file\t1 "/tmp/x/kernel.ttgir"
{
\t.loc\t1 5 0
\tmov.u32 \t%r1, %r2;
\t// begin inline asm
\t.loc\t1 6 0
\tmov.u32 %r3, 0x0;
\t.loc\t1 7 0
\t@%p1 ld.global.b32 { %r3 }, [ %rd1 + 0 ];
\t// end inline asm
\tadd.s32 \t%r4, %r3, 1;
\t.loc\t1 9 0
$L__tmp0:
\tret;
}
"""
    found = [line for line, is_instruction in ttgir_lines_of_ptx(text) if is_instruction]
    assert found == [5, 5, 5, 5, 9]
