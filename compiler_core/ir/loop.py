"""The loop IR: what `lower` makes, `fuse` rearranges and `codegen` prints.

Grammar (the text that `ir/text.py` prints and `ir/parse.py` reads back; `#` starts a comment):

    program   := "program" name "(" name* ")" ":" size* buffer* (nest | call)* update* return
    size      := "size" name ("=" buffer ".size(" dimension ")")?     without "=": an integer argument
    buffer    := role name ":" dtype "[" index* "]" "stride" "[" index* "]" ("on" device)?
    role      := "in" | "out" | "temp" | "const"
    update    := "update" buffer "=" buffer          # an argument takes a new value at the end
    return    := "return" (buffer | view | index | number | "None")*
    view      := "view(" buffer "," "[" index* "]" "," "[" index* "]" "," index ")"
    nest      := "nest" name ("for" axis*)? ":" statement*
    call      := "call" name ":" (buffer | "None")* "=" target "(" argument* ")" "because" string
    axis      := name "<" index
    statement := constant | value | position | place | load | store | reduce | loop
    constant  := name ":" dtype "=" "const" number
    value     := name ":" dtype "=" op name*
    position  := name ":" dtype "=" "index" index
    place     := name ":" "i64" "=" "place" name "<" index "as" check dimension
    load      := name ":" dtype "=" "load" buffer "[" index "]" ("if" name "else" number)?
    store     := "store" buffer "[" index "]" ("=" | "+=") name
    reduce    := name ":" dtype "=" kind "over" axis* ":" statement* "yield" name
    loop      := "for" axis* ":" statement*

Meaning: the outer axes of a nest are independent of each other (any order, in parallel), and so are
the axes of a `loop`. A `reduce` folds the yielded value over its axes and names the result, which is
visible after it in the enclosing block. Names are single-assignment; inner blocks see outer names.
The offset in a load or store is in elements from the buffer's first element, already multiplied by
strides: a view is nothing but another offset expression. A masked load reads only where its mask
holds and gives the constant elsewhere. Within one nest, no position of the outer axes reads what
another position writes.

A position may come from memory. `at: i64 = place ix < 100 as row 0` is the integer `ix` as a position in
a dimension of 100: 0 <= at < 100, or the error of the check `row` (`ir/checks.py`). Offsets may name
the results of `place` and no other values, so no access can leave its buffer. Positions from memory may
be equal, so they are never stored to: `store b[at] += x` adds, in any order, to what `b` held before the
nest. A nest does nothing else with a buffer that it adds to.

`lower` makes one nest per ATen operator; a fused kernel is one nest with several statements, inner
loops and reductions in its body. Both are `Program`s: one printer, parser, verifier, interpreter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import Index
from compiler_core.provenance import NOWHERE, Origins

__all__ = [
    "Axis", "Block", "Buffer", "Call", "Constant", "Load", "Loop", "Nest", "Place", "Position", "Program", "Reduce",
    "Statement", "Store", "Value", "View",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop variable that runs over 0 <= name < extent."""

    name: str
    extent: Index


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that the program reads or writes.

    role: "in" (an argument), "out" (allocated and returned), "temp" (allocated inside), "const" (an
    argument that is a Python float: one f64 element).
    `device` is torch's device text. Strides are in elements.
    """

    name: str
    dtype: DType
    shape: tuple[Index, ...]
    strides: tuple[Index, ...]
    role: str = "temp"
    device: str = "cpu"
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class View:
    """A buffer seen through other sizes, strides and offset (elements): `torch.as_strided`."""

    buffer: str
    shape: tuple[Index, ...]
    strides: tuple[Index, ...]
    offset: Index


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    value: float | int | bool
    dtype: DType
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Value:
    """name = op(args). `op` is a key of `ir/ops.py: OPS`; the result has `dtype`."""

    name: str
    op: str
    args: tuple[str, ...]
    dtype: DType
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Position:
    """name = an index expression as a number (arange, triangular masks)."""

    name: str
    index: Index
    dtype: DType
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Place:
    """name = the integer `value` as a position in a dimension: 0 <= name < extent, else an error.

    `check` is a key of `ir/checks.py: CHECKS`, `dimension` the number that its message shows.
    """

    name: str
    value: str
    extent: Index
    check: str
    dimension: int
    dtype: DType
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Load:
    name: str
    buffer: str
    offset: Index
    dtype: DType
    mask: str | None = None
    other: float | int | bool = 0
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Store:
    """buffer[offset] = value. Its origins are the operator that made the value and those that read the buffer.

    With `adds`, buffer[offset] += value: positions may meet.
    """

    buffer: str
    offset: Index
    value: str
    origins: Origins = NOWHERE
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Reduce:
    """name = kind over axes of the `value` that the body yields. `kind` is a key of `ir/ops.py: REDUCTIONS`."""

    name: str
    kind: str
    axes: tuple[Axis, ...]
    body: Block
    value: str
    dtype: DType
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Loop:
    """Statements repeated over axes; its values are not visible after it, its stores are."""

    axes: tuple[Axis, ...]
    body: Block
    origins: Origins = NOWHERE


Statement: TypeAlias = Constant | Value | Position | Place | Load | Store | Reduce | Loop
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest over independent axes: one operator in `Lowered`, one kernel in `Fused`."""

    name: str
    axes: tuple[Axis, ...]
    body: Block
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Call:
    """A library kernel: `target` is an ATen overload ('aten.mm.default').

    Arguments are views of buffers (where the operator takes a number: of one element, which it is),
    index expressions, numbers, None, strings, torch dtypes and
    devices, and tuples of these. `outputs` are freshly allocated by the callee and bound to buffers;
    a None output is unused. `reason` says why no kernel was generated.
    """

    name: str
    target: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    outputs: tuple[str | None, ...]
    reason: str
    origins: Origins = NOWHERE


@dataclass(frozen=True, slots=True)
class Program:
    """A whole graph in the loop IR.

    `symbols` maps each size symbol to where its value is read at run time: (input buffer, dimension),
    or None for an integer argument of that name. `inputs` gives the order of the arguments (buffer
    names and integer symbol names), `outputs` what is returned: a buffer name, a View, an Index, a
    number or None.
    """

    name: str
    symbols: dict[str, tuple[str, int] | None]
    buffers: dict[str, Buffer]
    body: tuple[Nest | Call, ...]
    inputs: tuple[str, ...]
    outputs: tuple[Any, ...]
    mutated: tuple[tuple[str, str], ...] = field(
        default=()
    )  # (input buffer, buffer whose value it takes at the end)
