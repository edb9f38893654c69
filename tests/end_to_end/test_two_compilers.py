"""torch.compile and Cutaway on one function, in both orders: both really compile, both are right."""

from __future__ import annotations

import copy

import pytest
import torch
from agreement import STRICT, compiling
from programs import Layer, printing, wave
from torch._dynamo.testing import CompileCounterWithBackend

import compiler_core as cc
from compiler_core.capture.torch_frames import HAS_REGIONS

BACKENDS = ("eager", "aot_eager")


@pytest.fixture(autouse=True)
def no_versions_of_torch():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def run_both(first, second, fn, inputs):
    for x in inputs:
        expected = fn(x)
        for compiled in (first, second, first):
            torch.testing.assert_close(compiled(x), expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("torch_first", [True, False], ids=["torch_first", "cutaway_first"])
def test_function_in_both_orders(backend, torch_first):
    def f(x):
        return wave(x, x * 2).sum(0)

    counter = CompileCounterWithBackend(backend)
    pair = [torch.compile(f, backend=counter), cc.compile(f, options=STRICT)]
    inputs = [torch.randn(3, 4) + k for k in range(3)]
    with compiling(graphs=1, breaks=0):
        run_both(*(pair if torch_first else pair[::-1]), f, inputs)
    assert counter.frame_count == 1


@pytest.mark.parametrize("torch_first", [True, False], ids=["torch_first", "cutaway_first"])
def test_module_in_both_orders_with_gradients(torch_first):
    layer = Layer().eval()
    eager = copy.deepcopy(layer)
    counter = CompileCounterWithBackend("aot_eager")
    pair = [torch.compile(layer, backend=counter), cc.compile(layer, options=STRICT)]
    with compiling(graphs=1):
        for compiled in (pair if torch_first else pair[::-1]) * 3:
            x = torch.randn(5, 4)
            for model in (compiled, eager):
                model.zero_grad()
                model(x).square().sum().backward()
            torch.testing.assert_close(compiled(x), eager(x))
            for mine, theirs in zip(layer.parameters(), eager.parameters()):
                torch.testing.assert_close(mine.grad, theirs.grad)
    assert counter.frame_count == 1


@pytest.mark.parametrize("torch_first", [True, False], ids=["torch_first", "cutaway_first"])
def test_both_compile_a_module_again(torch_first):
    """Below the module, both keep their versions with one code object: that of `forward`."""
    layer = Layer().eval()
    eager = copy.deepcopy(layer)
    counter = CompileCounterWithBackend("eager")
    pair = [torch.compile(layer, backend=counter, dynamic=False), cc.compile(layer, options=STRICT)]
    with compiling(recompiles=1):  # the second size makes it symbolic
        for rows in (5, 3, 7, 5):
            for compiled in pair if torch_first else pair[::-1]:
                x = torch.randn(rows, 4)
                torch.testing.assert_close(compiled(x), eager(x))
    assert counter.frame_count == 3


def test_a_refused_recompile_names_the_versions_of_both():
    layer = Layer().eval()
    ours, theirs = cc.compile(layer, options=STRICT), torch.compile(layer, backend="eager")
    with compiling():
        ours(torch.randn(5, 4))
    theirs(torch.randn(5, 4))
    with torch.compiler.set_stance("fail_on_recompile"), compiling():
        with pytest.raises(RuntimeError, match="Detected recompile"):
            theirs(torch.randn(3, 4).double())
        ours(torch.randn(3, 4))


def test_both_split_a_function_that_breaks(capsys):
    counter = CompileCounterWithBackend("eager")
    theirs, ours = torch.compile(printing, backend=counter), cc.compile(printing, options=STRICT)
    with compiling(graphs=2, breaks=1):
        run_both(theirs, ours, printing, [torch.randn(4) + k for k in range(3)])
    assert counter.frame_count == 2
    assert capsys.readouterr().out == "between\n" * 12


def test_a_change_is_seen_by_both():
    def f(x, n):
        return x * len(n)

    counter = CompileCounterWithBackend("eager")
    theirs, ours = torch.compile(f, backend=counter), cc.compile(f, options=STRICT)
    with compiling(graphs=2):
        for name in ("a", "bb", "a"):
            x = torch.randn(3)
            assert torch.equal(theirs(x, name), f(x, name)) and torch.equal(
                ours(x, name), f(x, name)
            )
    assert counter.frame_count == 2


def test_reset_of_torch_leaves_both_compilers_working():
    theirs = torch.compile(wave, backend="eager")
    ours = cc.compile(wave, options=STRICT)
    # before torch 2.13 a function runs under a copy of its code, which torch.compile knows nothing of
    with compiling(graphs=2 if HAS_REGIONS else 1):
        for reset in (torch._dynamo.reset, lambda: None):
            for _ in range(2):
                x, y = torch.randn(3), torch.randn(3)
                torch.testing.assert_close(ours(x, y), wave(x, y))
                torch.testing.assert_close(theirs(x, y), wave(x, y))
            reset()


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace the builtin")
def test_cutaway_compiled_function_inside_a_torch_compiled_one():
    ours = cc.compile(wave, options=STRICT)

    @torch.compile(backend="eager")
    def outer(x):
        return ours(x + 1, x) * 2

    for k in range(3):
        x = torch.randn(3) + k
        torch.testing.assert_close(outer(x), wave(x + 1, x) * 2)


def test_torch_compiled_function_inside_a_cutaway_compiled_one():
    theirs = torch.compile(wave, backend="eager")

    def outer(x):
        return theirs(x + 1, x) * 2

    compiled = cc.compile(outer, options=STRICT)
    with compiling():
        for k in range(3):
            x = torch.randn(3) + k
            torch.testing.assert_close(compiled(x), wave(x + 1, x) * 2)


def test_modules_are_made_inside_as_before_once_torch_compile_was_used():
    """torch.compile puts a function of its own around `nn.Module.__init__`."""

    def f(x):
        return torch.nn.Softplus(beta=2)(x) + 1

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    cc.reset()
    compiled = cc.compile(f, options={"strict": True}, fullgraph=True)
    for _ in range(3):
        x = torch.randn(4)
        torch.testing.assert_close(compiled(x), f(x))
    assert cc.stats().graphs == 1 and cc.stats().breaks == 0
