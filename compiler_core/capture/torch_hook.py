"""Interception through torch's C entry for PEP 523: the one file that knows its contract.

In: `compile_frame(view, entries) -> decision`. Out: a `TorchHook`, which asks it about every frame
that runs inside a wrapped function and has no fitting version yet, and carries the decision out.

What the C side reads of our objects is duck-typed: a result with `frame_exec_strategy`,
`apply_to_code`, `guarded_code`; guarded code with `code`, `guard_manager`, `compile_id`,
`trace_annotation`; a manager with `root` and `diff_guard_root`, on which it writes `cache_entry` and
`extra_state` (borrowed pointers: we never touch them). Source: torch/csrc/dynamo/eval_frame_cpp.cpp.

Rules that keep the process alive, all held in this file:
* the callback is the key of the cache, so there is one bound method for the life of a hook;
* a replacement has the frame's argument layout and free variables, or the interpreter crashes;
* versions live in a region of their own, which torch.compile does not see (torch 2.13 on; before,
  a function is run under a private copy of its code object).
"""

from __future__ import annotations

import functools
import threading
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any, ClassVar

import torch
from torch._C._dynamo import eval_frame as torch_frames
from torch._C._dynamo import guards as torch_guards

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
from compiler_core.capture.guard_check import GuardTable
from compiler_core.capture.layout import layout_fault
from compiler_core.capture.skip import reason_to_skip
from compiler_core.errors import INTERNAL, InternalError

__all__ = ["TorchHook", "is_disabled"]

REGION = 1_000_003  # our bucket of the cache; torch.compile counts its own from 0

_set_frame: Callable[[Any], Any] = torch_frames.set_eval_frame
_set_region: Callable[[int], int] | None = getattr(
    torch_frames, "set_eval_frame_isolate_recompiles_id", None
)

_Action, _Strategy = torch_frames._FrameAction, torch_frames._FrameExecStrategy
DEFAULT = _Strategy(_Action.DEFAULT, _Action.DEFAULT)
SKIP = _Strategy(_Action.SKIP, _Action.DEFAULT)
SKIP_ALL = _Strategy(_Action.SKIP, _Action.SKIP)
RUN_ONLY = _Strategy(_Action.RUN_ONLY, _Action.DEFAULT)


class Manager:
    """The guards of one entry, as the C side holds them."""

    # torch.compile before 2.13 walks all entries of a code object and reads these two.
    id_matched_objs: ClassVar[dict[str, Any]] = {}
    global_scope: ClassVar[dict[str, Any]] = {}

    def __init__(self, root: Any, table: GuardTable | None, name: str):
        self.root, self.diff_guard_root = root, None
        self.cache_entry = self.extra_state = None
        self.table, self.name = table, name


@dataclass(slots=True)
class GuardedCode:
    code: CodeType
    guard_manager: Manager
    compile_id: str
    trace_annotation: str


@dataclass(slots=True)
class Result:
    frame_exec_strategy: Any
    apply_to_code: bool
    guarded_code: GuardedCode | None = None


