"""The last statements of a replacement: return, branch on a tensor, step and resume.

In: how the trace ended and a renderer. Out: statements, and the names of the functions that go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType

from compiler_core.capture.breaks import CannotCapture
from compiler_core.capture.interpreter import Broken
from compiler_core.capture.liveness import live_names
from compiler_core.capture.normalise import decode
from compiler_core.capture.render import Renderer
from compiler_core.capture.resume_points import resume_function, root_of, step_function
from compiler_core.capture.splice import CannotEnter, cells_of, uses_super
from compiler_core.capture.trace import Trace
from compiler_core.capture.values.base import NULL, Value

__all__ = ["Ending", "break_ending"]

_JUMPS = {
    "POP_JUMP_IF_FALSE": (False, False), "POP_JUMP_IF_TRUE": (True, False),
    "JUMP_IF_FALSE_OR_POP": (False, True), "JUMP_IF_TRUE_OR_POP": (True, True),
}  # fmt: skip


@dataclass(slots=True)
class Ending:
    """Statements, the resume functions they call, and the locals that are carried."""

    lines: list[str]
    resumes: list[str] = field(default_factory=list)
    alive: list[str] = field(default_factory=list)


def break_ending(trace: Trace, render: Renderer, exit_: Broken) -> Ending:
    """What follows the graph at a break. Raises CannotCapture when there is no way to go on."""
    ending = Ending([])
    try:
        if exit_.instruction.op in _JUMPS:
            _branch(trace, render, exit_, ending)
        else:
            _step(trace, render, exit_, ending)
    except CannotEnter as error:
        raise CannotCapture(f"no way to go on behind a break: {error}") from None
    return ending


def _branch(trace: Trace, render: Renderer, exit_: Broken, ending: Ending) -> None:
    """`if condition: return <one way>`, `return <the other>`."""
    jumps_if, keeps = _JUMPS[exit_.instruction.op]
    code, target = trace.view.code, exit_.instruction.target
    assert target is not None
    after = decode(code).after[exit_.instruction.offset]
    *below, condition = exit_.stack
    jumped = [*below, condition] if keeps else below
    on_true, on_false = (target, jumped), (after, below)
    if not jumps_if:
        on_true, on_false = on_false, on_true
    ending.lines.append(f"if {render(condition)}:")
    ending.lines.append(f"    return {_resume(trace, render, exit_, *on_true, ending)}")
    ending.lines.append(f"return {_resume(trace, render, exit_, *on_false, ending)}")


def _resume(
    trace: Trace, render: Renderer, exit_: Broken, offset: int, stack: Sequence[Value],
    ending: Ending, native: bool = False,
) -> str:  # fmt: skip
    code = trace.view.code
    names = _carried(code, offset, exit_)
    nulls = [value is NULL for value in stack]
    name = resume_function(code, offset, nulls, names, trace.view.globals, native=native)
    return _call(code, render, name, stack, names, exit_, ending)


def _step(trace: Trace, render: Renderer, exit_: Broken, ending: Ending) -> None:
    """The group at the break, natively; then the resume behind it."""
    code, offset = trace.view.code, exit_.instruction.offset
    names = _carried(code, offset, exit_)
    nulls = [value is NULL for value in exit_.stack]
    try:
        name = step_function(code, offset, nulls, names, trace.view.globals)
    except CannotEnter:
        ending.lines.append(f"return {_resume(trace, render, exit_, offset, exit_.stack, ending, native=True)}")  # fmt: skip
        return
    ending.lines.append(f"return {_call(code, render, name, exit_.stack, names, exit_, ending)}")


def _carried(code: CodeType, offset: int, exit_: Broken) -> list[str]:
    """The locals that are live at an offset and bound, in the frame's order."""
    root = root_of(code, offset).code
    live = set(live_names(code, offset))
    if uses_super(root):
        live.add(root.co_varnames[0])
    cells = cells_of(code)
    return [n for n in exit_.locals if n in live and n not in cells and n != "__first"]


def _call(
    code: CodeType, render: Renderer, name: str, stack: Sequence[Value], names: list[str],
    exit_: Broken, ending: Ending,
) -> str:  # fmt: skip
    cells = cells_of(code)
    closure = f"(lambda: ({', '.join(cells)},)).__closure__" if cells else "None"
    render.uses_cells = render.uses_cells or bool(cells)
    arguments = [
        closure,
        *(["None"] if uses_super(root_of(code, exit_.instruction.offset).code) else []),
    ]
    arguments += [render(value) for value in stack if value is not NULL]
    arguments += [render(exit_.locals[local]) for local in names]
    ending.resumes.append(name)
    ending.alive += [n for n in [*names, *cells] if n not in ending.alive]
    return f"{name}({', '.join(arguments)})"
