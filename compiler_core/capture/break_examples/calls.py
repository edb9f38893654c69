"""Breaks because of what a called function does, or where it comes from."""

from __future__ import annotations

import bisect
import builtins
import copy
import inspect
import json
import os
import random
import threading
import time
from typing import Any

import numpy
import torch

from compiler_core.capture.break_examples.example import Example, vector
from compiler_core.capture.break_kinds import calls as kinds

Tensor = torch.Tensor


def plus_one(x: Tensor) -> Tensor:
    return x * 2 + 1


def searches(x: Tensor) -> Tensor:
    y = x * 2
    place = bisect.bisect([1, 4, 9], 5)  # breaks
    return y + place


def searches_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y + sum(bound <= 5 for bound in [1, 4, 9])


@torch.compiler.disable  # type: ignore[untyped-decorator]
def doubled_in_eager(x: Tensor) -> Tensor:
    return x * 2


def calls_disabled(x: Tensor) -> Tensor:
    y = x + 1
    return doubled_in_eager(y) + 1  # type: ignore[no-any-return]  # breaks


def calls_enabled(x: Tensor) -> Tensor:
    y = x + 1
    return y * 2 + 1


def sets_state(x: Tensor) -> Tensor:
    y = x * 2
    torch.set_flush_denormal(False)  # breaks
    return y + 1


def calls_numpy(x: Tensor) -> Tensor:
    y = x * 2
    return y + 1 + numpy.ndim(3.0)  # breaks


def waits(x: Tensor) -> Tensor:
    y = x * 2
    time.sleep(0)  # breaks
    return y + 1


def asks_system(x: Tensor) -> Tensor:
    y = x * 2
    return y + os.path.exists(os.devnull)  # breaks


def asks_system_fixed(x: Tensor, exists: bool) -> Tensor:
    y = x * 2
    return y + exists


def draws(x: Tensor) -> Tensor:
    y = x * 2
    return y * random.random()  # breaks


def draws_fixed(x: Tensor, scale: Tensor) -> Tensor:
    y = x * 2
    return y * scale


def with_lock(call: int) -> tuple[Any, ...]:
    return (*vector(call), threading.Lock())


def locks(x: Tensor, lock: Any) -> Tensor:
    y = x * 2
    with lock:  # breaks
        y = y + 1
    return y


def evaluates(x: Tensor) -> Tensor:
    y = x * 2
    return y + builtins.eval("3 - 2")  # type: ignore[no-any-return]  # breaks


def looks_at_frames(x: Tensor) -> Tensor:
    y = x * 2
    depth = len(inspect.stack(0)) > 0  # breaks
    return y + depth


def copies(x: Tensor) -> tuple[Tensor, Any]:
    y = x * 2
    return y + 1, copy.deepcopy(threading.Lock) is None  # breaks


def transforms(x: Tensor) -> Tensor:
    y = x * 2
    return torch.func.vmap(torch.sum)(y.view(2, 2)) + 1  # breaks


def transforms_fixed(x: Tensor) -> Tensor:
    y = x * 2
    return y.view(2, 2).sum(1) + 1


def parses(x: Tensor) -> Tensor:
    y = x * 2
    return y + json.loads("[1]")[0]  # type: ignore[no-any-return]  # breaks


def checks(x: Tensor) -> Tensor:
    y = x * 2
    torch._assert((y < 99).all(), "too large")  # type: ignore[no-untyped-call]  # breaks
    return y + 1


EXAMPLES = (
    Example(kinds.UNKNOWN_CALL, searches, searches_fixed),
    Example(kinds.DISABLED, calls_disabled, calls_enabled),
    Example(kinds.GLOBAL_STATE, sets_state, plus_one),
    Example(kinds.NUMPY, calls_numpy, plus_one),
    Example(kinds.CLOCK, waits, plus_one),
    Example(
        kinds.SYSTEM, asks_system, asks_system_fixed,
        fixed_arguments=lambda call: (*vector(call), True),
    ),
    Example(
        kinds.OTHER_RANDOM, draws, draws_fixed,
        fixed_arguments=lambda call: (*vector(call), torch.tensor(0.5)),
        alternative="the caller draws",
    ),
    Example(kinds.THREADS, locks, plus_one, with_lock, vector),
    Example(kinds.CODE_FROM_TEXT, evaluates, plus_one),
    Example(kinds.INTROSPECTION, looks_at_frames, plus_one),
    Example(kinds.TRANSFORM, transforms, transforms_fixed),
    Example(kinds.LIBRARY, parses, plus_one),
    Example(kinds.CHECKS, checks, plus_one),
)  # fmt: skip
