"""One frame, from interception to a decision: capture, guards, graph, replacement, or why not.

In: the frame that the hook intercepted and the entries that did not fit. Out: what the hook is to
do. Whatever fails in here becomes a recorded fallback to eager, or is raised under `strict`.
"""

from __future__ import annotations

import inspect
import linecache
import tokenize
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

from compiler_core.capture import CannotCapture, assemble, capture_frame, compile_guards
from compiler_core.capture.breaks import UNCAUGHT
from compiler_core.capture.frame_titles import title_of
from compiler_core.capture.frames import Decision, Entry, FrameView, Keep, SkipOnce
from compiler_core.capture.guard_predicates import forward_ad_level
from compiler_core.capture.skip import ABOUT_LIBRARIES
from compiler_core.counters import counters
from compiler_core.errors import CATALOGUE, NO_CAPTURE, GraphBreakError
from compiler_core.frame_memory import FrameMemory, memory_of
from compiler_core.graph_code import first_call, graph_code
from compiler_core.guard_words import spoken
from compiler_core.logs import log_version
from compiler_core.options import Context
from compiler_core.prediction import closest_failures, is_of
from compiler_core.recording import FIRST_CALL, Recorder, Version
from compiler_core.recording import Decision as Record
from compiler_core.request import Request
from compiler_core.stages import Captured, GuardRow

__all__ = ["compile_frame", "note_failure", "note_skip"]

Opaque = Callable[[Callable[..., Any]], Callable[..., Any]]


def compile_frame(
    view: FrameView, entries: list[Entry], request: Request, recorder: Recorder, opaque: Opaque
) -> Decision:
    """Decide about one frame. Raises only what the user asked to see (`fullgraph`, `strict`).

    opaque: hides a callable's frames, and all below them, from interception.
    """
    entries = [entry for entry in entries if is_of(entry, request)]
    memory = memory_of(request, view.code)
    if len(entries) >= request.options.recompile_limit:
        return _limit_reached(view, entries, memory, recorder)
    if passing := _passing_state():
        return _passed(view, passing, request, recorder)
    if memory.left:
        return SkipOnce(memory.left)
    context = Context(request.options, recorder)
    code = view.code
    reason = _why_compiled(view, entries)
    with recorder.version(
        title_of(code), code.co_filename, code.co_firstlineno, _source(code), reason
    ) as version:
        try:
            decision = _compile(view, entries, request, context, opaque)
        except CannotCapture as refusal:
            _refuse_under_fullgraph(view, str(refusal), request)
            decision = _skipped(version, memory, str(refusal), context)
        except Exception as error:
            if is_for_the_user(error, request):
                raise
            decision = _failed(version, memory, error, context)
        counters.cache_hits += sum(map(_is_cache_hit, version.decisions))
        log_version(version)
    return decision


def _compile(
    view: FrameView, entries: list[Entry], request: Request, context: Context, opaque: Opaque
) -> Decision:
    recorder = context.recorder
    with recorder.phase("capture"):
        captured = capture_frame(view, context, entries)
    _note_break(captured, request, recorder)
    call = opaque(graph_code(captured, request, context))
    with recorder.phase("guards"):  # after the stages, which ask about sizes too
        table = compile_guards(captured, view)
    recorder.here.guards.extend(_guard_records(table.rows))
    first = opaque(first_call(call, view.globals, captured.graph_name, recorder))
    with recorder.phase("replacement"):
        code = assemble(captured, first)
    counters.recompiles += bool(entries)
    return Keep(code, table, recorder.here.name)


# ------------------------------------------------------------------------------ not captured

# Reasons to run a frame in eager that may be gone at the next call: nothing is decided for good.
_PASSING: tuple[tuple[Callable[[], Any], str], ...] = (
    (torch._C._len_torch_function_stack, "a torch function mode is active"),
    (torch._C._len_torch_dispatch_stack, "a torch dispatch mode is active"),
    (torch._C._functorch.peek_interpreter_stack, "inside a transform of torch.func"),
    (lambda: forward_ad_level() >= 0, "inside a level of forward-mode differentiation"),
)


def _passing_state() -> str | None:
    return next((reason for is_on, reason in _PASSING if is_on()), None)


def _passed(view: FrameView, reason: str, request: Request, recorder: Recorder) -> Decision:
    _refuse_under_fullgraph(view, reason, request)
    frame = recorder.frame(title_of(view.code), view.code.co_filename, view.code.co_firstlineno)
    counters.skipped_frames += frame.skipped != reason
    frame.skipped = reason
    return SkipOnce(reason)


