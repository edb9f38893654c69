"""The hook of the process: frames that run inside compiled functions come through here to the driver.

In: functions to watch. Out: functions that compile the frames they run. One hook serves the process;
which request is in force travels in `ACTIVE`, where the facts go in `SESSION`.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from compiler_core.capture import TorchHook
from compiler_core.capture.frames import Decision, Entry, FrameView, SkipOnce
from compiler_core.recording import Recorder
from compiler_core.request import ACTIVE, Request

if TYPE_CHECKING:
    from compiler_core.prediction import Prediction

__all__ = ["HOOK", "SESSION", "compiling", "original_of", "watched"]


class Session:
    """Where the facts of compiles go: the process's own recorder, or that of a `record()`."""

    def __init__(self) -> None:
        self.recorder = Recorder()

    @contextmanager
    def recording(self, recorder: Recorder) -> Iterator[None]:
        """Facts go to this recorder for a while."""
        outer, self.recorder = self.recorder, recorder
        try:
            yield
        finally:
            self.recorder = outer


SESSION = Session()


_one_at_a_time = threading.RLock()  # torch's tracing patches modules of the process


def _on_frame(view: FrameView, entries: list[Entry]) -> Decision:
    from compiler_core.driver import compile_frame  # all stages: loaded by the first compile

    with compiling() as waited:
        if waited and any(e.guard_table.check(view.locals) for e in HOOK.entries(view.code)):
            return SkipOnce("another thread compiled this version in the meantime")
        return compile_frame(view, entries, ACTIVE.request, SESSION.recorder, HOOK.opaque)


@contextmanager
def compiling() -> Iterator[bool]:
    """One compile at a time, unseen by profilers and hooks. Gives whether another thread's was waited for."""
    waited = not _one_at_a_time.acquire(blocking=False)
    if waited:
        _one_at_a_time.acquire()
    try:
        with _unprofiled(), _unhooked():
            yield waited
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
    from compiler_core.driver import note_failure

    return note_failure(error, ACTIVE.request, SESSION.recorder)


def _on_skip(code: types.CodeType, reason: str) -> None:
    from compiler_core.driver import note_skip

    note_skip(code, reason, SESSION.recorder)


HOOK = TorchHook(_on_frame, _on_error, _on_skip)


def watched(fn: Callable[..., Any], request: Request) -> Callable[..., Any]:
    """`fn` with the hook on and `request` in force while it runs."""
    hooked, active = HOOK.wrap(fn), ACTIVE

    @functools.wraps(fn)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        outer, active.request = active.request, request
        try:
            return hooked(*args, **kwargs)
        finally:
            active.request = outer

    def would_recompile(*args: Any, **kwargs: Any) -> Prediction:
        """Would this call compile? Nothing is compiled or run: `print(f.would_recompile(x))`."""
        from compiler_core.prediction import predict

        return predict(fn, request, HOOK.entries, args, kwargs)

    compiled.would_recompile = would_recompile  # type: ignore[attr-defined]
    compiled.__cutaway_compiled__ = request, compiled.__code__  # type: ignore[attr-defined]
    _originals[compiled] = fn
    return compiled


_originals: WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = WeakKeyDictionary()


def original_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a compiled one was made of: of two `compile()`s, the outer is in force."""
    return _originals.get(fn, fn) if isinstance(fn, types.FunctionType) else fn
