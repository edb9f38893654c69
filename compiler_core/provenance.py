"""Where everything came from: handles, and the scope that builders read.

A *handle* is a string that names one item of one stage, `stage:name`. Every item of every stage
has a set of origins, handles of items of the stage just before it (an instruction's origin is a
source span). The links form a DAG from later to earlier stages, so "all that this became" and
"all that this came from" are walks in it (`explorer/links.py`).

    src:<file>:<line>:<col>-<end line>:<end col>    a span of the user's program
    instr:<frame>:<offset>          an instruction, inlined frames by `<frame>` such as `f0.2`
    capture:<node>                  a node of the captured torch-level graph
    joint:<node>                    a node of the joint ATen graph
    forward:<node> backward:<node>  a node of the partitioned pair
    lower:<graph>/<nest>.<statement>   a statement of the loop IR
    fuse:<graph>/<kernel>.<statement>  a statement of a fused kernel
    kernels:<graph>/<kernel>:<line>    a line of kernel source; ttir, ttgir, llir, ptx, sass, asm alike

`<graph>` is `forward` or `backward`; in a recording, handles from `lower` on end in `@<target>`. Names
hold no spaces. Items that a pass makes for no item
before it say so: `synthetic(pass, reason)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = [
    "NOWHERE",
    "Handle",
    "Instruction",
    "Origins",
    "Span",
    "at",
    "current",
    "handle",
    "stage_of",
    "synthetic",
    "union",
]

Handle = str
Origins = frozenset[Handle]

NOWHERE: Origins = frozenset()


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the user's source: lines from 1, columns from 0, both ends as in PEP 657."""

    file: str
    line: int
    end_line: int
    col: int
    end_col: int

    @property
    def handle(self) -> Handle:
        return f"src:{self.file}:{self.line}:{self.col}-{self.end_line}:{self.end_col}"

    @classmethod
    def parse(cls, text: Handle) -> Span:
        """The span that a `src:` handle names."""
        head, _, end = text.removeprefix("src:").rpartition("-")
        file, line, col = head.rsplit(":", 2)
        end_line, end_col = end.split(":")
        return cls(file, int(line), int(end_line), int(col), int(end_col))


@dataclass(frozen=True, slots=True)
class Instruction:
    """One bytecode instruction in the canonical dialect (`capture/dialect.py`), what `instr:` handles name."""

    op: str
    arg: Any
    offset: int  # of the first code unit in the original code object
    target: int | None  # offset that a jump goes to
    span: Span | None


def handle(stage: str, *names: str | int) -> Handle:
    """`handle("kernels", "forward/add_0", 7)` is `kernels:forward/add_0:7`."""
    return ":".join([stage, *map(str, names)])


def stage_of(item: Handle) -> str:
    return item.partition(":")[0]


def synthetic(pass_name: str, reason: str) -> Origins:
    """The origin of an item that a pass made for no earlier item (a block index, a mask)."""
    return frozenset({f"synthetic:{pass_name}:{reason.replace(' ', '_')}"})


def union(*origins: Iterable[Handle]) -> Origins:
    """Origins of an item merged from several: the union, nothing lost."""
    return frozenset().union(*origins)


_current: ContextVar[Origins] = ContextVar("origins", default=NOWHERE)


@contextmanager
def at(origins: Iterable[Handle]) -> Iterator[None]:
    """Builders inside the scope give their items these origins."""
    token = _current.set(frozenset(origins))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Origins:
    """The origins of the innermost `at` scope."""
    return _current.get()
