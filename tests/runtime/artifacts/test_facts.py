"""Static facts: against the tools where they can be asked, against hand-computed numbers elsewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compiler_core.runtime.artifacts import facts_of, instruction_names
from compiler_core.runtime.artifacts.cubin import read_cubin
from compiler_core.runtime.artifacts.facts import instruction_mix, occupancy
from compiler_core.runtime.artifacts.sass_text import nvdisasm_path


def test_registers_are_those_that_cuobjdump_prints(softmax: Any, tmp_path: Path) -> None:
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(softmax.forms.binary)
    tool = Path(nvdisasm_path()).with_name("cuobjdump")
    printed = subprocess.run(
        [tool, "-res-usage", cubin], check=True, capture_output=True, text=True
    ).stdout
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", printed).groups()  # type: ignore[union-attr]
    found = read_cubin(softmax.forms.binary)
    assert (found.registers, found.stack_bytes) == (int(registers), int(stack))
    assert found.code_bytes > 1000


def test_facts_of_a_kernel(softmax: Any) -> None:
    names = instruction_names(softmax.artifacts["sass"])
    facts = facts_of(softmax.forms.binary, softmax.forms.metadata, 90, names)
    assert facts.spills == 0 and facts.num_warps == softmax.kernel.launch.num_warps
    assert facts.shared_bytes > 0  # reductions across warps
    assert sum(facts.mix.values()) <= len(names)
    assert facts.mix["special"] >= 1 and facts.mix["exchange"] >= 15
    assert facts.mix.get("other", 0) <= 0.02 * len(names)
    before = facts_of(softmax.forms.binary, softmax.forms.metadata, 90)
    assert before.spills is None and before.mix == {}


@pytest.mark.parametrize(
    "registers,warps,shared,blocks,limit",
    [
        (32, 4, 0, 16, "warps"),  # 64 warps of 4
        (64, 4, 0, 8, "registers"),  # 65536 / (64 * 32) = 32 warps
        (33, 4, 0, 12, "registers"),  # 33 * 32 rounds to 1280 a warp: 51 warps, in fours 48
        (32, 1, 0, 32, "blocks"),
        (32, 4, 60 * 1024, 3, "shared memory"),  # 61 KiB with the reserved one
    ],
)
def test_occupancy_by_hand(
    registers: int, warps: int, shared: int, blocks: int, limit: str
) -> None:
    found = occupancy(90, registers, warps, shared)
    assert found is not None
    assert (found.blocks, found.warps, found.limit) == (blocks, blocks * warps, limit)
    assert found.percent == round(100 * blocks * warps / 64)


def test_occupancy_of_an_unknown_machine_is_unknown() -> None:
    assert occupancy(75, 32, 4, 0) is None


def test_classes_of_instructions() -> None:
    names = [
        "LDG.E",
        "STG.E",
        "STS",
        "STL",
        "LDL.64",
        "FFMA",
        "MUFU.EX2",
        "IMAD.WIDE",
        "NOP",
        "HGMMA.64x8",
        "WHAT",
    ]
    assert instruction_mix(names) == {
        "global": 2, "local": 2, "shared": 1, "float": 1, "special": 1, "integer": 1, "tensor": 1, "other": 1,
    }  # fmt: skip


def test_bytes_that_are_no_cubin() -> None:
    with pytest.raises(ValueError, match="no ELF header"):
        read_cubin(b"hello")
