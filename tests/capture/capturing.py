"""The harness of the capture tests: a hook whose graphs run as they were captured.

`captured(fn)` gives the wrapped function and a log of what was captured; `agree(make, calls)` runs a
program in plain Python and under the hook, call by call, and compares results, state, exceptions.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import torch

from compiler_core.capture.breaks import CannotCapture
from compiler_core.capture.frame_capture import capture_frame
from compiler_core.capture.frames import Keep, RunOnly, Skip
from compiler_core.capture.replacement import assemble, compile_guards
from compiler_core.capture.torch_hook import TorchHook
from compiler_core.options import Context, Options
from compiler_core.recording import Recorder

LIMIT = 8


@dataclass
class Log:
    """What the hook captured."""

    captures: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    graph_calls: int = 0

    @property
    def graphs(self) -> int:
        return sum(c.has_graph for c in self.captures)

    @property
    def breaks(self) -> list:
        return [c.break_ for c in self.captures if c.break_ is not None]

    @property
    def kinds(self) -> list[str]:
        return [b.code for b in self.breaks]

    @property
    def text(self) -> str:
        return "\n".join(c.replacement for c in self.captures)


def hook_for(log: Log, explore: bool = False) -> TorchHook:
    context = Context(Options.of({"strict": True, "explore": explore}), Recorder(explore))

    def compile_frame(view, prior):
        if len(prior) >= LIMIT:
            return RunOnly("the recompile limit")
        try:
            capture = capture_frame(view, context, prior)
        except CannotCapture as reason:
            log.skipped.append((view.code.co_name, str(reason)))
            return Skip(str(reason))
        log.captures.append(capture)

        def run(*inputs, graph=capture.graph):
            log.graph_calls += 1
            return graph.forward(*inputs)

        code = assemble(capture, hook.opaque(run))
        table = compile_guards(capture, view)
        return Keep(code, table, f"{view.code.co_name}/{len(prior)}")

    hook = TorchHook(compile_frame)
    return hook


def captured(fn, explore: bool = False):
    log = Log()
    hook = hook_for(log, explore)
    return hook.wrap(fn), log, hook


def outcome(fn, args, kwargs=None):
    try:
        return "value", fn(*args, **(kwargs or {}))
    except Exception as error:
        return "raised", (type(error), str(error))


def same(a, b, path="result") -> None:
    """Raise AssertionError where two results differ: types, structure, values, dtypes, strides."""
    assert type(a) is type(b), f"{path}: {type(a)} is not {type(b)}"
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape, (
            f"{path}: {a.dtype}{a.shape} {b.dtype}{b.shape}"
        )
        assert a.requires_grad == b.requires_grad, f"{path}: requires_grad"
        torch.testing.assert_close(
            b, a, equal_nan=True, rtol=0, atol=0, msg=lambda m: f"{path}: {m}"
        )
    elif isinstance(a, dict):
        assert list(a) == list(b), f"{path}: keys {list(a)} {list(b)}"
        for key in a:
            same(a[key], b[key], f"{path}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), f"{path}: length {len(a)} {len(b)}"
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{i}]")
    elif isinstance(
        a,
        (
            int,
            float,
            str,
            bool,
            type(None),
            bytes,
            set,
            frozenset,
            type,
            complex,
            torch.Size,
            slice,
            range,
        ),
    ):
        assert a == b or a != a, f"{path}: {a!r} {b!r}"


def agree(make, calls, *, state=lambda fn: None, before=lambda i, fn: None):
    """Run `make()`'s function on the calls both ways; every outcome, argument and state must agree.

    Returns the log, for what the test says about graphs and breaks.
    """
    plain = make()
    under = make()
    wrapped, log, _ = captured(under)
    for i, args in enumerate(calls):
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        before(i, plain)
        expected = outcome(plain, mine)
        before(i, under)
        got = outcome(wrapped, theirs)
        assert expected[0] == got[0], f"call {i}: {expected} {got}"
        same(expected[1], got[1], f"call {i}")
        same(mine, theirs, f"call {i} arguments")
        same(state(plain), state(under), f"call {i} state")
    return log
