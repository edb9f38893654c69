"""What is known at one place of a nest, while its rules are checked.

In: a program, and the blocks entered so far. Out: types of visible names, axes around, places; `Fault`
for a name that breaks a rule. `ir/verify_nest.py` walks the statements.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compiler_core.errors import closest
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Axis, Buffer, Program
from compiler_core.ir.text import StatementNames
from compiler_core.provenance import Origins, stage_of

__all__ = ["Fault", "Scope", "check_name", "check_origins"]

# stage → the stages that its origins may be of; a stage that is not here may have any
_ORIGINS = {
    "lower": {"forward", "backward", "synthetic"},
    "fuse": {"lower", "synthetic"},
}


class Fault(Exception):
    """A broken rule: `name` is the handle's last part, `problem` a sentence."""

    def __init__(self, name: str, problem: str):
        self.name, self.problem = name, problem


def check_origins(name: str, origins: Origins, stage: str) -> None:
    """Every item has origins, of the stage just before it. Raises Fault."""
    if not origins:
        raise Fault(name, "it has no origins; name what it came from, or say synthetic(pass, why)")
    allowed = _ORIGINS.get(stage)
    wrong = sorted(h for h in origins if allowed and stage_of(h) not in allowed)
    if wrong:
        raise Fault(name, f"origin {wrong[0]} is not of the stage before {stage}")


def check_name(where: str, name: str) -> None:
    """A name is a Python identifier, so that the text can be read back. Raises Fault."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise Fault(where, f"{name!r} is not a name (a Python identifier)")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known at one place: `types` of visible values, all names so far, axes around."""

    program: Program
    stage: str
    handles: StatementNames
    written: set[str]
    added: frozenset[str]
    axes: tuple[Axis, ...] = ()
    types: dict[str, DType] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)
    taken: dict[str, None] = field(default_factory=dict)

    def enter(self, where: str, axes: Sequence[Axis]) -> Scope:
        """The scope inside a loop over these axes."""
        around = {axis.name for axis in self.axes}
        for axis in axes:
            check_name(where, axis.name)
            if axis.name in around or axis.name in self.program.symbols or axis.name in self.types:
                raise Fault(where, f"the axis {axis.name} has the name of something else in scope")
            around.add(axis.name)
            unknown = axis.extent.names - set(self.program.symbols)
            if unknown:
                raise Fault(
                    where, f"the extent of {axis.name} depends on {', '.join(sorted(unknown))}"
                )
        return replace(self, axes=(*self.axes, *axes), types=dict(self.types))

    def type_of(self, where: str, name: str) -> DType:
        """The type of a visible value."""
        if name in self.types:
            return self.types[name]
        if name in self.taken:
            raise Fault(where, f"{name} is defined in a block that is closed here")
        raise Fault(where, f"{name} is not defined before this{closest(name, self.types)}")

    def define(self, where: str, name: str, dtype: DType) -> None:
        check_name(where, name)
        if name in self.taken or any(axis.name == name for axis in self.axes):
            raise Fault(where, f"{name} is defined a second time in this nest")
        if dtype.name not in DTYPES:
            raise Fault(where, f"no statement computes in {dtype}: it is for library calls only")
        self.taken[name] = None
        self.types[name] = dtype

    def check_index(self, where: str, e: Index) -> None:
        """Names of an index are axes around, size symbols or places."""
        axes = {axis.name for axis in self.axes}
        for name in sorted(e.names - axes - set(self.program.symbols)):
            dtype = self.type_of(where, name)
            if name not in self.places:
                raise Fault(
                    where, f"the index {e} uses {name}, a {dtype} that no `place` keeps in bounds"
                )

    def buffer(self, where: str, name: str) -> Buffer:
        if name not in self.program.buffers:
            raise Fault(where, f"there is no buffer {name}{closest(name, self.program.buffers)}")
        return self.program.buffers[name]
