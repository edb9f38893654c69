"""One frame, from interception to a decision: capture, guards, graph, replacement, or why not.

In: the frame that the hook intercepted and the entries that did not fit. Out: what the hook is to
do. Whatever fails in here becomes a recorded fallback to eager, or is raised under `strict`.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

import torch

from compiler_core.capture import CannotCapture, assemble, capture_frame, compile_guards
from compiler_core.capture.frames import Decision, Entry, FrameView, Keep, RunOnly, Skip
from compiler_core.capture.skip import ABOUT_LIBRARIES
from compiler_core.counters import counters
from compiler_core.devtools.copies import copy_of
from compiler_core.errors import CATALOGUE, GraphBreakError
from compiler_core.logs import log_version, wants
from compiler_core.options import Context, Options, Target
from compiler_core.pipeline import Compilation, compile_captured
from compiler_core.recording import Recorder, Version
from compiler_core.request import Request
from compiler_core.stage_records import captured_records, records_of
from compiler_core.stages import Captured

__all__ = ["compile_frame", "note_failure", "note_skip"]

Opaque = Callable[[Callable[..., Any]], Callable[..., Any]]


def compile_frame(
    view: FrameView, entries: list[Entry], request: Request, recorder: Recorder, opaque: Opaque
) -> Decision:
    """Decide about one frame. Raises only what the user asked to see (`fullgraph`, `strict`).

    opaque: hides a callable's frames, and all below them, from interception.
    """
    if len(entries) >= request.options.recompile_limit:
        return _limit_reached(view, entries, recorder)
    context = Context(request.options, recorder)
    code = view.code
    reason = _why_compiled(view, entries)
    with recorder.version(
        code.co_name, code.co_filename, code.co_firstlineno, _source(code), reason
    ) as version:
        try:
            decision = _compile(view, entries, request, context, opaque)
        except CannotCapture as refusal:
            decision = _skipped(version, str(refusal), context)
        log_version(version)
    return decision


def _compile(
    view: FrameView, entries: list[Entry], request: Request, context: Context, opaque: Opaque
) -> Decision:
    recorder = context.recorder
    with recorder.phase("capture"):
        captured = capture_frame(view, context, entries)
    _note_break(captured, request, recorder)
    with recorder.phase("guards"):
        table = compile_guards(captured, view)
    recorder.here.guards.extend(_guard_records(captured))
    call = opaque(_graph_callable(captured, request, context))
    first = opaque(_first_call(call, view.globals, captured.graph_name, recorder))
    with recorder.phase("replacement"):
        code = assemble(captured, first)
    counters.recompiles += bool(entries)
    return Keep(code, table, recorder.here.name)


def _graph_callable(captured: Captured, request: Request, context: Context) -> Callable[..., Any]:
    """The graph's code by the chosen backend; in eager, with the reason recorded, when that fails."""
    backend = (
        _BACKENDS.get(request.backend, _custom) if isinstance(request.backend, str) else _custom
    )
    try:
        return backend(captured, request, context)
    except Exception as error:
        if request.options.strict:
            raise
        return _fallback(captured, error, context)


def _generated(captured: Captured, request: Request, context: Context) -> Callable[..., Any]:
    compilation = compile_captured(captured, _targets(captured, request.options), context)
    context.recorder.compilations[context.recorder.here.name] = compilation
    _record_stages(context.recorder, compilation)
    _count_operators(compilation)
    return compilation.call


def _eager(captured: Captured, request: Request, context: Context) -> Callable[..., Any]:
    context.recorder.here.stages.extend(captured_records(captured))
    counters.ops_eager += sum(n.op.startswith("call") for n in captured.graph.graph.nodes)
    return captured.graph.forward


def _custom(captured: Captured, request: Request, context: Context) -> Callable[..., Any]:
    """Any `backend(graph_module, example_inputs)` of the ecosystem; the examples are fake tensors."""
    assert not isinstance(request.backend, str)
    context.recorder.here.stages.extend(captured_records(captured))
    return request.backend(captured.graph, [i.value for i in captured.inputs])


_BACKENDS = {"cutaway": _generated, "eager": _eager}


def _fallback(captured: Captured, error: Exception, context: Context) -> Callable[..., Any]:
    counters.fallbacks += 1
    failure = f"{type(error).__name__}: {error}"
    context.recorder.decide("fallback", {f"capture:{captured.name}"}, "eager", failure)
    return captured.graph.forward


