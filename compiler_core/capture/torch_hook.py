"""Interception through torch's C entry for PEP 523 (`torch_frames.py` is its contract).

In: `compile_frame(view, entries) -> decision`. Out: a `TorchHook`, which asks it about every frame
that runs inside a wrapped function and has no fitting version yet, and carries the decision out.

Rules that keep the process alive, all held in this file:
* the callback is the key of the cache, so there is one bound method for the life of a hook;
* a replacement has the frame's argument layout and free variables, or the interpreter crashes;
* versions live in a region of their own, which torch.compile does not see (torch 2.13 on; before,
  a function runs under a private copy of its code object. Functions it calls are shared: one that
  has versions of ours must be forgotten before torch.compile compiles it by itself).
"""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

from compiler_core.capture import torch_frames
from compiler_core.capture.frames import (
    CompileFrame,
    Decision,
    Entry,
    FrameView,
    Keep,
    RunOnly,
    Skip,
    SkipOnce,
)
from compiler_core.capture.layout import layout_fault
from compiler_core.capture.skip import hides_what_it_calls, reason_to_skip
from compiler_core.capture.torch_frames import Result
from compiler_core.errors import INTERNAL, InternalError

__all__ = ["TorchHook", "is_disabled"]


class TorchHook:
    """The interceptor in use. One instance serves the process; instances do not share versions.

    compile_frame: decides about a frame; called with interception off.
    on_error: told of an exception that compile_frame raised, or of a replacement that was refused.
        When it returns True (as by default) the exception reaches the user, through the frame that
        was intercepted, and again at the end of the wrapped call should the program swallow it;
        when False the frame runs in eager from then on.
    on_skip: told of code that the rules of `skip.py` leave to eager, with the reason.
    """

    def __init__(
        self,
        compile_frame: CompileFrame,
        on_error: Callable[[Exception], bool] = lambda error: True,
        on_skip: Callable[[CodeType, str], None] = lambda code, reason: None,
    ):
        self._compile_frame, self._on_error, self._on_skip = compile_frame, on_error, on_skip
        self._on_frame = self._callback  # one object for life: the C side compares it
        self._known: dict[int, weakref.ref[CodeType]] = {}
        self._passed: set[int] = set()  # before 2.13: code objects that are not asked about again
        self._copies: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}  # before 2.13
        self._swallowed: list[tuple[int, Exception]] = []  # thread, error
        self._is_tested = False

    # ---------------------------------------------------------------- functions

    def wrap(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` with interception on while it runs. Adds about a microsecond to a call."""
        self._test_once()
        inner, set_region, follow = fn, torch_frames.set_region, None
        if not torch_frames.HAS_REGIONS:
            inner, set_region = self._under_copy(fn), torch_frames.no_region
            follow = self._follower(inner, fn)
        callback, set_frame, swallowed = self._on_frame, torch_frames.set_frame, self._swallowed
        region = torch_frames.REGION

        @functools.wraps(fn)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            if follow is not None:
                follow()
            outer_region, outer = set_region(region), set_frame(callback)
            try:
                result = inner(*args, **kwargs)
            except BaseException:
                self._drop_swallowed()
                raise
            finally:
                set_frame(outer)
                set_region(outer_region)
            if swallowed:
                self._raise_swallowed()
            return result

        return compiled

    def disable(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` with interception off while it runs; `is_disabled` knows it."""
        set_frame = torch_frames.set_frame

        @functools.wraps(fn)
        def disabled(*args: Any, **kwargs: Any) -> Any:
            outer = set_frame(None)
            try:
                return fn(*args, **kwargs)
            finally:
                set_frame(outer)

        disabled.__cutaway_disabled__ = True  # type: ignore[attr-defined]
        return disabled

    def opaque(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` such that neither its frame nor any frame below it is asked about.

        A plain function is marked and returned itself; its code object must not be shared with a
        function of the user. Any other callable gets a function around it.
        """
        marked = fn if isinstance(fn, types.FunctionType) else _called(fn)
        torch_frames.hide(marked.__code__)
        return marked

    # ---------------------------------------------------------------- versions

    def entries(self, code: CodeType) -> list[Entry]:
        """The versions kept of a code object, the last used first."""
        return torch_frames.entries_of(self._run_code(code), self._on_frame)

    def forget(self, code: CodeType) -> None:
        """Drop versions and decisions of a code object, torch.compile's among them."""
        code = self._run_code(code)
        torch_frames.reset(code)
        self._known.pop(id(code), None)
        self._passed.discard(id(code))

    def reset(self) -> None:
        """Drop the versions and decisions of every code object that was asked about."""
        for reference in list(self._known.values()):
            code = reference()
            if code is not None:
                torch_frames.reset(code)
        self._known.clear()
        self._passed.clear()
        self._copies.clear()

    # ---------------------------------------------------------------- the callback

    def _callback(self, frame: Any, cache_entry: Any, frame_state: Any) -> Result:
        """Called by the C side when no version of a frame fits, with interception off."""
        code = frame.f_code
        try:
            reason = reason_to_skip(code)
            if reason is not None:
                self._on_skip(code, reason)
                return torch_frames.LEAVE_ALL if hides_what_it_calls(code) else torch_frames.LEAVE
            if id(code) in self._passed:
                return torch_frames.ONCE
            self._remember(code)
            view = FrameView(code, frame.f_locals, frame.f_globals, frame.f_builtins, frame.closure)
            entries = torch_frames.entries_of(code, self._on_frame)
            return self._carried_out(code, self._compile_frame(view, entries))
        except Exception as error:
            if not self._on_error(error):
                return self._left_to_eager(code)
            self._swallowed.append((threading.get_ident(), error))
            raise

    def _carried_out(self, code: CodeType, decision: Decision) -> Result:
        match decision:
            case Keep(new, table, name):
                fault = layout_fault(code, new)
                if fault:
                    raise InternalError(INTERNAL, f"replacement of {code.co_name} refused: {fault}")
                return torch_frames.kept(new, table.root(), table, name)
            case Skip(recursive=True):
                return torch_frames.LEAVE_ALL
            case Skip():
                return self._left_to_eager(code)
            case SkipOnce():
                return torch_frames.ONCE
            case RunOnly():
                return self._marked(code, torch_frames.ONLY_KEPT)
        raise InternalError(INTERNAL, f"{decision!r} is no decision about a frame")

    def _left_to_eager(self, code: CodeType) -> Result:
        """Never ask about this code again."""
        return self._marked(code, torch_frames.LEAVE)

    def _marked(self, code: CodeType, mark: Result) -> Result:
        """Mark a code object. Without regions torch.compile would heed the mark, so we remember it."""
        if torch_frames.HAS_REGIONS:
            return mark
        self._passed.add(id(code))
        return torch_frames.ONCE

    def _remember(self, code: CodeType) -> None:
        key = id(code)

        def gone(reference: weakref.ref[CodeType]) -> None:
            self._known.pop(key, None)
            self._passed.discard(key)

        if key not in self._known:
            self._known[key] = weakref.ref(code, gone)

    # ---------------------------------------------------------------- errors

    def _drop_swallowed(self) -> list[Exception]:
        """This thread's errors, which are on their way to the user or about to be."""
        thread = threading.get_ident()
        mine = [error for owner, error in self._swallowed if owner == thread]
        self._swallowed[:] = [item for item in self._swallowed if item[0] != thread]
        return mine

    def _raise_swallowed(self) -> None:
        for error in self._drop_swallowed():
            raise error

    # ---------------------------------------------------------------- before torch 2.13

    def _under_copy(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` under a copy of its code object, which torch.compile knows nothing of."""
        if isinstance(fn, types.MethodType):
            return types.MethodType(self._under_copy(fn.__func__), fn.__self__)
        if not isinstance(fn, types.FunctionType):
            return fn
        copy = types.FunctionType(
            self._copy_of(fn.__code__), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
        )
        copy.__kwdefaults__ = fn.__kwdefaults__
        return copy

    def _copy_of(self, code: CodeType) -> CodeType:
        key = id(code)
        if key not in self._copies:
            gone = weakref.ref(code, lambda _: self._copies.pop(key, None))
            self._copies[key] = gone, code.replace()
        return self._copies[key][1]

    def _follower(self, copy: Any, fn: Any) -> Callable[[], None] | None:
        """Makes a copied function what its original is now: defaults and code may be set at any time."""
        copy, fn = getattr(copy, "__func__", copy), getattr(fn, "__func__", fn)
        if copy is fn:
            return None

        def follow() -> None:
            if copy.__defaults__ is not fn.__defaults__:
                copy.__defaults__ = fn.__defaults__
            if copy.__kwdefaults__ is not fn.__kwdefaults__:
                copy.__kwdefaults__ = fn.__kwdefaults__
            if copy.__code__ is not self._copy_of(fn.__code__):
                copy.__code__ = self._copy_of(fn.__code__)

        return follow

    def _run_code(self, code: CodeType) -> CodeType:
        """The code object that really runs for this one."""
        return self._copies[id(code)][1] if id(code) in self._copies else code

    # ---------------------------------------------------------------- self test

    def _test_once(self) -> None:
        """Replace a trivial function, hit and miss it. Raises InternalError where torch differs."""
        if self._is_tested:
            return
        self._is_tested = True
        found = torch_frames.self_test()
        if found != torch_frames.EXPECTED:
            detail = (
                f"torch {torch.__version__}'s frame hook gave {found}, not {torch_frames.EXPECTED}"
            )
            raise InternalError(INTERNAL, detail)


def is_disabled(fn: Any) -> bool:
    """Was this callable made by `TorchHook.disable`?"""
    return getattr(fn, "__cutaway_disabled__", False) is True


def _called(fn: Callable[..., Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call
