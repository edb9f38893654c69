"""Other backends than ours, and several requests for one function side by side."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, agree, compiling
from programs import Layer, wave
from torch import fx

import compiler_core as cc
from compiler_core.errors import BackendFailed, OptionError


def test_eager_backend_runs_the_captured_graph():
    x = torch.randn(3, requires_grad=True)
    compiled = cc.compile(wave, backend="eager", options=STRICT)
    with compiling(graphs=1, ops_generated=0) as delta:
        for k in range(3):
            y = torch.randn(3) + k
            assert torch.equal(compiled(x, y), wave(x, y))
    assert delta().ops_eager == 4


def test_callable_backend_gets_the_graph_and_example_inputs():
    seen = []

    def backend(graph, examples):
        seen.append((graph, examples))
        return graph.forward

    compiled = cc.compile(wave, backend=backend, options=STRICT)
    x, y = torch.randn(3, 4), torch.randn(4)
    with compiling(graphs=2, recompiles=1):
        for a, b in ((x, y), (x * 2, y), (x, y), (x.double(), y)):
            assert torch.equal(compiled(a, b), wave(a, b))
    (graph, examples), (_, doubles) = seen
    assert isinstance(graph, fx.GraphModule)
    assert [tuple(e.shape) for e in examples] == [(3, 4), (4,)]
    assert [e.dtype for e in doubles] == [torch.float64, torch.float32]
    assert [n.target for n in graph.graph.nodes if n.target is torch.sin] == [torch.sin]


def test_what_the_backend_returns_is_what_runs():
    def backend(graph, examples):
        return lambda *inputs: tuple(out * 10 for out in graph(*inputs))

    compiled = cc.compile(wave, backend=backend, options=STRICT)
    x = torch.randn(3)
    with compiling(graphs=1):
        for k in range(3):
            torch.testing.assert_close(compiled(x, x + k), wave(x, x + k) * 10)


@pytest.mark.parametrize("strict", [True, False])
def test_an_error_of_the_backend_is_never_hidden(strict):
    def backend(graph, examples):
        raise RuntimeError("no such device")

    def no_backend(graph, examples):
        return 3

    x = torch.randn(3)
    for failing, message in [
        (backend, "backend: RuntimeError: no such device"),
        (no_backend, "no_backend returned int"),
    ]:
        compiled = cc.compile(wave, backend=failing, options={"strict": strict})
        for _ in range(2):
            with pytest.raises(BackendFailed, match=message):
                compiled(x, x)


def test_each_request_has_versions_of_its_own():
    calls = []

    def backend(graph, examples):
        calls.append(graph)
        return graph.forward

    ours = cc.compile(wave, options=STRICT)
    eager = cc.compile(wave, options=STRICT, backend="eager")
    other = cc.compile(wave, options=STRICT, backend=backend)
    again = cc.compile(wave, options=STRICT)  # equal to the first: shares its versions
    x, y = torch.randn(3), torch.randn(3)
    with compiling(graphs=3, recompiles=0) as delta:
        for compiled in (ours, eager, other, again) * 3:
            torch.testing.assert_close(compiled(x, y), wave(x, y))
    assert len(calls) == 1 and delta().ops_eager == 4 and delta().ops_generated > 0


def test_modules_of_two_requests_share_the_parameters():
    layer = Layer().eval()
    ours = cc.compile(layer, options=STRICT)
    eager = cc.compile(ours, options=STRICT, backend="eager")
    with compiling(graphs=2):
        for k in range(3):
            layer.shift.fill_(k)
            x = torch.randn(5, 4)
            torch.testing.assert_close(ours(x), layer(x))
            torch.testing.assert_close(eager(x), layer(x))
    assert ours.linear.weight is eager.linear.weight


def test_options_given_later_do_not_change_earlier_requests():
    given = {"strict": True, "replace": {}}
    compiled = cc.compile(wave, options=given)
    given["replace"]["kernels/none"] = "/nowhere"
    given["strict"] = "neither"
    with compiling(graphs=1):
        for k in range(3):
            x, y = torch.randn(3), torch.randn(3) + k
            torch.testing.assert_close(compiled(x, y), wave(x, y))
    with pytest.raises(OptionError):
        cc.compile(wave, options=given)


def test_also_a_gpu_target_is_built_and_not_called():
    agree(
        wave,
        *[(torch.randn(4), torch.randn(4)) for _ in range(3)],
        options={"also": ("cuda:90",)},
        graphs=1,
    )
