"""The statement that calls the graph, and the way back when an operator in it raises.

In: the trace and the outputs that are needed. Out: statements. When effects come after the graph, or
an operation stands under a handler of the program, an exception of the graph must not leave as it
is: nothing was changed yet, so the frame runs as written, and raises (or not) at the user's line.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import TYPE_CHECKING, Any

from compiler_core.capture.module_members import store_of
from compiler_core.capture.render import Renderer
from compiler_core.capture.resume_points import trampoline
from compiler_core.capture.sources import Source
from compiler_core.capture.trace import fresh_name

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["graph_call"]


def graph_call(trace: Trace, render: Renderer, graph_name: str) -> list[str]:
    """`(outputs) = graph(inputs)` with a comment; inside `try` when a native run must be possible."""
    sources = [_text(trace, entry.source, render.hidden) for entry in trace.builder.inputs]
    call = f"{graph_name}({', '.join(sources)})"
    if len(call) > 90:
        inner = "".join(f"    {source},\n" for source in sources)
        call = f"{graph_name}(\n{inner})"
    names = ", ".join(render.output_names) + ("," if len(render.output_names) == 1 else "")
    lines = (f"({names}) = {call}" if names else call).split("\n")
    if _may_run_again(trace):
        lines = ["try:", *(f"    {line}" for line in lines), *_native_run(trace)]
    return [_comment(trace), *lines]


def _text(trace: Trace, source: Source, hidden: frozenset[str]) -> str:
    """An input; a parameter is read from its module's store, past `nn.Module.__getattr__`."""
    store = store_of(source, trace.view.locals, trace.view.globals)
    if store is None or source.base is None:
        return source.expr(hidden)
    return f"{_text(trace, source.base, hidden)}.{store}[{source.name!r}]"


def _comment(trace: Trace) -> str:
    graph = trace.builder.graph
    lines = sorted({line for node in graph.nodes for line in _lines(trace, node)})
    where = f", lines {lines[0]}-{lines[-1]}" if lines else ""
    return f"# graph: {trace.builder.calls} operations{where}"


def _lines(trace: Trace, node: Any) -> list[int]:
    """The lines of the outermost frame that a call comes from."""
    if not node.op.startswith("call"):
        return []
    handles = [h for h in node.meta.get("origins", ()) if h.startswith("instr:f0:")]
    spans = [trace.instructions[h].span for h in handles if h in trace.instructions]
    return [span.line for span in spans if span is not None]


def _may_run_again(trace: Trace) -> bool:
    """Whether an exception of the graph needs the frame as written, and running it twice is safe."""
    is_needed = bool(trace.ledger.entries) or trace.builder.is_under_handler
    return is_needed and not trace.builder.written_inputs()


def _native_run(trace: Trace) -> list[str]:
    code = trace.view.code
    native = code.replace(co_qualname=f"__native_at_0_{code.co_name}")
    name = trace.inject(trampoline(native, trace.view.globals), f"native_{code.co_name}").expr()
    free = code.co_freevars
    closure = f"(lambda: ({', '.join(free)},)).__closure__" if free else "None"
    raised = fresh_name("raised")
    return [
        "except Exception:  # an operator raised: run as written, with effects and handlers",
        f"    {raised} = True",
        "else:",
        f"    {raised} = False",
        f"if {raised}:  # outside of `except`: what it raises has no other context",
        f"    return {name}({', '.join([closure, *_arguments(code)])})",
    ]


def _arguments(code: CodeType) -> list[str]:
    """The frame's own arguments, passed on."""
    names, count = code.co_varnames, code.co_argcount
    total = count + code.co_kwonlyargcount
    passed = list(names[:count])
    rest = total
    if code.co_flags & inspect.CO_VARARGS:
        passed.append(f"*{names[rest]}")
        rest += 1
    passed += [f"{name}={name}" for name in names[count:total]]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        passed.append(f"**{names[rest]}")
    return passed
