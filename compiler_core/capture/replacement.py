"""The function that runs in place of a frame: its text, and the code object made of it.

In: how the trace ended. Out: a `FrameCapture`, whose `replacement` reads

    def f(x, y):
        # graph: 2 operations, lines 10-12
        (add,) = __cc_graph_f_0(x, y)
        # graph break: the program prints at example.py:13
        return __step_at_34_f(None, print, "y", add)

Loads that later statements could change stand before the graph call; then objects are built, side
effects replayed in program order, and the frame returns or goes on in a step or resume function.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from compiler_core.capture import guard_check
from compiler_core.capture.dynamic_shapes import SizeGuards
from compiler_core.capture.frames import FrameView
from compiler_core.capture.guard_check import GuardTable
from compiler_core.capture.guards import Guards
from compiler_core.errors import INTERNAL, InternalError
from compiler_core.stages import Captured

__all__ = ["FrameCapture", "Plan", "assemble", "compile_guards", "function_text", "signature"]


@dataclass(slots=True)
class Plan:
    """What assembling needs beyond the text. `injected` are objects that the text names."""

    code: CodeType
    globals: dict[str, Any]
    injected: dict[str, Any]
    guards: Guards | None
    changes_grad_mode: bool = False
    sizes: SizeGuards | None = None


@dataclass(frozen=True, slots=True, repr=False)
class FrameCapture(Captured):
    """A `Captured` with the plan that `assemble` follows."""

    plan: Plan = field(kw_only=True, repr=False, compare=False)


def compile_guards(captured: Captured, view: FrameView) -> GuardTable:
    """The guard table of a capture, once: the facts, which hold real inputs, are dropped then.

    Call it when the graph's code is made: what the stages behind the capture took for granted
    about sizes is guarded as well. Raises InternalError when a guard fails on the very values it was
    made from, CannotCapture for a condition on sizes that has no text.
    """
    assert isinstance(captured, FrameCapture) and captured.plan.guards is not None
    guards, captured.plan.guards = captured.plan.guards, None
    if captured.plan.sizes is not None:
        captured.plan.sizes.add(guards, view.where, "code was generated for sizes with this")
    return guard_check.compile_guards(guards.rows(), guards, view.locals, view.globals)


def signature(code: CodeType) -> str:
    """The parameter list of a code object, without defaults (frames come with all arguments)."""
    names, count, kwonly = code.co_varnames, code.co_argcount, code.co_kwonlyargcount
    parts = list(names[:count])
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    rest = count + kwonly
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[rest]}")
        rest += 1
    elif kwonly:
        parts.append("*")
    parts += names[count : count + kwonly]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[rest]}")
    return ", ".join(parts)


def function_text(code: CodeType, lines: list[str]) -> str:
    """The whole function around its statements."""
    head = [f"def {function_name(code)}({signature(code)}):"]
    if code.co_freevars:
        head.append(f"    nonlocal {', '.join(code.co_freevars)}")
        head.append(f"    if 0: {', '.join(code.co_freevars)}  # keeps the frame's closure")
    if code.co_cellvars:
        head.append(f"    if 0: {' = '.join(code.co_cellvars)} = None  # variables of inner functions")  # fmt: skip
    return "\n".join(head + [f"    {line}" for line in lines]) + "\n"


def function_name(code: CodeType) -> str:
    return code.co_name if code.co_name.isidentifier() else "frame"


def assemble(captured: Captured, graph_callable: Callable[..., Any]) -> CodeType:
    """The code object that replaces the frame; the graph's callable goes under `graph_name`.

    Puts what the text names among the frame's globals and registers the text in `linecache`.
    Raises InternalError when the layout of the result is not that of the frame.
    """
    assert isinstance(captured, FrameCapture)
    plan = captured.plan
    if captured.has_graph:
        call = _restoring_grad_mode(graph_callable) if plan.changes_grad_mode else graph_callable
        plan.globals[captured.graph_name] = call
    plan.globals.update(plan.injected)
    filename = f"<cutaway {captured.graph_name}>"
    text = captured.replacement
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return compiled(text, plan.code, filename)


def _restoring_grad_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """The graph sets grad modes inside; whatever happens there, the caller's comes back."""

    def graph(*inputs: Any) -> Any:
        mode = torch.is_grad_enabled()
        try:
            return function(*inputs)
        finally:
            torch._C._set_grad_enabled(mode)

    return graph


def compiled(text: str, original: CodeType, filename: str) -> CodeType:
    """Compile the text as a function nested in the original's free variables."""
    module = ast.parse(text, filename)
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    free = original.co_freevars
    if free:
        outer = ast.parse(f"def __outer({', '.join(free)}):\n    pass").body[0]
        assert isinstance(outer, ast.FunctionDef)
        outer.body = [function]
        module.body = [outer]
    code = _find(compile(module, filename, "exec", dont_inherit=True), function.name)
    code = code.replace(co_name=original.co_name, co_qualname=original.co_qualname)
    if code.co_freevars != free or _layout(code) != _layout(original):
        raise InternalError(INTERNAL, f"replacement of {original.co_name}: {code.co_freevars} is not {free}")  # fmt: skip
    return code


def _layout(code: CodeType) -> tuple[Any, ...]:
    flags = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    total = code.co_argcount + code.co_kwonlyargcount + bin(flags).count("1")
    return code.co_argcount, code.co_kwonlyargcount, flags, code.co_varnames[:total]


def _find(code: CodeType, name: str) -> CodeType:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            return constant if constant.co_name == name else _find(constant, name)
    raise InternalError(INTERNAL, f"no function {name} in the replacement")


def short(path: str) -> str:
    return os.path.basename(path)
