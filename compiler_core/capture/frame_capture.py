"""Capturing a frame: attempts of the interpreter until one ends, then graph, guards, replacement.

In: a `FrameView`, the context, the versions kept so far. Out: a `FrameCapture`. Raises CannotCapture
when the frame must stay in eager as a whole; nothing else that is not a bug of ours.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from types import CodeType
from typing import Any, cast

import torch

from compiler_core.capture.breaks import (
    OVERLAP,
    SUSPENDED,
    Again,
    Break,
    CannotCapture,
    Restart,
    break_info,
)
from compiler_core.capture.dynamic_shapes import size_guards
from compiler_core.capture.endings import Ending, break_ending
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.frames import FrameView
from compiler_core.capture.generators import closes_silently
from compiler_core.capture.graph_call import graph_call
from compiler_core.capture.guard_predicates import forward_ad_level, same_storage
from compiler_core.capture.hints import hints_from
from compiler_core.capture.interpreter import Broken, Exit, Returned, run_outermost
from compiler_core.capture.normalise import instructions
from compiler_core.capture.render import NotRenderable, Renderer
from compiler_core.capture.replacement import FrameCapture, Plan, function_text, short
from compiler_core.capture.sources import local
from compiler_core.capture.trace import Trace, fresh_name, user_name
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.functions import Cell
from compiler_core.options import Context
from compiler_core.stages import BreakInfo, Captured, Effect

__all__ = ["capture_frame"]

_ATTEMPTS = 60
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def capture_frame(view: FrameView, context: Context, prior: Sequence[Any] = ()) -> Captured:
    """The graph of a frame up to its end or its first break. Raises CannotCapture."""
    _refuse(view)
    forced: dict[int, Break] = {}
    hints = hints_from(prior, view)
    overlap: Break | None = None
    for _ in itertools.repeat(None, _ATTEMPTS):
        trace = Trace(view, context, dict(forced), hints)
        trace.breaks_overlap = overlap is not None
        try:
            return _attempt(trace, overlap)
        except Again:
            continue
        except Restart as restart:
            forced[restart.step] = restart.cause
        except _Overlaps as overlaps:
            overlap = Break(OVERLAP, because=overlaps.args)
    raise CannotCapture(f"no attempt of {_ATTEMPTS} came to an end")


class _Overlaps(Exception):
    """An input written to shares memory with another: the write must run natively. Its argument: that fact."""


def _refuse(view: FrameView) -> None:
    code = view.code
    if code.co_flags & _GENERATORS:
        raise CannotCapture("a generator or coroutine")
    if _reads_its_own_locals(code):
        raise CannotCapture("locals(), eval() or exec() see the variables of the frame")
    if any(not name.isidentifier() for name in code.co_varnames[: code.co_argcount]):
        raise CannotCapture("an argument without a name in source")
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        raise CannotCapture("a torch function or dispatch mode is active", once=True)
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise CannotCapture("inside a transform of torch.func", once=True)
    if forward_ad_level() >= 0:
        raise CannotCapture("inside a level of forward-mode differentiation", once=True)


def _reads_its_own_locals(code: CodeType) -> bool:
    """A resume function would show other variables than the original."""
    names = ("locals", "eval", "exec")
    return any(i.op in ("LOAD_GLOBAL", "LOAD_NAME") and i.arg in names for i in instructions(code))


def _attempt(trace: Trace, overlap: Break | None) -> FrameCapture:
    mode = torch.is_grad_enabled()
    trace.guards.add_states(line=trace.view.where)
    if overlap is not None:
        trace.rely_on(overlap)
    frame, cells = _outermost(trace)
    initial = {name: cell.content for name, cell in cells.items()}
    try:
        exit_ = run_outermost(trace, frame)
        left_mode = torch.is_grad_enabled()
        _check_overlap(trace)
        return _finish(trace, cells, initial, exit_, mode, left_mode)
    finally:
        torch._C._set_grad_enabled(mode)
        trace.let_go()


def _outermost(trace: Trace) -> tuple[SymbolicFrame, dict[str, Cell]]:
    """The frame that was intercepted: arguments lazy, its cells outside cells."""
    view, code = trace.view, trace.view.code
    total = code.co_argcount + code.co_kwonlyargcount
    total += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)

    def lazy(name: str) -> Value:
        return Lazy(view.locals[name], source=local(name))

    locals_ = {n: lazy(n) for n in code.co_varnames[:total] if n in view.locals}
    cells: dict[str, Cell] = {}
    for name in code.co_cellvars:
        cells[name] = Cell(locals_.pop(name, None), name)
    for name, real in zip(code.co_freevars, view.closure):
        content = lazy(name) if name in view.locals else None
        cells[name] = Cell(content, name, outside=True)
        trace.known[id(real)] = cells[name]
        trace.keep.append(real)
    return SymbolicFrame(trace, code, view.globals, locals_, cells), cells


# ------------------------------------------------------------------------------ aliasing


def _check_overlap(trace: Trace) -> None:
    """Inputs that are written to share memory with no other input, now and on later calls."""
    inputs = trace.builder.inputs
    for written in trace.builder.written_inputs():
        for other in inputs:
            if other is written or other.value is None or written.value is None:
                continue
            one, two = cast(Any, written.value.real), cast(Any, other.value.real)
            if same_storage(one, two):
                if trace.breaks_overlap:
                    raise CannotCapture("inputs that share memory are changed in place")
                raise _Overlaps(("alias", written.source, one, {"other": other.source}))
            reason = "one of the two is changed in place"
            trace.guard("no_alias", written.source, one, reason, other=other.source)
    for target in trace.ledger.written():
        for known in list(trace.known.values()):
            if known is not target and _alike(known, target):
                trace.guard("different_object", target.source, None, "one of the two is written to", other=known.source)  # fmt: skip


def _alike(a: Value, b: Value) -> bool:
    """Whether two outside values could be one object on a later call."""
    both = a.source is not None and b.source is not None
    return both and type(a) is type(b) and a.python_type() is b.python_type()


# ------------------------------------------------------------------------------ the text


def _finish(
    trace: Trace, cells: dict[str, Cell], initial: dict[str, Value | None], exit_: Exit,
    mode: bool, left: bool,
) -> FrameCapture:  # fmt: skip
    code = trace.view.code
    taken = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
    changed = [n for n, c in cells.items() if c.content is not initial[n]]
    render = Renderer(trace, taken, cells, mutates=bool(trace.ledger.entries or changed))
    info: BreakInfo | None = None
    try:
        _check_generators(trace)
        effects = [(entry, entry.text(render)) for entry in trace.ledger.entries]
        if isinstance(exit_, Returned):
            ending = Ending([f"return {render(exit_.value)}"])
        else:
            ending = break_ending(trace, render, exit_)
            info = break_info(exit_.cause, exit_.instruction.span, ending.alive, ending.resumes)
        assigned = _own_cells(render, cells, initial)
    except NotRenderable as error:
        raise _earlier(trace, exit_, error) from None
    except Break as cause:
        raise CannotCapture(str(cause)) from None
    graph_name = fresh_name(f"graph_{user_name(code)}")
    sizes = size_guards(trace)
    sizes.add(trace.guards, trace.where())
    has_graph = bool(render.outputs or trace.builder.written_inputs() or _has_calls(trace))
    trace.builder.prune(render.outputs)
    call = graph_call(trace, render, graph_name) if has_graph else []
    lines = [*render.loads, *call, *render.builds, *assigned, *(text for _, text in effects)]
    if left != mode:
        setter = trace.inject(torch._C._set_grad_enabled, "set_grad_enabled").expr()
        lines.append(f"{setter}({left})")
    lines += _break_comment(exit_) + ending.lines
    graph = trace.builder.finish(render.outputs, taken)
    return FrameCapture(
        name=code.co_name,
        graph=graph,
        inputs=trace.builder.graph_inputs(taken),
        guards=trace.guards.rows(),
        effects=tuple(Effect(text, entry.kind, entry.origins) for entry, text in effects),
        break_=info,
        replacement=function_text(code, lines),
        graph_name=graph_name,
        instructions=trace.instructions,
        grad_enabled=mode,
        inference=torch.is_inference_mode_enabled(),
        shape_env=trace.builder.shape_env,
        has_graph=has_graph,
        plan=Plan(
            code, trace.view.globals, trace.injected, trace.guards,
            any(n.target is torch._C._set_grad_enabled for n in graph.graph.nodes), sizes,
        ),
    )  # fmt: skip


def _check_generators(trace: Trace) -> None:
    """A generator that is dropped inside `try` or `with` runs the rest of it: only a real one does.

    Where the rest does nothing (no handler takes GeneratorExit), dropping it does nothing either.
    """
    for generator in trace.generators:
        frame = generator.frame
        in_try = generator.state == "suspended" and frame.decoded.is_in_try(frame.current.offset)
        if in_try and not closes_silently(trace, generator):
            raise NotRenderable(generator, generator.birth)


def _has_calls(trace: Trace) -> bool:
    """Operations whose results nobody needs are dropped with the graph, unless they may raise."""
    return trace.builder.calls > 0


def _own_cells(
    render: Renderer, cells: dict[str, Cell], initial: dict[str, Value | None]
) -> list[str]:
    """Assignments to the frame's own cell variables, when a closure or a resume needs them."""
    if not render.uses_cells:
        return []
    return [
        f"{name} = {render(cell.content)}"
        for name, cell in cells.items()
        if not cell.outside and cell.content not in (None, initial[name])
    ]


def _break_comment(exit_: Exit) -> list[str]:
    if not isinstance(exit_, Broken):
        return []
    span, cause = exit_.instruction.span, exit_.cause
    where = f" at {short(span.file)}:{span.line}" if span is not None else ""
    detail = f" ({cause.detail})" if cause.detail else ""
    return [f"# graph break: {cause.kind.sentence}{where}{detail}".replace("\n", " ")]


def _earlier(trace: Trace, exit_: Exit, error: NotRenderable) -> Exception:
    """Break where the value was made, if that is earlier than here."""
    if error.step is None or (error.step >= trace.step and isinstance(exit_, Broken)):
        return CannotCapture(f"cannot rebuild {error}")
    why = f"; the graph breaks where {exit_.cause}" if isinstance(exit_, Broken) else ""
    cause = Break(SUSPENDED, f"{error}{why}")
    cause.user_stack = trace.stack()
    return Restart(error.step, cause)