_SKIP, _SKIP_ALL = Result(SKIP, True), Result(SKIP_ALL, True)
_ONCE, _RUN_ONLY = Result(DEFAULT, False), Result(RUN_ONLY, True)


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
        self._limited: set[int] = set()  # before 2.13: code objects that get no further version
        self._copies: dict[int, tuple[weakref.ref[CodeType], CodeType]] = {}  # before 2.13
        self._swallowed: list[tuple[int, Exception]] = []  # thread, error
        self._is_tested = False

    # ---------------------------------------------------------------- functions

    def wrap(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` with interception on while it runs. Adds about a microsecond to a call."""
        self._test_once()
        inner = fn if _set_region else self._under_copy(fn)
        callback, set_frame, swallowed = self._on_frame, _set_frame, self._swallowed
        set_region = _set_region or _no_region

        @functools.wraps(fn)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            outer_region, outer = set_region(REGION), set_frame(callback)
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
        set_frame = _set_frame

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
        torch_frames.set_code_exec_strategy(marked.__code__, SKIP_ALL)
        return marked

    # ---------------------------------------------------------------- versions

    def entries(self, code: CodeType) -> list[Entry]:
        """The versions kept of a code object, the last used first."""
        return self._entries_of(self._run_code(code))

    def _entries_of(self, code: CodeType) -> list[Entry]:
        kept: list[Any] = torch_frames._debug_get_cache_entry_list(code)
        ours = [e for e in kept if e.backend is self._on_frame]
        return [
            Entry(e.guard_manager.table, e.guard_manager.name, e.code)
            for e in ours
            if e.guard_manager.table is not None
        ]

    def forget(self, code: CodeType) -> None:
        """Drop versions and decisions of a code object, torch.compile's among them."""
        code = self._run_code(code)
        torch_frames.reset_code(code)
        self._known.pop(id(code), None)
        self._limited.discard(id(code))

    def reset(self) -> None:
        """Drop the versions and decisions of every code object that was asked about."""
        for reference in list(self._known.values()):
            code = reference()
            if code is not None:
                torch_frames.reset_code(code)
        self._known.clear()
        self._limited.clear()
        self._copies.clear()

    # ---------------------------------------------------------------- the callback

    def _callback(self, frame: Any, cache_entry: Any, frame_state: Any) -> Result:
        """Called by the C side when no version of a frame fits, with interception off."""
        code = frame.f_code
        try:
            reason = reason_to_skip(code)
            if reason is not None:
                self._on_skip(code, reason)
                return _SKIP
            if id(code) in self._limited:
                return _ONCE
            self._remember(code)
            view = FrameView(code, frame.f_locals, frame.f_globals, frame.f_builtins, frame.closure)
            return self._carried_out(code, self._compile_frame(view, self._entries_of(code)))
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
                manager = Manager(table.root(), table, name)
                return Result(DEFAULT, False, GuardedCode(new, manager, name, f"cutaway {name}"))
            case Skip(recursive=True):
                return _SKIP_ALL
            case Skip():
                return self._left_to_eager(code)
            case SkipOnce():
                return _ONCE
            case RunOnly():
                return self._limit(code)
        raise InternalError(INTERNAL, f"{decision!r} is no decision about a frame")

    def _left_to_eager(self, code: CodeType) -> Result:
        """Skip a code object. A mark on it would stop torch.compile as well where regions are missing."""
        if _set_region:
            return _SKIP
        manager = Manager(torch_guards.RootGuardManager(), None, "eager")
        return Result(DEFAULT, False, GuardedCode(code, manager, "eager", "cutaway eager"))

    def _limit(self, code: CodeType) -> Result:
        """Make no further version of a code object; without regions the mark has to be ours."""
        if _set_region:
            return _RUN_ONLY
        self._limited.add(id(code))
        return _ONCE

    def _remember(self, code: CodeType) -> None:
        key = id(code)

        def gone(reference: weakref.ref[CodeType]) -> None:
            self._known.pop(key, None)
            self._limited.discard(key)

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
        code, key = fn.__code__, id(fn.__code__)
        if key not in self._copies:
            gone = weakref.ref(code, lambda _: self._copies.pop(key, None))
            self._copies[key] = gone, code.replace()
        copy = types.FunctionType(
            self._copies[key][1],
            fn.__globals__,
            fn.__name__,
            fn.__defaults__,
            fn.__closure__,
        )
        copy.__kwdefaults__ = fn.__kwdefaults__
        return copy

    def _run_code(self, code: CodeType) -> CodeType:
        """The code object that really runs for this one."""
        return self._copies[id(code)][1] if id(code) in self._copies else code

    # ---------------------------------------------------------------- self test

    def _test_once(self) -> None:
        """Replace a trivial function, hit and miss it. Raises InternalError where torch differs."""
        if self._is_tested:
            return
        self._is_tested = True
        found = _self_test()
        if found != _EXPECTED:
            detail = f"torch {torch.__version__}'s frame hook gave {found}, not {_EXPECTED}"
            raise InternalError(INTERNAL, detail)


def is_disabled(fn: Any) -> bool:
    """Was this callable made by `TorchHook.disable`?"""
    return getattr(fn, "__cutaway_disabled__", False) is True


def _no_region(region: int) -> int:
    return region


def _called(fn: Callable[..., Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


_EXPECTED = ["asked 1", "replaced 1", "replaced 1", "asked 2", "replaced 2"]


def _self_test() -> list[str]:
    """What the hook does with `probe(1), probe(1), probe(2)` when each value gets its own version."""
    seen: list[str] = []

    def probe(value: int) -> str:
        return f"original {value}"

    def replaced(value: int) -> str:
        return f"replaced {value}"

    def callback(frame: Any, cache_entry: Any, frame_state: Any) -> Result:
        if frame.f_code is not code:
            return _ONCE
        expected = frame.f_locals["value"]
        seen.append(f"asked {expected}")
        root = torch_guards.RootGuardManager()
        root.add_lambda_guard(lambda L: L["value"] == expected, ["value"], None)
        made = replaced.__code__.replace(co_name="probe")
        return Result(DEFAULT, False, GuardedCode(made, Manager(root, None, "probe"), "", ""))

    code = probe.__code__
    outer = _set_frame(callback)
    try:
        for value in (1, 1, 2):
            seen.append(probe(value))
    finally:
        _set_frame(outer)
        torch_frames.reset_code(code)
    return seen
