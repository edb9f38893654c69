"""The public interface: `compile` and its companions. Arguments are checked here, nothing else is done.

In: a function or module and what the user asks for. Out: a callable that compiles the frames it
runs. One hook serves the process; the request in force is `ACTIVE`'s.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch

from compiler_core.capture import TorchHook
from compiler_core.capture.frames import Decision, Entry, FrameView, SkipOnce
from compiler_core.compiled_module import compiled_class
from compiler_core.counters import Counters, counters
from compiler_core.driver import compile_frame, note_failure, note_skip
from compiler_core.errors import (
    BAD_VALUE,
    NOT_YET,
    BackendNotFound,
    NotSupportedYet,
    OptionError,
    closest,
)
from compiler_core.explanation import Explanation, why_nothing
from compiler_core.frame_memory import forget_frames
from compiler_core.logs import set_logs
from compiler_core.options import Options, check_mode
from compiler_core.recording import Recorder
from compiler_core.request import ACTIVE, Request

__all__ = [
    "compile",
    "compile_module",
    "disable",
    "explain",
    "mark_dynamic",
    "record",
    "reset",
    "set_logs",
    "stats",
]

BACKENDS = ("cutaway", "eager")


class _Session:
    """Where the facts of compiles go: the process's own recorder, or that of a `record()`."""

    def __init__(self) -> None:
        self.recorder = Recorder()


_session = _Session()


_one_at_a_time = threading.RLock()  # torch's tracing patches modules of the process


def _on_frame(view: FrameView, entries: list[Entry]) -> Decision:
    waited = not _one_at_a_time.acquire(blocking=False)
    if waited:
        _one_at_a_time.acquire()
    try:
        if waited and any(e.guard_table.check(view.locals) for e in _hook.entries(view.code)):
            return SkipOnce("another thread compiled this version in the meantime")
        with _unprofiled(), _unhooked():
            return compile_frame(view, entries, ACTIVE.request, _session.recorder, _hook.opaque)
    finally:
        _one_at_a_time.release()


@contextmanager
def _unprofiled() -> Iterator[None]:
    """The operators that a compile runs on fake tensors are no work of the program: profilers skip them."""
    torch.autograd._enable_record_function(False)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.autograd._enable_record_function(True)  # type: ignore[attr-defined]


def _unhooked() -> AbstractContextManager[Any]:
    """The program's hooks on saved tensors (checkpointing has some) see none that a compile saves."""
    if torch._C._autograd._top_saved_tensors_default_hooks(False) is None:
        return nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(_identity, _identity)


def _identity(value: Any) -> Any:
    return value


def _on_error(error: Exception) -> bool:
    return note_failure(error, ACTIVE.request, _session.recorder)


def _on_skip(code: types.CodeType, reason: str) -> None:
    note_skip(code, reason, _session.recorder)


