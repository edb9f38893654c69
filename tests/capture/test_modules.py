"""torch.nn modules: followed through their forward, with their containers, hooks and parameters."""

from __future__ import annotations

import pytest
import torch
from capturing import agree, captured, same
from torch import nn

X = torch.linspace(-1, 1, 8).reshape(2, 4)


def seeded(make):
    def maker():
        torch.manual_seed(0)
        return make()

    return maker


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.LayerNorm(4)})
        self.tail = nn.Sequential(nn.Linear(4, 4), nn.GELU())
        self.scales = nn.ParameterList([torch.ones(4), torch.ones(4)])
        self.register_buffer("offset", torch.ones(4))
        self.options = {"scale": 2.0}
        self.act = torch.tanh

    def forward(self, x, *, flag=False, **extra):
        for layer in self.layers:
            x = layer(x)
        for _, module in self.table.items():
            x = module(x)
        if flag and self.training:
            x = self.act(x)
        x = self.tail(x) * self.scales[0] + self.layers[-1].weight.sum() + self.offset
        return x * self.options["scale"] + extra.get("b", 0)


class Delegating(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x):
        return x @ self.weight.t() + self.bias


MODULES = {
    "everything": Everything,
    "delegating": Delegating,
    "transformer": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0),
    "attention": lambda: Apply(
        nn.MultiheadAttention(4, 2, batch_first=True), lambda m, x: m(x[None], x[None], x[None])[0]
    ),
    "lstm": lambda: Apply(nn.LSTM(4, 3, batch_first=True), lambda m, x: m(x[None])[0]),
    "embedding": lambda: Apply(nn.Embedding(5, 4), lambda m, x: m((x > 0).long())),
    "convolution": lambda: Apply(
        nn.Sequential(
            nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()
        ),
        lambda m, x: m(x[:, None]),
    ),
}


class Apply(nn.Module):
    def __init__(self, inner, how):
        super().__init__()
        self.inner, self.how = inner, how

    def forward(self, x):
        return self.how(self.inner, x)


@pytest.mark.parametrize("name", MODULES)
def test_module_is_one_graph(name):
    def make():
        module = MODULES[name]()

        def f(x):
            return module(x)

        f.module = module
        return f

    log = agree(
        seeded(make), [(X,), (X * 2,), (X + 1,)], state=lambda f: dict(f.module.named_buffers())
    )
    assert log.graphs == 1 and not log.breaks


def test_module_queries():
    def make():
        m = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

        def f(x):
            names = [n for n, _ in m.named_parameters()]
            total = sum(p.sum() for p in m.parameters())
            m.eval()
            y = m(x)
            m.train()
            return names, total, len(m), len(list(m.children())), m.training, y, type(m).__name__

        return f

    log = agree(seeded(make), [(X,)] * 2)
    assert log.graphs == 1 and not log.breaks


def test_shared_parameters_are_one_input():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4, bias=False)
            self.b = nn.Linear(4, 4, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    def make():
        m = Tied()
        return lambda x: m(x)

    log = agree(seeded(make), [(X,)] * 2)
    assert len(log.captures[0].inputs) == 2


def test_a_loop_of_layers_that_breaks_does_not_compile_without_bound():
    def make():
        layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(12)])

        def f(x):
            for layer in layers:
                x = layer(x)
                print(end="")
                x = x + 1
            return x

        return f

    log = agree(seeded(make), [(X,)] * 2)
    assert log.graphs <= 8


def test_gradients_flow_through_breaks():
    torch.manual_seed(0)
    m = nn.Linear(4, 4)

    def f(x):
        y = m(x).relu()
        print(end="")
        return (y * 2).sum()

    f(X).backward()
    expected = m.weight.grad.clone()
    m.weight.grad = None
    wrapped, log, _ = captured(f)
    wrapped(X).backward()
    same(expected, m.weight.grad)
    assert log.graphs == 2


def test_dispatch_to_a_forward_replaced_on_the_instance():
    m = nn.Linear(4, 4)
    wrapped, _, _ = captured(lambda x: m(x))
    same(m(X), wrapped(X))
    m.forward = lambda x: x - 1
    same(X - 1, wrapped(X))
    del m.forward
    same(m(X), wrapped(X))
