"""Right on the first call, right on the next: what changes between calls is seen."""

from __future__ import annotations

import functools
import types

import torch
from capturing import agree, captured, outcome, same
from torch import nn

ONE = torch.ones(3)


def check(make, change, calls=4, args=(ONE,), graphs=None):
    """Call a program, changing something before each call; compare with plain Python each time."""
    plain, under = make(), make()
    wrapped, log, _ = captured(under)
    for i in range(calls):
        change(plain, i)
        expected = outcome(plain, args)
        change(under, i)
        same(expected, outcome(wrapped, args), f"call {i}")
    assert log.graph_calls > 0
    if graphs is not None:
        assert log.graphs == graphs
    return log


def test_global_constant_and_function():
    def make():
        space = types.ModuleType("stale_globals")
        exec(
            "import torch\nk = 2\ndef g(x): return x * k\ndef f(x): return g(x) + k\n",
            space.__dict__,
        )
        space.f.space = space
        return space.f

    def change(f, i):
        f.space.k = [2, 3, 3, 2][i]
        if i == 3:
            exec("def g(x): return x - k", f.space.__dict__)

    check(make, change, graphs=3)


def test_defaults_closures_and_partials():
    def family(k, op):
        def inner(v, k=k):
            return op(v, v + 1) + k

        return inner

    sub, mul = torch.Tensor.__sub__, torch.Tensor.__mul__
    calls = [
        family(1, sub),
        family(2, sub),
        family(2, mul),
        functools.partial(family(2, mul), k=7),
        family(1, sub),
    ]
    log = agree(lambda: lambda g, x: g(x), [(g, ONE) for g in calls])
    assert log.graphs >= 4


def test_class_attribute_and_instance_shadow():
    class Scale:
        k = 2

        def times(self, x):
            return x * self.k

    def make():
        box = type("Scaled", (Scale,), {})()

        def f(x):
            return box.times(x) + box.k

        f.box = box
        return f

    def change(f, i):
        if i == 1:
            type(f.box).k = 3
        if i == 2:
            f.box.k = 4
        if i == 3:
            f.box.times = lambda x: x - 1

    check(make, change, graphs=3)  # the second value of k makes it a symbolic int


def test_method_replaced_on_the_class():
    def make():
        class A:
            def m(self, x):
                return x + 1

            @property
            def p(self):
                return 5

        a = A()

        def f(x):
            return a.m(x) * a.p

        f.cls = A
        return f

    def change(f, i):
        if i == 1:
            f.cls.m = lambda self, x: x + 2
        if i == 2:
            f.cls.p = property(lambda self: 6)

    check(make, change)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        with torch.no_grad():
            self.lin.weight.fill_(0.5)
            self.lin.bias.zero_()

    def forward(self, x):
        return self.lin(x) + 1


def test_hooks_replacement_and_shadowing():
    def make():
        net = Net()

        def f(x):
            return net(x)

        f.net = net
        return f

    def change(f, i):
        if i == 1:
            f.handle = f.net.lin.register_forward_hook(lambda mod, args, out: out * 2)
        if i == 2:
            f.handle.remove()
            f.handle = f.net.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
        if i == 3:
            f.handle.remove()
            f.net.lin = nn.Identity()
        if i == 4:
            object.__setattr__(f.net, "lin", torch.neg)

    check(make, change, calls=6, graphs=5)


def test_parameter_data_dtype_and_requires_grad():
    def make():
        net = Net()

        def f(x):
            return net.lin.weight.sum() + x.sum()

        f.net = net
        return f

    def change(f, i):
        if i == 1:
            f.net.lin.weight.data = torch.full((3, 3), 2.0)
        if i == 2:
            f.net.lin.weight.requires_grad_(False)
        if i == 3:
            f.net.lin.weight = nn.Parameter(torch.ones(2, 2))

    check(make, change)


def test_training_flag():
    def make():
        net = nn.BatchNorm1d(3, momentum=None)

        def f(x):
            return net(x)

        f.net = net
        return f

    def change(f, i):
        f.net.train(i % 2 == 0)

    x = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0]])
    check(make, change, calls=5, args=(x,))


def test_grad_mode_of_the_caller():
    x = torch.ones(3, requires_grad=True)
    plain = lambda x: (x * 2, torch.is_grad_enabled())  # noqa: E731
    wrapped, log, _ = captured(plain)
    for enabled in (True, False, True, False):
        with torch.set_grad_enabled(enabled):
            same(plain(x), wrapped(x))
    assert log.graphs == 2


def test_default_dtype():
    plain = lambda x: torch.zeros(3) + x.sum()  # noqa: E731
    wrapped, _, _ = captured(plain)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            same(plain(ONE), wrapped(ONE))
    finally:
        torch.set_default_dtype(torch.float32)


def test_int_float_and_bool_are_three_values():
    def f(x, n):
        return x * n, type(n).__name__, n == 1

    agree(
        lambda: f, [(ONE, 1), (ONE, 1.0), (ONE, True), (ONE, 0.0), (ONE, -0.0), (ONE, float("nan"))]
    )


def test_dtype_stride_and_shape_of_inputs():
    def f(x):
        return x.stride(), x.dtype, x.t() + 1

    base = torch.arange(6.0).reshape(2, 3)
    agree(
        lambda: f,
        [(base,), (base.t().contiguous().t(),), (base.double(),), (torch.ones(3, 2),), (base,)],
    )


def test_container_contents():
    def f(x, items, d):
        return [x * k for k in items], [v for v in d.values()], len(d)

    agree(
        lambda: f,
        [
            (ONE, [1, 2], {"a": 1}),
            (ONE, [1, 3], {"a": 1}),
            (ONE, [1], {"b": 1, "a": 2}),
            (ONE, [1], {"a": 2, "b": 1}),
        ],
    )


def test_untouched_arguments_make_no_guard():
    def f(x, unused):
        return x * 2, unused

    log = agree(lambda: f, [(ONE, 1), (ONE, "a"), (ONE, [ONE]), (ONE, None)])
    assert log.graphs == 1
    assert not any("unused" in row.source for row in log.captures[0].guards)


def test_same_tensor_twice_then_two_tensors():
    def f(a, b):
        return a * 2 + b, a is b

    x = torch.ones(3)
    log = agree(lambda: f, [(x, x), (ONE.clone(), ONE * 2), (x, x)])
    assert log.graphs == 2


def test_builtin_shadowed_by_a_global_later():
    def make():
        space = types.ModuleType("shadowing")
        exec("def f(x): return x * len([1, 2])", space.__dict__)
        space.f.space = space
        return space.f

    def change(f, i):
        if i == 2:
            f.space.len = lambda items: 7

    check(make, change, graphs=2)
