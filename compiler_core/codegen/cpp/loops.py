"""Loop headers, and which loops run in parallel.

In: axes and the statements inside. Out: `for` lines with OpenMP pragmas. Work is counted in simple
statements (a transcendental counts for ten) as an index expression: where it is a number, whether
threads pay is decided here and the text shows it; where it is not, the pragma tests it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from compiler_core.codegen.cpp.kernel_text import KernelText
from compiler_core.codegen.cpp.row_values import COSTLY
from compiler_core.ir.index import Index, index
from compiler_core.ir.loop import Axis, Block, Loop, Reduce, Statement, Value

__all__ = ["FEW", "GRAIN", "extent_of", "for_line", "is_plain", "loops", "parallel", "work_of"]

GRAIN = (
    300_000  # work below which starting threads costs more than it saves: about 40,000 additions
)
FEW = 8  # iterations below which an outer loop does not keep the threads busy


def is_plain(block: Block) -> bool:
    """No loops inside?"""
    return not any(isinstance(statement, Reduce | Loop) for statement in block)


def extent_of(axes: Sequence[Axis]) -> Index:
    """How many iterations."""
    total = index(1)
    for axis in axes:
        total = total * axis.extent
    return total


def work_of(block: Block) -> Index:
    """Simple statements that one run of a block amounts to."""
    total = index(0)
    for statement in block:
        match statement:
            case Reduce() | Loop():
                total = total + extent_of(statement.axes) * (work_of(statement.body) + 1)
            case Value() if statement.op in COSTLY:
                total = total + 10
            case _:
                total = total + 1
    return total


def parallel(k: KernelText, work: Index, collapse: int = 1, simd: bool = False) -> tuple[str, ...]:
    """The pragma of a loop nest that does this much work: none, one for threads, or one for lanes."""
    lanes = " simd" if simd else ""
    is_small = k.threads == 1 or (work.constant is not None and work.constant < GRAIN)
    if is_small:
        return (f"#pragma omp{lanes}",) if simd else ()
    text = f"#pragma omp parallel for{lanes}"
    if collapse > 1:
        text += f" collapse({collapse})"
    if k.threads:
        text += f" num_threads({k.threads})"
    if work.constant is None:
        text += f" if(parallel : {k.index(work)} > {GRAIN})"
    return (text,)


def for_line(k: KernelText, axis: Axis, bounds: tuple[str, str] | None = None) -> str:
    """The header of one loop, over the whole axis unless `bounds` says from where to where."""
    name = k.names[axis.name]
    first, end = bounds or ("0", k.index(axis.extent))
    return f"for (int64_t {name} = {first}; {name} < {end}; ++{name}) {{"


@contextmanager
def loops(
    k: KernelText,
    axes: Sequence[Axis],
    *pragmas: str,
    inner: str = "",
    first: tuple[str, str] | None = None,
    serves: Statement | None = None,
) -> Iterator[None]:
    """Nested loops over axes: `pragmas` before the first, the pragma `inner` before the last.

    `first` are bounds of the first loop, where it does not run over the whole of its axis. `serves` is
    the statement that the loops are.
    """
    origins = {k.handles[serves]} if serves else ()
    with ExitStack() as stack:
        for number, axis in enumerate(axes):
            heads = list(pragmas) if number == 0 else []
            if inner and number == len(axes) - 1:
                heads.append(inner)
            header = for_line(k, axis, first if number == 0 else None)
            stack.enter_context(k.writer.block(*heads, header, origins=origins))
        yield
