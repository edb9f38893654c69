"""Programs and processes that make a capture hard: recursion, exec, coroutines, threads, tracers, Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time

import pytest
import torch

import compiler_core as cc

STRICT = {"strict": True}


def compiled(fn):
    return cc.compile(fn, options=STRICT)


def nothing_fell_back():
    assert cc.stats().fallbacks == 0


# ---------------------------------------------------------------------------------- recursion


def power(x, n):
    return x * power(x, n - 1) if n else torch.ones_like(x)


def endless(x):
    return endless(x + 1)


@pytest.mark.parametrize("depth", [3, 30, 200])
def test_recursion_of_any_depth(depth):
    f = compiled(power)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.rand(4) * 0.1 + 0.95
        torch.testing.assert_close(f(x, depth), power(x, depth))
    assert cc.stats().graphs >= 1
    nothing_fell_back()


def test_endless_recursion_raises_what_python_raises():
    f = compiled(endless)
    for _ in range(2):
        with pytest.raises(RecursionError):
            f(torch.ones(2))
    g = compiled(lambda x: x.sin() + 1)
    x = torch.randn(3)
    torch.testing.assert_close(g(x), x.sin() + 1)


# ---------------------------------------------------------------------------------- code from text


def runs_text(x, text):
    scope = {"x": x, "torch": torch}
    exec(text, scope)
    return scope["y"] + eval("torch.cos(x)", scope)


def reads_locals(x):
    y = x * 2
    return sum(v for k, v in sorted(locals().items()) if k in ("x", "y"))


def test_exec_and_eval():
    f = compiled(runs_text)
    for text in ("y = x + 1", "y = torch.sin(x)", "y = x + 1"):
        x = torch.randn(3)
        torch.testing.assert_close(f(x, text), runs_text(x, text))
    nothing_fell_back()


def test_locals():
    f = compiled(reads_locals)
    for _ in range(3):
        x = torch.randn(3)
        torch.testing.assert_close(f(x), reads_locals(x))
    nothing_fell_back()


# ---------------------------------------------------------------------------------- coroutines


async def waits(x, log):
    log.append("before")
    y = torch.sin(x)
    await asyncio.sleep(0)
    log.append("after")
    return y + helper(x)


def helper(x):
    return torch.cos(x) * 2


async def yields(x):
    for n in range(3):
        yield x * n


class Managed:
    async def __aenter__(self):
        return 2

    async def __aexit__(self, *exc):
        return False


async def loops(x):
    total = torch.zeros_like(x)
    async with Managed() as factor:
        async for part in yields(x):
            total = total + helper(part) * factor
    return total


@pytest.mark.parametrize(
    "fn", [lambda x: waits(x, []), loops, waits], ids=["lambda", "loops", "waits"]
)
def test_coroutines_give_what_eager_gives_and_are_told(fn):
    def run(call, x, log):
        arguments = (x, log) if fn is waits else (x,)
        return asyncio.run(_awaited(call(*arguments)))

    f = compiled(fn)
    for _ in range(3):
        x, logs = torch.randn(3), ([], [])
        torch.testing.assert_close(run(f, x, logs[0]), run(fn, x, logs[1]))
        assert logs[0] == logs[1]
    cc.reset()
    told = cc.explain(fn, options=STRICT)
    coroutine = told(torch.randn(3), []) if fn is waits else told(torch.randn(3))
    assert coroutine.skipped or coroutine.breaks
    nothing_fell_back()


async def _awaited(coroutine):
    return await coroutine


# ---------------------------------------------------------------------------------- threads


def test_threads_that_compile_one_function_at_once():
    def work(x):
        return torch.softmax(x @ x.T, -1).sum(0) * scale

    scale = 3
    f, barrier, results = compiled(work), threading.Barrier(6), {}

    def run(number):
        torch.manual_seed(number)
        barrier.wait()
        for round_ in range(4):
            x = torch.randn(3 + number % 2, 4)
            results[number, round_] = (f(x) - work(x)).abs().max().item()

    threads = [threading.Thread(target=run, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 24 and max(results.values()) < 1e-5
    assert 1 <= cc.stats().graphs <= 3
    nothing_fell_back()


# ---------------------------------------------------------------------------------- tracers


def traced_program(x, log):
    log.append("in")
    y = helper(x) + 1
    print(end="")  # a graph break
    return y.relu() * 2


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile], ids=["settrace", "setprofile"])
def test_a_tracer_sees_its_events_and_the_program_compiles_or_says_why(setter):
    events = []

    def tracer(frame, event, argument):
        if frame.f_code.co_filename == __file__:
            events.append((frame.f_code.co_name, event))
        return tracer

    f = compiled(traced_program)
    setter(tracer)
    try:
        for _ in range(3):
            x, logs = torch.randn(3), ([], [])
            found, expected = f(x, logs[0]), traced_program(x, logs[1])
            assert torch.allclose(found, expected) and logs[0] == logs[1]
        explanation = cc.explain(traced_program, options=STRICT)(torch.randn(3), [])
    finally:
        setter(None)
    assert events
    assert explanation.graphs or explanation.skipped
    cc.reset()
    x = torch.randn(3)
    torch.testing.assert_close(f(x, []), traced_program(x, []))
    assert cc.stats().graphs >= 1
    nothing_fell_back()


def test_monitoring_tools_see_the_program():
    if not hasattr(sys, "monitoring"):
        pytest.skip("sys.monitoring came with Python 3.12")
    monitoring, seen = sys.monitoring, []
    monitoring.use_tool_id(3, "test")
    try:
        monitoring.register_callback(3, monitoring.events.PY_START, lambda c, o: seen.append(c))
        monitoring.set_events(3, monitoring.events.PY_START)
        f = compiled(traced_program)
        for _ in range(3):
            x = torch.randn(3)
            torch.testing.assert_close(f(x, []), traced_program(x, []))
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)
    assert seen and cc.stats().graphs >= 1
    nothing_fell_back()


# ---------------------------------------------------------------------------------- Ctrl-C


def slow_to_compile(x):
    for n in range(60):
        x = torch.sin(x) * 0.5 + n
    return x


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3])
def test_an_interrupted_compile_leaves_the_next_call_right(delay):
    f, x = compiled(slow_to_compile), torch.randn(5)
    outer = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
    timer.start()
    interrupted = False
    try:
        f(x)
        time.sleep(delay)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        timer.join()
        signal.signal(signal.SIGINT, outer)
    assert interrupted
    for _ in range(2):
        torch.testing.assert_close(f(x), slow_to_compile(x), rtol=1e-4, atol=1e-4)
    assert cc.stats().graphs == 1
    nothing_fell_back()


# ---------------------------------------------------------------------------------- exceptions


def raises_in_the_middle(x, log, bad):
    log.append("first")
    y = x * 2
    log.append(float(y.shape[0]))
    if bad:
        log.append("worst")
        y @ torch.ones(7, 7)
    log.append("last")
    return y + 1


def test_an_exception_comes_at_its_place_with_the_effects_before_it():
    f = compiled(raises_in_the_middle)
    for bad in (True, False, True, True):
        x, logs, outcomes = torch.randn(3, 5), ([], []), []
        for call, log in zip((f, raises_in_the_middle), logs):
            try:
                outcomes.append(call(x, log, bad))
            except Exception as error:
                outcomes.append((type(error), str(error)))
        assert logs[0] == logs[1]
        if bad:
            assert outcomes[0] == outcomes[1] and outcomes[0][0] is RuntimeError
        else:
            torch.testing.assert_close(*outcomes)
    nothing_fell_back()


# ---------------------------------------------------------------------------------- code objects, slices


def names_of(x, code):
    return x + len(code.co_name) + len(code.co_filename)


def test_a_code_object_is_guarded_by_what_it_is():
    text, f = "def other(): return 1", compiled(names_of)
    for file in ("a.py", "somewhere.py", "a.py"):
        space = {}
        exec(compile(text, file, "exec"), space)
        code, x = space["other"].__code__, torch.randn(3)
        torch.testing.assert_close(f(x, code), names_of(x, code))
    assert cc.stats().graphs >= 2
    nothing_fell_back()


def cut(x, part):
    return x[part] * 2


@pytest.mark.parametrize("number", [int, torch.tensor], ids=["ints", "tensors"])
def test_slices_from_outside(number):
    f, x = compiled(cut), torch.randn(6)
    for start, stop in ((0, 2), (1, 5), (0, 2), (3, 4)):
        part = slice(number(start), number(stop))
        torch.testing.assert_close(f(x, part), x[start:stop] * 2)
    assert cc.stats().graphs >= 1
    nothing_fell_back()
