"""The contract of torch's C entry for PEP 523, as objects: what it reads of ours, and its switches.

In: nothing. Out: the functions that turn interception on, the results that a callback may give, and
a self test that names what a new torch does differently. What the C side reads is duck-typed: a
result with `frame_exec_strategy`, `apply_to_code`, `guarded_code`; guarded code with `code`,
`guard_manager`, `compile_id`, `trace_annotation`; a manager with `root` and `diff_guard_root`, on
which it writes `cache_entry` and `extra_state` (borrowed pointers: nothing of ours touches them).
Source: torch/csrc/dynamo/eval_frame_cpp.cpp and cache_entry.cpp, 2.11 to 2.14.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch._C._dynamo import eval_frame
from torch._C._dynamo import guards as torch_guards

from compiler_core.capture.frames import Entry
from compiler_core.capture.guard_check import GuardTable

__all__ = [
    "EXPECTED", "HAS_REGIONS", "LEAVE", "LEAVE_ALL", "ONCE", "ONLY_KEPT", "REGION", "Manager", "Result",
    "entries_of", "hide", "kept", "no_region", "reset", "self_test", "set_frame", "set_region",
]  # fmt: skip

REGION = 1_000_003  # our bucket of the cache; torch.compile counts its own from 0

set_frame: Callable[[Any], Any] = eval_frame.set_eval_frame


def no_region(region: int) -> int:
    """Before torch 2.13 the cache has one part only."""
    return region


set_region: Callable[[int], int] = getattr(
    eval_frame, "set_eval_frame_isolate_recompiles_id", no_region
)
HAS_REGIONS = set_region is not no_region

_Action, _Strategy = eval_frame._FrameAction, eval_frame._FrameExecStrategy
DEFAULT = _Strategy(_Action.DEFAULT, _Action.DEFAULT)
SKIP = _Strategy(_Action.SKIP, _Action.DEFAULT)
SKIP_ALL = _Strategy(_Action.SKIP, _Action.SKIP)
RUN_ONLY = _Strategy(_Action.RUN_ONLY, _Action.DEFAULT)


class Manager:
    """The guards of one entry, as the C side holds them, and as torch.compile may come to read them.

    Where both compilers run one code object, torch 2.11 and 2.12 walk all entries when torch.compile
    recompiles; later versions when its stance refuses to. They ask each entry which objects it was made for,
    and why it fails: one that is marked as dropped (`isinstance` of their class) only tells its reason.
    """

    def __init__(self, root: Any, table: GuardTable | None, name: str):
        self.root, self.diff_guard_root = root, None
        self.cache_entry = self.extra_state = None
        self.table, self.name = table, name
        self.id_matched_objs = {
            "": lambda: self.name
        }  # no frame has it: not counted as torch.compile's
        self.invalidation_reason = f"{name} is a version that Cutaway keeps"

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        dropped = getattr(
            sys.modules.get("torch._dynamo.guards"), "DeletedGuardManagerWrapper", None
        )
        return dropped or Manager

    def collect_diff_guard_sources(self) -> set[str]:
        return set()

    def populate_diff_guard_manager(self) -> None:
        """There is none: `diff_guard_root` stays None."""


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


LEAVE, LEAVE_ALL = Result(SKIP, True), Result(SKIP_ALL, True)
ONCE, ONLY_KEPT = Result(DEFAULT, False), Result(RUN_ONLY, True)


def kept(code: CodeType, root: Any, table: GuardTable | None, name: str) -> Result:
    """Run `code` in place of the frame, now and whenever the guards at `root` hold."""
    manager = Manager(root, table, name)
    return Result(DEFAULT, False, GuardedCode(code, manager, name, f"cutaway {name}"))


def entries_of(code: CodeType, callback: object) -> list[Entry]:
    """The versions that this callback kept of a code object, the last used first."""
    found: list[Any] = eval_frame._debug_get_cache_entry_list(code)
    ours = [(e.guard_manager, e.code) for e in found if e.backend is callback]
    return [Entry(m.table, m.name, new) for m, new in ours if m.table is not None]


def hide(code: CodeType) -> None:
    """Never ask about this code, nor about what it calls."""
    eval_frame.set_code_exec_strategy(code, SKIP_ALL)


def reset(code: CodeType) -> None:
    """Drop all versions and marks of a code object, those of torch.compile among them."""
    eval_frame.reset_code(code)


EXPECTED = ["asked 1", "replaced 1", "replaced 1", "asked 2", "replaced 2"]


def self_test() -> list[str]:
    """What the hook does with `probe(1), probe(1), probe(2)` when each value gets its own version."""
    seen: list[str] = []

    def probe(value: int) -> str:
        return f"original {value}"

    def replaced(value: int) -> str:
        return f"replaced {value}"

    def callback(frame: Any, cache_entry: Any, frame_state: Any) -> Result:
        if frame.f_code is not code:
            return ONCE
        expected = frame.f_locals["value"]
        seen.append(f"asked {expected}")
        root = torch_guards.RootGuardManager()
        root.add_lambda_guard(lambda L: L["value"] == expected, ["value"], None)
        made = replaced.__code__.replace(co_name="probe")
        return kept(made, root, None, "probe")

    code = probe.__code__
    outer = set_frame(callback)
    try:
        for value in (1, 1, 2):
            seen.append(probe(value))
    finally:
        set_frame(outer)
        eval_frame.reset_code(code)
    return seen
