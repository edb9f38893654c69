"""Static facts of a built kernel: registers, shared memory, spills, occupancy, instruction mix.

In: cubin, metadata, capability, and the SASS where it was made. Out: a `KernelFacts`. Nothing is measured:
occupancy is the formula of the CUDA programming guide with its table per compute capability.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler_core.runtime.artifacts.cubin import read_cubin

__all__ = ["KernelFacts", "Machine", "Occupancy", "facts_of", "instruction_mix", "occupancy"]


@dataclass(frozen=True, slots=True)
class Machine:
    """Limits of a streaming multiprocessor (CUDA C++ programming guide, technical specifications)."""

    warps: int
    blocks: int
    registers: int
    shared_bytes: int


_MACHINES = {
    80: Machine(64, 32, 65536, 164 * 1024),
    86: Machine(48, 16, 65536, 100 * 1024),
    89: Machine(48, 24, 65536, 100 * 1024),
    90: Machine(64, 32, 65536, 228 * 1024),
    100: Machine(64, 32, 65536, 228 * 1024),
    120: Machine(48, 24, 65536, 100 * 1024),
}

_REGISTER_UNIT = 256  # registers are given to a warp in units of this
_WARP_UNIT = 4
_SHARED_UNIT = 128
_SHARED_RESERVED = 1024  # of each block, by the system


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps of the kernel that fit on a multiprocessor at once, and what limits them."""

    blocks: int
    warps: int
    percent: int
    limit: str


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """`spills`: SASS instructions that touch local memory; None until the SASS is made, like `mix`."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    code_bytes: int
    num_warps: int
    occupancy: Occupancy | None
    spills: int | None = None
    mix: dict[str, int] = field(default_factory=dict)


def facts_of(
    binary: bytes, metadata: Mapping[str, Any], arch: int, instructions: Iterable[str] | None = None
) -> KernelFacts:
    """The facts of a kernel. `instructions`: names of the SASS instructions, if made."""
    cubin = read_cubin(binary)
    warps, shared = int(metadata["num_warps"]), int(metadata["shared"])
    mix = instruction_mix(instructions) if instructions is not None else {}
    return KernelFacts(
        cubin.registers, shared, cubin.stack_bytes, cubin.code_bytes, warps,
        occupancy(arch, cubin.registers, warps, shared),
        None if instructions is None else mix.get("local", 0), mix,
    )  # fmt: skip


def occupancy(arch: int, registers: int, warps: int, shared_bytes: int) -> Occupancy | None:
    """How many blocks fit. None for a capability that is not in the table."""
    machine = _MACHINES.get(arch)
    if machine is None:
        return None
    per_warp = math.ceil(max(registers, 1) * 32 / _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = machine.registers // per_warp // _WARP_UNIT * _WARP_UNIT
    shared = math.ceil((shared_bytes + _SHARED_RESERVED) / _SHARED_UNIT) * _SHARED_UNIT
    limits = {
        "warps": machine.warps // warps,
        "blocks": machine.blocks,
        "registers": by_registers // warps,
        "shared memory": machine.shared_bytes // shared,
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return Occupancy(blocks, blocks * warps, round(100 * blocks * warps / machine.warps), limit)


_CLASSES = {
    "tensor": r"\w*MMA\w*|WARPGROUP",
    "global": r"LDG|STG|LDGSTS|LD|ST|REDG?|ATOMG?|UBLKCP\w*|UTMA\w*",
    "shared": r"(LDS|STS|LDSM|STSM|ATOMS)\w*",
    "local": r"LDL|STL",
    "constant": r"LDC|ULDC|LDCU",
    "float": r"[FHD](FMA|ADD|MUL|SEL|SETP|SET|MNMX|CHK|RND|SWZADD)\w*",
    "special": r"MUFU",
    "convert": r"F2I\w*|I2F\w*|F2F\w*|PRMT|FRND",
    "integer": r"U?I(MAD|ADD|ADD3|ABS|SETP|MNMX)\w*|U?LEA|U?LOP3|U?SHF|BMSK|SGXT|USGXT|U?SEL|VIADD\w*|VIMNMX\w*|U?PLOP3|POPC|FLO|BREV",
    "exchange": r"SHFL|VOTE\w*|REDUX|CREDUX|MATCH",
    "barrier": r"BAR|SYNCS|DEPBAR|LDGDEPBAR|MEMBAR|FENCE|ERRBAR|CCTL|WARPSYNC|ACQBULK|NANOSLEEP|ELECT",
    "branch": r"BRA|EXIT|BSSY|BSYNC|RET|CALL|BREAK|JMP|BRX|YIELD|WARPEXIT",
    "move": r"U?MOV\w*|CS2R|S2R|S2UR|R2UR|R2P|P2R|UP2UR",
}


def instruction_mix(names: Iterable[str]) -> dict[str, int]:
    """Instructions by class, the most frequent first; `other` for those that no class names."""
    counts = Counter(_class_of(name) for name in names if not name.startswith("NOP"))
    return dict(counts.most_common())


def _class_of(name: str) -> str:
    base = name.partition(".")[0]
    return next((kind for kind, form in _CLASSES.items() if re.fullmatch(form, base)), "other")
