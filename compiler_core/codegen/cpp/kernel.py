"""A kernel: one nest as one C function.

In: a nest of a `Fused` and what fusion decided about it. Out: a `KernelSource` whose lines know their
statements. The one idea: how the nest walks memory picks the frame that its statements are put in.

    pointwise   one loop nest, threads outside, vector lanes inside
    transpose   the same in square blocks (`blocked.py`)
    row         threads over the outer axes; each reduction and loop of the body is a loop over the row
    checked     positions from memory, and sums at them (`places.py`)
    few rows    the outer axes do not keep the threads busy: each reduction and loop is shared out
    column      tiles of neighbouring columns (`columns.py`)
"""

from __future__ import annotations

from compiler_core.codegen.cpp.axes import accesses, stride, tidy_nest
from compiler_core.codegen.cpp.blocked import write_blocked
from compiler_core.codegen.cpp.blocks import write_block, write_loop, write_reduce
from compiler_core.codegen.cpp.columns import write_columns
from compiler_core.codegen.cpp.kernel_text import KernelText
from compiler_core.codegen.cpp.loops import (
    FEW,
    GRAIN,
    extent_of,
    is_plain,
    loops,
    parallel,
    work_of,
)  # fmt: skip
from compiler_core.codegen.cpp.names import identifier
from compiler_core.codegen.cpp.places import adds, checks, write_checked, write_sums
from compiler_core.codegen.cpp.row_values import row_values
from compiler_core.codegen.statement_handles import StatementHandles, statements_of
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.index import Index, index
from compiler_core.ir.loop import Axis, Load, Loop, Nest, Place, Program, Reduce, Store
from compiler_core.provenance import Origins, union
from compiler_core.stages import Fused, Kernel, KernelSource, Param

__all__ = ["params_of", "write_kernel"]

_SMALL = ("bf16", "f16", "f8")


def write_kernel(nest: Nest, fused: Fused, threads: int) -> KernelSource:
    """The source of one kernel. Raises KeyError where a statement has no C text."""
    kernel = fused.kernels[nest.name]
    tidy = tidy_nest(nest)
    k = KernelText(tidy, fused.program.buffers, StatementHandles(tidy, fused.part), threads)
    params = params_of(kernel, fused.program)
    pointers = [k.names[param.name] for param in params]
    if k.checks:
        params, pointers = (*params, Param("failed", "failed", "i64")), [*pointers, k.failed]
    _write_body(k)
    head = _head(nest.name, params, pointers, _aliased(kernel, fused))
    text, origins = _framed(k, head)
    return KernelSource(nest.name, "cpp", text, origins, params)


def params_of(kernel: Kernel, program: Program) -> tuple[Param, ...]:
    """Buffers read, buffers written, size symbols; a buffer that is both is written."""
    reads = [name for name in kernel.reads if name not in kernel.writes]
    kinds = [(name, "in") for name in reads] + [(name, "out") for name in kernel.writes]
    buffers = [Param(name, kind, program.buffers[name].dtype.name) for name, kind in kinds]
    return (*buffers, *(Param(name, "size", "i64") for name in kernel.symbols))


# ------------------------------------------------------------------------------------ the frame


def _framed(k: KernelText, head: list[str]) -> tuple[str, tuple[Origins, ...]]:
    """Includes, the function's head, the body; the head serves every statement."""
    body = k.writer.source
    everything = union(*k.writer.line_origins, {k.handles.nest})
    includes = [f'#include "{name}"' for name in headers_of(body)]
    lines = [*includes, "", *head]
    text = "\n".join(lines) + "\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "}\n"
    outside = [everything] * len(lines)
    return text, (*outside, *k.writer.line_origins, everything)


def headers_of(body: str) -> list[str]:
    """The headers of this folder that a text needs."""
    small = any(f"v_{verb}_{t}" in body for verb in ("from", "to", "round") for t in _SMALL)
    integer = any(f"_{t}(" in body for t in ("i64", "i32", "i16", "i8", "u8"))
    places = ["vplace.h"] if "v_fail(" in body else []
    return [*(["vhalf.h"] if small else []), *(["vint.h"] if integer else []), *places, "vmath.h"]