def _skipped(version: Version, memory: FrameMemory, reason: str, context: Context) -> Decision:
    """Other values may be captured: the frame is left to eager when it was refused too often."""
    counters.skipped_frames += 1
    context.recorder.decide("skip", {f"frame:{version.name}"}, "eager", reason)
    memory.refusals += 1
    if memory.refusals >= context.options.recompile_limit:
        memory.left = reason
    return SkipOnce(reason)


def _failed(version: Version, memory: FrameMemory, error: Exception, context: Context) -> Decision:
    counters.fallbacks += 1
    memory.left = reason = f"{type(error).__name__}: {error}"
    context.recorder.decide("fallback", {f"frame:{version.name}"}, "eager", reason)
    return SkipOnce(reason)


def _refuse_under_fullgraph(view: FrameView, reason: str, request: Request) -> None:
    if request.fullgraph:
        raise GraphBreakError(NO_CAPTURE, f"{title_of(view.code)}: {reason}", view.where)


def is_for_the_user(error: Exception, request: Request) -> bool:
    """Does the user see this exception, or is it a failure of ours that eager makes good?"""
    return request.shows(error)


def _limit_reached(
    view: FrameView, entries: list[Entry], memory: FrameMemory, recorder: Recorder
) -> Decision:
    code, count, name = view.code, len(entries), title_of(view.code)
    reason = f"{name} was compiled {count} times, the limit; from now on it runs in eager"
    if not memory.is_limit_told:
        memory.is_limit_told = True
        what = f"{reason}. Last: {spoken(_why_compiled(view, entries))}. {_LIMIT_HINT}"
        recorder.decide("limit", {f"frame:{name}"}, "eager", what)
        warnings.warn_explicit(what, RuntimeWarning, code.co_filename, code.co_firstlineno)
    return SkipOnce(reason)


_LIMIT_HINT = "Mark sizes that change with mark_dynamic, or raise options={'recompile_limit': n}."


# ------------------------------------------------------------------------------ records


def _note_break(captured: Captured, request: Request, recorder: Recorder) -> None:
    if (info := captured.break_) is None:
        return
    where = f"{info.where.file}:{info.where.line}" if info.where else None
    counters.breaks += 1
    reason = f"{info.sentence}: {info.detail}" if info.detail else info.sentence
    name = recorder.here.name.rpartition("/")[0]
    recorder.decide(
        "break", {f"capture:{name}"}, info.code, reason, where=where,
        hints=list(info.hints), alive=list(info.alive), stack=list(info.stack),
    )  # fmt: skip
    if request.fullgraph and info.code != UNCAUGHT.code:  # then the program's own exception is due
        raise GraphBreakError(CATALOGUE[info.code], info.detail, where)


def _guard_records(rows: Iterable[GuardRow]) -> list[dict[str, Any]]:
    names = ("source", "kind", "expected", "check", "line", "reason")
    return [{name: getattr(row, name) for name in names} for row in rows]


def _why_compiled(view: FrameView, entries: list[Entry]) -> str:
    """Which guard of the closest entry failed: the entry with the fewest failing rows."""
    failures = closest_failures(entries, view.locals)
    if not failures:
        return FIRST_CALL
    row, actual = failures[0].row, failures[0].actual
    return f"{row.source} ({row.kind}): {row.expected} -> {actual} [{row.line}]"


def _is_cache_hit(record: Record) -> bool:
    return record.kind == "cache" and record.outcome == "hit"


def _source(code: Any) -> str:
    """The function's text; "" where there is no file, or none that can be cut into functions."""
    lines, first = linecache.getlines(code.co_filename), code.co_firstlineno
    try:
        return "".join(inspect.getblock(lines[first - 1 :])) if lines else ""
    except (tokenize.TokenError, SyntaxError):
        return ""


def note_failure(error: Exception, request: Request, recorder: Recorder) -> bool:
    """An exception on its way out of the hook: does the user see it? If not, the frame stays in eager."""
    if is_for_the_user(error, request):
        return True
    counters.fallbacks += 1
    recorder.decide("fallback", {"frame:<hook>"}, "eager", f"{type(error).__name__}: {error}")
    return False


def note_skip(code: Any, reason: str, recorder: Recorder) -> None:
    """A frame that is not for the capture, such as one of a library or a generator."""
    if reason in ABOUT_LIBRARIES:
        return
    counters.skipped_frames += 1
    frame = recorder.frame(title_of(code), code.co_filename, code.co_firstlineno)
    frame.skipped = reason
