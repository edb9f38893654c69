"""One nest as one `@triton.jit` kernel.

In: a nest of `Fused`. Out: a `KernelSource`: imports, the helpers that it uses, the kernel with one
statement of the IR on a line. The text and `Launch.constants` belong together: where a block divides a
static length, the text has no mask.
"""

from __future__ import annotations

from compiler_core.codegen.statement_handles import StatementHandles, statements_of
from compiler_core.codegen.triton.helper_functions import HELPERS, in_order
from compiler_core.codegen.triton.names import Names
from compiler_core.codegen.triton.plan import Plan, plan_kernel
from compiler_core.codegen.triton.positions import axis_lines, positions_used
from compiler_core.codegen.triton.reduction import BlockWriter
from compiler_core.codegen.triton.statements import StatementWriter
from compiler_core.codegen.triton.tile import NO_DIMS, Scope, Tile, Variable
from compiler_core.codegen.writer import Writer
from compiler_core.ir.dtypes import DTYPES, DType
from compiler_core.ir.index import index
from compiler_core.ir.loop import Loop, Nest, Place, Store
from compiler_core.provenance import Origins
from compiler_core.stages import Fused, Kernel, KernelSource, Launch, Param

__all__ = ["generate_kernel"]


def generate_kernel(nest: Nest, fused: Fused) -> KernelSource:
    """The Triton source of one nest. Raises InternalError for an operation without a text."""
    kernel = fused.kernels[nest.name]
    plan = plan_kernel(nest, kernel, fused.program.buffers)
    params = _params(nest, kernel, fused)
    names = Names()
    own_name = names.fresh(nest.name)
    for helper in HELPERS:
        names.fresh(helper)
    identifiers = [names.fresh(p.name if p.kind == "size" else f"{p.name}_ptr") for p in params]
    writer = _statement_writer(nest, fused, plan, names)
    writer.pointers = {p.name: text for p, text in zip(params, identifiers) if p.kind != "size"}
    scope = _outer_scope(plan)
    for param, text in zip(params, identifiers):
        if param.kind == "size":
            scope.names[param.name] = Variable(text, DTYPES["i64"])
    with writer.lines.indented():
        _write_body(nest, plan, writer, scope)
    arguments = [*identifiers, *(f"{name}: tl.constexpr" for name in plan.constants)]
    source, origins = _with_header(f"def {own_name}({', '.join(arguments)}):", writer)
    launch = Launch((plan.grid,), plan.constants, plan.num_warps)
    return KernelSource(own_name, "triton", source, origins, params, launch)


def _params(nest: Nest, kernel: Kernel, fused: Fused) -> tuple[Param, ...]:
    """Buffers read, buffers written, size symbols."""
    buffers = fused.program.buffers
    names = dict.fromkeys([*kernel.reads, *kernel.writes])
    pointers = [
        Param(name, "out" if name in kernel.writes else "in", buffers[name].dtype.name)
        for name in names
    ]
    return (*pointers, *(Param(name, "size", "i64") for name in kernel.symbols))


def _statement_writer(nest: Nest, fused: Fused, plan: Plan, names: Names) -> StatementWriter:
    statements = list(statements_of(nest.body))
    inner_axes = [axis for s in statements for axis in getattr(s, "axes", ())]
    dtypes: dict[str, DType] = {
        s.name: s.dtype for s in statements if not isinstance(s, Store | Loop)
    }
    return StatementWriter(
        lines=Writer(),
        names=names,
        helpers=set(),
        buffers=fused.program.buffers,
        pointers={},
        handles=StatementHandles(nest, fused.part),
        dtypes=dtypes,
        is_wide=plan.is_wide,
        places=frozenset(s.name for s in statements if isinstance(s, Place)),
        unit={a.name: index(0) for a in (*nest.axes, *inner_axes) if a.extent == 1},
    )


def _outer_scope(plan: Plan) -> Scope:
    """The tile of statements outside inner loops: a block of positions, or a single one."""
    if not plan.xblock:
        return Scope(Tile((), NO_DIMS, {}, {}))
    order = ("x", "r") if plan.groups else ("x",)
    masks = {} if plan.is_x_exact else {"x": "xmask"}
    return Scope(Tile(order, frozenset({"x"}), {"x": "XBLOCK"}, masks))


def _write_body(nest: Nest, plan: Plan, writer: StatementWriter, scope: Scope) -> None:
    everything = writer.handles.within(nest.body)
    if plan.xnumel != 1:
        _write_positions(nest, plan, writer, scope, everything)
    numels: dict[int, str] = {}
    for group in plan.groups:
        text = writer.index(group.numel, scope)
        if not (text.isidentifier() or text.isdigit()):
            members = [s for s in nest.body if plan.group_of(getattr(s, "axes", ())) is group]
            name = f"rnumel{group.suffix}"
            writer.lines.line(f"{name} = {text}", writer.handles.within(tuple(members)))
            text = name
        numels[group.number] = text
    BlockWriter(writer, plan, numels).write(nest.body, scope)


def _write_positions(
    nest: Nest, plan: Plan, writer: StatementWriter, scope: Scope, everything: Origins
) -> None:
    """The lines from `xindex = …` to the axes."""
    lines = writer.lines
    program = "tl.program_id(0)" + (".to(tl.int64)" if plan.is_wide else "")
    text = program
    if plan.xblock:
        text = f"{program} * XBLOCK + tl.arange(0, XBLOCK)"
        text = f"({text})[:, None]" if plan.groups else text
    lines.line(f"xindex = {text}", everything)
    if plan.xblock and not plan.is_x_exact:
        lines.line(f"xmask = xindex < {writer.index(plan.xnumel, scope)}", everything)
    dtype = DTYPES["i64" if plan.is_wide else "i32"]
    scope.names["%x"] = Variable("xindex", dtype, frozenset({"x"}) if plan.xblock else NO_DIMS)
    writer.flat.append((plan.axes, "%x"))
    axis_lines(plan.axes, "%x", positions_used(nest.body, plan.axes, writer), writer, scope)


def _with_header(signature: str, writer: StatementWriter) -> tuple[str, tuple[Origins, ...]]:
    """The whole file: imports, helpers, kernel. Its frame serves every statement."""
    everything = frozenset().union(*writer.lines.line_origins)
    helpers = in_order(writer.helpers)
    file = Writer()
    file.line("import triton", everything)
    file.line("import triton.language as tl", everything)
    body = writer.lines.source
    if "libdevice." in body or any(HELPERS[name].libdevice for name in helpers):
        file.line("from triton.language.extra import libdevice", everything)
    for name in helpers:
        callers = [
            line.origins
            for line in writer.lines.lines
            if f"{name}(" in line.text or f", {name}" in line.text
        ]
        served = frozenset().union(*callers) or everything
        _two_blank_lines(file)
        for text in ["@triton.jit", *HELPERS[name].text.splitlines()]:
            file.line(text, served)
    _two_blank_lines(file)
    file.line("@triton.jit", everything)
    file.line(signature, everything)
    file.extend(writer.lines.lines)
    return file.result()


def _two_blank_lines(file: Writer) -> None:
    file.line()
    file.line()
