"""`torch.compile(…, backend="cutaway")`: torch's capture, our stages; and torch's backends under our capture."""

from __future__ import annotations

import importlib.metadata

import pytest
import torch
from torch import fx, nn

import compiler_core as cc
from compiler_core.errors import InternalError, OptionError
from compiler_core.torch_backend import cutaway

STRICT = {"strict": True}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm, self.outer = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale):
        self.calls.add_(1)
        with torch.no_grad():
            shift = x.mean()
        return self.outer(torch.nn.functional.gelu(self.norm(self.inner(x)))) * scale + shift


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    cc.reset()
    yield
    torch._dynamo.reset()


def compiled(model, **arguments):
    return torch.compile(model, backend=cutaway, options=STRICT, **arguments)


def test_the_distribution_registers_it():
    (entry,) = importlib.metadata.entry_points(group="torch_dynamo_backends", name="cutaway")
    assert entry.load() is cutaway
    f = torch.compile(lambda x: x.sin() + 1, backend="cutaway", options=STRICT)
    x = torch.randn(5)
    assert torch.allclose(f(x), x.sin() + 1)
    assert cc.stats().graphs == 1 and cc.stats().fallbacks == 0


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_a_training_step_for_three_batches(dynamic):
    torch.manual_seed(0)
    eager = Net()
    other = Net()
    other.load_state_dict(eager.state_dict())
    step = compiled(other, dynamic=dynamic)
    for batch, scale in ((4, 2), (7, 3), (4, 3), (9, 2)):
        x = torch.randn(batch, 6, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        expected, found = eager(x, scale), step(y, scale)
        torch.testing.assert_close(found, expected)
        expected.square().sum().backward()
        found.square().sum().backward()
        torch.testing.assert_close(y.grad, x.grad)
    for p, q in zip(other.parameters(), eager.parameters()):
        torch.testing.assert_close(p.grad, q.grad)
    assert other.calls == eager.calls == 4
    assert cc.stats().graphs >= 1 and cc.stats().fallbacks == 0


def test_sizes_and_integers_are_symbols_where_torch_makes_them_so():
    def f(x, n):
        return (x * n).softmax(-1).sum(0) / x.shape[0]

    g = compiled(f, dynamic=True)
    for rows, n in ((3, 2), (4, 5), (9, 7)):
        x = torch.randn(rows, 6)
        torch.testing.assert_close(g(x, n), f(x, n))
    assert cc.stats().graphs == 1 and cc.stats().fallbacks == 0


def test_floats_that_change_are_arguments():
    def f(x, scale):
        return torch.nn.functional.softplus(x * scale) + scale

    g = compiled(f)
    for scale in (0.5, 1.5, -2.0, float("inf")):
        x = torch.rand(5, dtype=torch.float32) + 0.1
        torch.testing.assert_close(g(x, scale), f(x, scale))
    assert cc.stats().graphs == 2 and cc.stats().fallbacks == 0


def test_written_inputs_and_a_graph_break():
    def f(x):
        x.mul_(2)
        y = x + 1
        torch._dynamo.graph_break()
        return y.relu_() - x

    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4, 4)
        y = x.clone()
        torch.testing.assert_close(compiled(f)(y), f(x))
        torch.testing.assert_close(y, x)
    assert cc.stats().graphs == 2 and cc.stats().fallbacks == 0


def test_nodes_know_the_lines_of_the_user():
    with cc.record() as recorder:
        compiled(lambda x: torch.sin(x) * torch.cos(x))(torch.randn(8))
    (version,) = (v for frame in recorder.recording.frames for v in frame.versions)
    labels = [item.label for item in version.stage("source").items]
    for call in ("torch.sin(x)", "torch.cos(x)"):  # torch marks columns from 2.13 on, lines before
        assert any(label.startswith(call) or call in label for label in labels)
    names = [stage.name for stage in version.stages]
    assert {"capture", "joint", "lower", "fuse", "kernels"} <= set(names)
    graph = version.stage("capture")
    assert all(item.origins for item in graph.items if item.data["op"] == "call_function")


def test_a_graph_that_holds_modules_is_refused_with_a_reason():
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    x = torch.randn(2, 3)
    with pytest.raises(InternalError, match="CC190"):
        cutaway(module, [x], options=STRICT)
    with cc.record() as recorder:
        call = cutaway(module, [x], options={"strict": False})
        torch.testing.assert_close(call(x), module(x))
    (version,) = (v for frame in recorder.recording.frames for v in frame.versions)
    assert [d.kind for d in version.decisions] == ["fallback"]
    assert "no fake value" in version.decisions[0].reason


def test_bad_options_name_the_valid_ones():
    with pytest.raises(Exception, match="did you mean 'strict'") as caught:
        torch.compile(lambda x: x + 1, backend=cutaway, options={"strikt": True})(torch.ones(2))
    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert any(isinstance(error, OptionError) for error in chain)


@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
def test_our_capture_takes_backends_of_torch(name):
    from torch._dynamo.backends.registry import lookup_backend

    torch.manual_seed(0)
    net = Net()
    f = cc.compile(net, backend=lookup_backend(name), options=STRICT)
    for batch in (3, 5, 3):
        x = torch.randn(batch, 6, requires_grad=True)
        expected = net(x, 2)
        found = f(x, 2)
        torch.testing.assert_close(found, expected)
        got, want = (torch.autograd.grad(out.sum(), x)[0] for out in (found, expected))
        torch.testing.assert_close(got, want)
    assert cc.stats().graphs >= 1 and cc.stats().fallbacks == 0


FLOATS = {
    "scale": (lambda x, a: x * a + x.shape[0], 2),
    "of integers": (lambda x, a: (x * 10).int() * a, 2),
    "arithmetic": (lambda x, a: x * (a * 2 + 1) / (a - 7), 2),
    "alpha": (lambda x, a: torch.add(x, x, alpha=a), 2),
    "power": (lambda x, a: x.abs() ** a, 2),
    "returned": (lambda x, a: (x * a, a * 2), 2),
    "cut to an integer": (lambda x, a: x * int(a * 10), 4),
    "rounded": (lambda x, a: x * round(a, 1), 4),
    "decides a size": (lambda x, a: torch.arange(0, 10 * a, 0.5).sum() + x, 4),
    "checked": (lambda x, a: x.clamp(-a, a), 4),
}


@pytest.mark.parametrize("name", FLOATS)
def test_a_float_that_changes_becomes_an_argument_or_is_guarded(name):
    f, graphs = FLOATS[name]
    call = compiled(f)
    for a in (0.1, 0.2, 0.3, 0.7):
        x = torch.randn(4, requires_grad=True)
        twin = x.detach().clone().requires_grad_()
        ours, eagers = call(twin, a), f(x, a)
        torch.testing.assert_close(ours, eagers)
        first, eager_first = (r[0] if isinstance(r, tuple) else r for r in (ours, eagers))
        if eager_first.requires_grad:
            first.sum().backward(), eager_first.sum().backward()
            torch.testing.assert_close(twin.grad, x.grad)
    assert cc.stats().graphs == graphs and cc.stats().fallbacks == 0


def test_a_float_of_zero_or_infinity_is_compiled_in():
    def f(x, a):
        return torch.where(x > a, x * a, a)

    call = compiled(f)
    for a in (1.0, 0.0, 2.0, float("inf"), -0.0, 3.0):
        x = torch.randn(5)
        torch.testing.assert_close(call(x, a), f(x, a), equal_nan=True)
    assert cc.stats().fallbacks == 0