_hook = TorchHook(_on_frame, _on_error, _on_skip)


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "cutaway",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function or module; the arguments mean what they mean in `torch.compile`.

    model: a function, a bound method, an `nn.Module` (the result is still that module: same
        parameters, `state_dict`, train/eval), or None to use this as a decorator.
    fullgraph: raise GraphBreakError at a graph break instead of splitting the function.
    dynamic: None (static sizes unless `mark_dynamic`); True and False are not supported yet.
    backend: "cutaway", "eager" (the capture alone) or any `callable(graph_module, example_inputs)`.
    mode: None or "default".
    options: names of `compiler_core.options.Options`, such as `{"strict": True}`.
    disable: return `model` as it is.

    Raises OptionError for a bad value, BackendNotFound, NotSupportedYet. Compiling happens at the
    first call with new guards' values; what fails inside falls back to eager with a recorded reason.
    """
    request = _request(fullgraph, dynamic, backend, mode, options)
    if model is None:
        return lambda later: later if disable else _compiled(later, request)
    return model if disable else _compiled(model, request)


def compile_module(module: torch.nn.Module, **arguments: Any) -> torch.nn.Module:
    """Compile a module in place: calling it compiles from now on. Returns the same object."""
    if not isinstance(module, torch.nn.Module):
        raise OptionError(
            BAD_VALUE, f"compile_module takes an nn.Module, not {type(module).__name__}"
        )
    request = _request(**{**_DEFAULTS, **arguments})
    module.__class__ = _class_of(module, request)
    return module


_DEFAULTS: dict[str, Any] = {
    "fullgraph": False, "dynamic": None, "backend": "cutaway", "mode": None, "options": None,
}  # fmt: skip


def _request(
    fullgraph: bool,
    dynamic: bool | None,
    backend: str | Callable[..., Any],
    mode: str | None,
    options: Mapping[str, Any] | None,
) -> Request:
    for name, value in (("fullgraph", fullgraph), ("dynamic", bool(dynamic))):
        if not isinstance(value, bool):
            raise OptionError(BAD_VALUE, f"{name} takes True or False, not {value!r}")
    if dynamic is not None:
        raise NotSupportedYet(
            NOT_YET, "dynamic=True and dynamic=False; mark sizes with mark_dynamic(x, dim)"
        )
    if isinstance(backend, str) and backend not in BACKENDS:
        raise BackendNotFound(BAD_VALUE, f"unknown backend {backend!r}{closest(backend, BACKENDS)}")
    if not isinstance(backend, str) and not callable(backend):
        raise OptionError(
            BAD_VALUE, f"backend takes a name or a callable, not {type(backend).__name__}"
        )
    if options is not None and not isinstance(options, Mapping):
        raise OptionError(BAD_VALUE, f"options takes a mapping, not {type(options).__name__}")
    check_mode(mode)
    return Request.of(Options.of(options), backend, fullgraph, dynamic)


def _compiled(model: Any, request: Request) -> Any:
    if isinstance(model, torch.nn.Module):
        twin = object.__new__(_class_of(model, request))
        twin.__dict__ = model.__dict__  # the same module, seen through a class whose call compiles
        return twin
    if not callable(model):
        raise OptionError(
            BAD_VALUE,
            f"compile takes a function or nn.Module, not {type(model).__name__} ({model!r})",
        )
    return _wrap(_plain(model), request)


def _class_of(model: torch.nn.Module, request: Request) -> type[torch.nn.Module]:
    return compiled_class(type(model), request, lambda call: _wrap(call, request))


def _wrap(fn: Callable[..., Any], request: Request) -> Callable[..., Any]:
    """`fn` with the hook on and `request` in force while it runs."""
    hooked, active = _hook.wrap(fn), ACTIVE

    @functools.wraps(fn)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        outer, active.request = active.request, request
        try:
            return hooked(*args, **kwargs)
        finally:
            active.request = outer

    _originals[compiled] = fn
    return compiled


_originals: WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = WeakKeyDictionary()


def _plain(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a compiled one was made of: of two `compile()`s, the outer is in force."""
    return _originals.get(fn, fn) if isinstance(fn, types.FunctionType) else fn


def disable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that always runs in eager, also when compiled code calls it."""
    disabled: Callable[..., Any] = _hook.disable(fn)
    return disabled


def mark_dynamic(tensor: torch.Tensor, *dims: int) -> None:
    """Give dimensions a size symbol at the next capture, so that one version serves all sizes ≥ 2.

    Raises OptionError for a dimension that the tensor does not have.
    """
    for dim in dims:
        if not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim():
            raise OptionError(
                BAD_VALUE, f"dimension {dim!r} of a tensor with {tensor.dim()} dimensions"
            )
    known: set[int] = getattr(tensor, "_cutaway_dynamic", set())
    tensor._cutaway_dynamic = known | {d % tensor.dim() for d in dims}  # type: ignore[attr-defined]


@contextmanager
def record(explore: bool = False, inputs: bool = False) -> Iterator[Recorder]:
    """Collect what the compiles inside leave behind: `with record() as r: …; r.recording.save(path)`.

    explore: also every instruction and every rewrite (about twice the compile time).
    inputs: also copies of each graph's first inputs (`r.inputs`), so that its stages can be run.
    """
    outer, _session.recorder = _session.recorder, Recorder(explore, True, inputs)
    try:
        yield _session.recorder
    finally:
        _session.recorder = outer


def explain(fn: Callable[..., Any], **arguments: Any) -> Callable[..., Explanation]:
    """`explain(fn)(*args)` compiles and runs `fn` afresh and says what happened, as a value that prints.

    arguments: those of `compile`. An exception of `fn` itself is raised, as by a call.
    """
    asked = _request(**{**_DEFAULTS, **arguments})

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        before = stats()
        with record() as recorder:
            request = replace(asked)  # a request of its own: no version was compiled for it yet
            _compiled(_afresh(_plain(fn)), request)(*args, **kwargs)
        return Explanation.of(recorder.recording, before, stats(), why_nothing(_plain(fn)))

    return explained


def _afresh(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function or method under a code object of its own, about which nothing was decided yet."""
    if isinstance(fn, types.MethodType):
        return types.MethodType(_afresh(fn.__func__), fn.__self__)
    if not isinstance(fn, types.FunctionType):
        return fn
    copy = types.FunctionType(
        fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    copy.__kwdefaults__ = fn.__kwdefaults__
    functools.update_wrapper(copy, fn)
    return copy


def stats() -> Counters:
    """The counters of this process, as a copy."""
    return counters.snapshot()


def reset() -> None:
    """Forget every compiled version, the counters and the process's own recording; not that of a `record()`."""
    _hook.reset()
    counters.clear()
    forget_frames()
    if not _session.recorder.keeps_text:
        _session.recorder = Recorder()