def _first_call(
    call: Callable[..., Any], globals_: dict[str, Any], name: str, recorder: Recorder
) -> Callable[..., Any]:
    """What stands under the graph's name at first: runs it, counts it, then leaves `call` in its place."""
    version, has_run = recorder.here.name, False

    def run(*inputs: Any) -> Any:
        nonlocal has_run
        if recorder.keeps_inputs and not has_run:
            recorder.inputs[version] = [copy_of(value) for value in inputs]
        outputs = call(*inputs)
        counters.graphs += not has_run
        has_run = True
        if globals_.get(name) is run:
            globals_[name] = call
        return outputs

    return run


def _targets(captured: Captured, options: Options) -> list[Target]:
    """The target that is called (from the inputs' device unless named), then those to show."""
    named = [Target.parse(t) for t in options.also]
    if options.target != "auto":
        return [Target.parse(options.target), *named]
    devices = [i.value.device for i in captured.inputs if isinstance(i.value, torch.Tensor)]
    cuda = next((d for d in devices if d.type == "cuda"), None)
    if cuda is None:
        return [Target("cpu"), *named]
    major, minor = torch.cuda.get_device_capability(cuda)
    return [Target("cuda", 10 * major + minor), *named]


def _note_break(captured: Captured, request: Request, recorder: Recorder) -> None:
    if (info := captured.break_) is None:
        return
    where = f"{info.where.file}:{info.where.line}" if info.where else None
    counters.breaks += 1
    recorder.decide(
        "break", {f"capture:{captured.name}"}, info.code, f"{info.sentence}: {info.detail}", where=where,
        hints=list(info.hints), alive=list(info.alive), stack=list(info.stack),
    )  # fmt: skip
    if request.fullgraph:
        raise GraphBreakError(CATALOGUE[info.code], info.detail, where)


def _guard_records(captured: Captured) -> list[dict[str, Any]]:
    names = ("source", "kind", "expected", "check", "line", "reason")
    return [{name: getattr(row, name) for name in names} for row in captured.guards]


def _why_compiled(view: FrameView, entries: list[Entry]) -> str:
    """Which guard of the closest entry failed: the entry with the fewest failing rows."""
    failures = [_failing(entry, view) for entry in entries]
    if not failures:
        return "first call"
    row, actual = min(failures, key=len)[0]
    return f"{row.source} ({row.kind}): {row.expected} -> {actual} [{row.line}]"


def _failing(entry: Entry, view: FrameView) -> list[Any]:
    rows = [(row, actual) for row, ok, actual in entry.guard_table.explain(view.locals) if not ok]
    return rows or [(entry.guard_table.rows[0], "another compile() request")]


def _limit_reached(view: FrameView, entries: list[Entry], recorder: Recorder) -> Decision:
    reason = (
        f"{view.code.co_name} was compiled {len(entries)} times, the limit; it runs in eager from now on. "
        f"Last: {_why_compiled(view, entries)}. Raise options={{'recompile_limit': n}} or mark_dynamic the size."
    )
    recorder.decide("limit", {f"frame:{view.code.co_name}"}, "eager", reason)
    return RunOnly(reason)


def _skipped(version: Version, reason: str, context: Context) -> Decision:
    counters.skipped_frames += 1
    context.recorder.decide("skip", {f"frame:{version.name}"}, "eager", reason)
    return Skip(reason)


def _record_stages(recorder: Recorder, compilation: Compilation) -> None:
    if recorder.keeps_text or wants("output_code"):
        with recorder.phase("recording"):
            recorder.here.stages.extend(records_of(compilation))


def _count_operators(compilation: Compilation) -> None:
    for code in next(iter(compilation.targets.values())).values():
        calls = sum(type(item).__name__ == "Call" for item in code.lowered.program.body)
        counters.ops_library += calls
        counters.ops_generated += len(code.lowered.program.body) - calls


def _source(code: Any) -> str:
    lines, first = linecache.getlines(code.co_filename), code.co_firstlineno
    return "".join(inspect.getblock(lines[first - 1 :])) if lines else ""


def note_failure(error: Exception, request: Request, recorder: Recorder) -> bool:
    """An exception on its way out of a compile: does the user see it? If not, the frame stays in eager."""
    if request.options.strict or isinstance(error, GraphBreakError):
        return True
    counters.fallbacks += 1
    recorder.decide("fallback", (), "eager", f"{type(error).__name__}: {error}")
    return False


def note_skip(code: Any, reason: str, recorder: Recorder) -> None:
    """A frame that is not for the capture, such as one of a library or a generator."""
    if reason in ABOUT_LIBRARIES:
        return
    counters.skipped_frames += 1
    frame = recorder.frame(code.co_name, code.co_filename, code.co_firstlineno)
    frame.skipped = reason