def _head(
    name: str, params: tuple[Param, ...], pointers: list[str], aliased: frozenset[str]
) -> list[str]:
    """`void name(const float *restrict x, …) {`, one parameter a line where it is long."""
    texts = []
    for param, pointer in zip(params, pointers):
        if param.kind in ("size", "failed"):
            texts.append(f"int64_t {'*' if param.kind == 'failed' else ''}{pointer}")
            continue
        const = "const " if param.kind == "in" else ""
        restrict = "" if param.name in aliased else "restrict "
        texts.append(f"{const}{DTYPES[param.dtype].c_storage} *{restrict}{pointer}")
    one = f"void {identifier(name)}({', '.join(texts) or 'void'}) {{"
    if len(one) <= 100:
        return [one]
    return [
        f"void {identifier(name)}(",
        *(f"    {text}," for text in texts[:-1]),
        f"    {texts[-1]}) {{",
    ]


def _aliased(kernel: Kernel, fused: Fused) -> frozenset[str]:
    """Buffers of the kernel that share memory with another of its buffers."""
    roots: dict[str, list[str]] = {}
    for name in {*kernel.reads, *kernel.writes}:
        root = name
        while root in fused.reuse:
            root = fused.reuse[root]
        roots.setdefault(root, []).append(name)
    return frozenset(name for group in roots.values() if len(group) > 1 for name in group)


# ------------------------------------------------------------------------------------ the body


def _write_body(k: KernelText) -> None:
    nest = k.nest
    k.form = frozenset(k.handles[access] for access in _inner_accesses(nest))
    if adds(nest.body) and is_plain(nest.body):
        write_sums(k)
    elif is_plain(nest.body):
        _write_pointwise(k)
    elif _is_columns(nest):
        write_columns(k)
    elif _is_few(extent_of(nest.axes)):
        _write_few_rows(k)
    else:
        k.row = row_values(nest.body)
        work = extent_of(nest.axes) * work_of(nest.body)
        with loops(k, nest.axes, *parallel(k, work, collapse=len(nest.axes))):
            k.declare_row()
            write_block(k, nest.body)


def _write_pointwise(k: KernelText) -> None:
    axes, body = k.nest.axes, k.nest.body
    if not axes:
        write_block(k, body)
        return
    *outer, last = axes
    if checks(body):
        write_checked(k)
        return
    across = _axis_across(k.nest)
    if across is not None:
        write_blocked(k, across)
        return
    inner = parallel(k, extent_of((last,)) * work_of(body), simd=True)
    if _is_few(extent_of(outer)) and "parallel" in inner[0]:
        with loops(k, axes, inner=inner[0]):
            write_block(k, body)
        return
    heads = parallel(k, extent_of(axes) * work_of(body), collapse=len(outer))
    with loops(k, axes, *heads, inner="#pragma omp simd"):
        write_block(k, body)


def _axis_across(nest: Nest) -> Axis | None:
    """An axis other than the last along which some buffer is contiguous: a transpose."""
    *outer, last = nest.axes
    for axis in outer:
        for access in accesses(nest.body):
            along = _steps_by_one(access.offset, axis.name)
            if along and stride(access.offset, last.name) != index(0):
                return axis
    return None


def _write_few_rows(k: KernelText) -> None:
    with loops(k, k.nest.axes):
        for statement in k.nest.body:
            match statement:
                case Reduce():
                    write_reduce(k, statement, shared=_pays(statement))
                case Loop():
                    write_loop(k, statement, shared=True)
                case _:
                    k.write_plain(statement)


def _is_few(iterations: Index) -> bool:
    return iterations.constant is not None and iterations.constant < FEW


def _pays(reduce: Reduce) -> bool:
    """Is a reduction large enough to be shared out, as far as is known?"""
    work = extent_of(reduce.axes) * work_of(reduce.body)
    return work.constant is None or work.constant >= GRAIN


def _is_columns(nest: Nest) -> bool:
    """Do the reductions run across memory, and the nest's last axis along it?"""
    if not nest.axes or any(isinstance(s, Place) for s in nest.body):
        return False
    last = nest.axes[-1]
    inner = {
        axis.name
        for statement in statements_of(nest.body)
        if isinstance(statement, Reduce | Loop)
        for axis in statement.axes
    }
    inside = _inner_accesses(nest)
    along = sum(_steps_by_one(access.offset, last.name) for access in inside)
    across = sum(_steps_by_one(access.offset, name) for access in inside for name in inner)
    return along > across


def _inner_accesses(nest: Nest) -> list[Load | Store]:
    """The loads and stores in reductions and loops: how they walk memory decides the form."""
    inner = (s for s in nest.body if isinstance(s, Reduce | Loop))
    return [access for statement in inner for access in accesses(statement.body)]


def _steps_by_one(offset: Index, name: str) -> bool:
    step = stride(offset, name)
    return step is not None and step == index(1)
