"""Statements with bodies, one value at a time: reductions and loops inside a row.

In: a block. Out: its lines. Each reduction is a loop nest of its own whose innermost loop keeps one
accumulator per vector lane; `shared`
splits it over threads, for a nest with nothing else to share out.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler_core.codegen.cpp.kernel_text import KernelText
from compiler_core.codegen.cpp.loops import extent_of, is_plain, loops, parallel, work_of
from compiler_core.codegen.cpp.reduction import Fold, fold_of
from compiler_core.ir.index import Index, Sym, index, maximum, minimum
from compiler_core.ir.loop import Axis, Block, Loop, Reduce

__all__ = ["position_in", "take_in", "write_block", "write_loop", "write_reduce"]

MOST_PARTS = 64
PART = 8192  # elements of a part, at least


def write_block(k: KernelText, block: Block) -> None:
    """A block's statements in order."""
    for statement in block:
        match statement:
            case Reduce():
                write_reduce(k, statement)
            case Loop():
                write_loop(k, statement)
            case _:
                k.write_plain(statement)


def write_loop(k: KernelText, loop: Loop, shared: bool = False) -> None:
    """A loop; `shared` splits it over threads."""
    work = extent_of(loop.axes) * work_of(loop.body)
    is_one = len(loop.axes) == 1
    lanes = is_plain(loop.body)
    heads = parallel(k, work, simd=lanes and is_one) if shared else ()
    inner = "#pragma omp simd" if lanes and not (shared and is_one) else ""
    with loops(k, loop.axes, *heads, inner=inner, serves=loop):
        write_block(k, loop.body)


def write_reduce(k: KernelText, reduce: Reduce, shared: bool = False) -> None:
    """Accumulators, the loops that fill them, the result. `shared` splits it over threads."""
    fold = fold_of(reduce.kind, k.types[reduce.value], reduce.dtype)
    a = _accumulators(k, reduce, fold)
    parts = _parts(reduce) if shared and k.threads != 1 else index(1)
    if parts == 1:
        _declare(k, reduce, fold, a)
        _fold_over(k, reduce, fold, a, reduce.axes)
    else:
        _write_parts(k, reduce, fold, a, parts)
    if fold.result != "{a0}" or fold.accumulators[0].suffix:
        k.line(k.declaration(reduce.name, fold.result.format(**a)), reduce)


def _write_parts(
    k: KernelText, reduce: Reduce, fold: Fold, a: Mapping[str, str], parts: Index
) -> None:
    """The reduction in parts, each by a thread, and their results merged in order.

    The number of parts follows from the size alone, so the result does not depend on the threads.
    """
    part, count = k.names.fresh("part"), k.names.fresh("parts")
    k.line(f"const int64_t {count} = {k.index(parts)};", reduce)
    arrays = {key: k.names.fresh(f"{name}_parts") for key, name in a.items() if key != "better"}
    for number, accumulator in enumerate(fold.accumulators):
        k.line(f"{accumulator.c_type} {arrays[f'a{number}']}[{MOST_PARTS}];", reduce)
    pragma = parallel(k, extent_of(reduce.axes) * work_of(reduce.body))
    with k.writer.block(*pragma, f"for (int64_t {part} = 0; {part} < {count}; ++{part}) {{"):
        _declare(k, reduce, fold, a)
        extent = k.index(reduce.axes[0].extent)
        bounds = (f"({extent}) * {part} / {count}", f"({extent}) * ({part} + 1) / {count}")
        _fold_over(k, reduce, fold, a, reduce.axes, bounds)
        for key, array in arrays.items():
            k.line(f"{array}[{part}] = {a[key]};", reduce)
    _declare(k, reduce, fold, a)
    later = {f"b{key[1:]}": f"{array}[{part}]" for key, array in arrays.items()}
    with k.writer.block(f"for (int64_t {part} = 0; {part} < {count}; ++{part}) {{"):
        for text in fold.merge:
            k.line(text.format(**a, **later), reduce)


def _fold_over(
    k: KernelText,
    reduce: Reduce,
    fold: Fold,
    a: Mapping[str, str],
    axes: tuple[Axis, ...],
    bounds: tuple[str, str] | None = None,
) -> None:
    """The loops of a reduction; `bounds` limits the first of them."""
    inner = (
        f"#pragma omp simd {fold.simd.format(**a)}" if fold.simd and is_plain(reduce.body) else ""
    )
    with loops(k, axes, inner=inner, first=bounds, serves=reduce):
        write_block(k, reduce.body)
        take_in(k, reduce, fold, a)


def _parts(reduce: Reduce) -> Index:
    """How many parts: one per some thousand elements of the first axis's work."""
    length = reduce.axes[0].extent
    whole = length * extent_of(reduce.axes[1:])
    return minimum(minimum(index(MOST_PARTS), maximum(length, 1)), whole // PART + 1)


def take_in(k: KernelText, reduce: Reduce, fold: Fold, names: Mapping[str, str]) -> None:
    """Fold the yielded value into the accumulators."""
    value, position = k.names[reduce.value], k.index(position_in(reduce.axes))
    for text in fold.take:
        k.line(text.format(value=value, position=position, **names), reduce)


def position_in(axes: tuple[Axis, ...]) -> Index:
    """The row-major number of the element that the axes are at."""
    at = index(0)
    for axis in axes:
        at = at * axis.extent + Sym(axis.name)
    return at


def _accumulators(k: KernelText, reduce: Reduce, fold: Fold) -> dict[str, str]:
    """Identifiers of the accumulators; one that is the result itself has the reduction's name."""
    names = {"better": k.names.fresh(f"{reduce.name}_better")} if len(fold.take) == 3 else {}
    for number, accumulator in enumerate(fold.accumulators):
        own = accumulator.suffix == ""
        wish = f"{reduce.name}{accumulator.suffix}"
        names[f"a{number}"] = k.names[reduce.name] if own else k.names.fresh(wish)
    return names


def _declare(k: KernelText, reduce: Reduce, fold: Fold, names: Mapping[str, str]) -> None:
    for number, accumulator in enumerate(fold.accumulators):
        k.line(f"{accumulator.c_type} {names[f'a{number}']} = {accumulator.start};", reduce)
