"""Side effects: seen later in the trace, replayed once, in order; identity and aliasing kept."""

from __future__ import annotations

import types

import torch
from capturing import agree
from torch import nn

ONE = torch.ones(3)
SOURCE = """
import torch
config = {"n": 0, "names": ["a"]}
counter = 0
rows = []
class Box: pass
box = Box()
box.k = 1
def bump(v):
    global counter
    counter += v
    return counter
def outer():
    total = 0
    def f(x):
        nonlocal total
        config["n"] += 1
        bump(2)
        rows.append(x * 2)
        rows.append(len(rows))
        box.k += 1
        box.new = x
        del box.k
        box.k = rows[-1] + counter
        total += box.k
        return x + box.k + total + counter + config["n"]
    f.state = lambda: (list(rows), dict(vars(box)), total, counter, dict(config))
    return f
f = outer()
"""


def module_function():
    space = types.ModuleType("effects_program")
    exec(SOURCE, space.__dict__)
    return space.f


def test_stores_to_outside_objects():
    log = agree(module_function, [(ONE,)] * 4, state=lambda f: f.state())
    assert log.graphs >= 1 and not log.skipped
    kinds = {effect.kind for effect in log.captures[0].effects}
    assert kinds == {"item", "global", "attribute", "cell"}
    assert all(effect.origins for effect in log.captures[0].effects)


def test_input_list_and_dict():
    def f(x, xs, d):
        xs.append(x + 1)
        first = next(iter(d))
        d[first] = d.pop(first) * 2
        d.setdefault("new", torch.zeros(3))
        d["new"] += 1
        xs[0] = 5
        return [v * 2 for v in xs[1:]], list(d)

    def args():
        return (ONE, [ONE * 2, ONE * 3], {"a": ONE * 4, "b": ONE * 5})

    log = agree(lambda: f, [args(), args(), args()])
    assert log.graphs == 1


def test_log_order_over_a_break():
    def make():
        log = []

        def note(v):
            log.append(v)
            return v

        def f(x):
            note(1)
            y = x + note(2)
            print(end="")
            note(3)
            log.insert(0, len(log))
            return y * 2

        f.log = log
        return f

    log = agree(make, [(ONE,)] * 3, state=lambda f: f.log)
    assert "CC103" in log.kinds


def test_in_place_on_inputs_views_and_new_tensors():
    def f(x):
        y = x.view(3)
        y.add_(1)
        x[0] = 5
        x += 1
        z = torch.zeros(2)
        z[1] = 3
        o = torch.empty(3)
        torch.add(x, 1, out=o)
        return x, y, z, o, x.t()

    log = agree(lambda: f, [(ONE,), (ONE * 2,)])
    assert log.graphs == 1


def test_input_returned_is_the_input():
    from capturing import captured

    wrapped, log, _ = captured(lambda x: (x.add_(1), x))
    x = torch.ones(3)
    a, b = wrapped(x)
    assert a is x and b is x and log.graphs == 1 and torch.equal(x, torch.full((3,), 2.0))


def test_overlapping_inputs_that_are_written():
    def f(a, b):
        a.neg_()
        return a * 3 - b

    buffer, same = torch.arange(9.0), torch.arange(5.0)
    calls = [(torch.arange(5.0), torch.ones(5)), (buffer[1:6], buffer[:5]), (same, same)]
    log = agree(lambda: f, calls)
    assert "CC116" in log.kinds


def test_aliased_containers_on_a_later_call():
    def f(a, b):
        a.append(1)
        return len(b), torch.ones(2) * len(b)

    same = []
    agree(lambda: f, [([], []), (same, same), ([], [])])


def test_aliased_objects_on_a_later_call():
    class Box:
        def __init__(self):
            self.k = 1

    def f(x, a, b):
        a.k += 1
        return x * b.k

    same = Box()
    log = agree(lambda: f, [(ONE, Box(), Box()), (ONE, same, same), (ONE, Box(), Box())])
    assert log.graphs >= 2


def test_module_buffers_and_counters():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.steps = 0

        def forward(self, x):
            self.steps += 1
            self.seen = self.seen + x
            self.cache = [x]
            return x * self.steps + self.seen

    def make():
        net = Net()

        def f(x):
            return net(x)

        f.net = net
        return f

    log = agree(make, [(ONE,)] * 6, state=lambda f: (f.net.steps, f.net.seen, f.net.cache))
    assert log.graphs <= 3  # the counter becomes a symbolic int


def test_exceptions_keep_effects_before_them():
    def make():
        log = []

        def f(x, n):
            log.append("before")
            y = x + 1
            if n:
                raise RuntimeError("boom")
            log.append("after")
            return y

        f.log = log
        return f

    agree(make, [(ONE, 0), (ONE, 1), (ONE, 0), (ONE, 1)], state=lambda f: f.log)


def test_slots_and_setattr_of_the_program():
    class Slotted:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    class Logged:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, (value, "set"))

    def make():
        outside = Slotted(3)

        def f(x):
            t = Slotted(2)
            t.b = x
            outside.b = x * 2
            logged = Logged()
            logged.v = t.a
            return t.a * x + t.b + outside.a, outside.b, logged.v

        return f

    log = agree(make, [(ONE,)] * 2)
    assert log.graphs == 1


def test_an_operator_that_raises_inside_a_graph_keeps_effects_and_handlers():
    def make():
        log = []

        class Note:
            def __enter__(self):
                log.append("in")

            def __exit__(self, *exc):
                log.append(exc[0] and exc[0].__name__)

        def f(x, i):
            log.append("start")
            try:
                with Note():
                    y = x.index_select(0, i) * 2
            except (IndexError, RuntimeError):
                log.append("caught")
                y = x - 1
            log.append("end")
            return y

        f.log = log
        return f

    calls = [(ONE, torch.tensor([i])) for i in (0, 9, 1, -7)]
    log = agree(make, calls, state=lambda f: f.log)
    assert log.graphs == 1 and "except Exception:  # an operator raised" in log.text


def test_an_operator_that_raises_without_handlers_keeps_effects_before_it():
    def make():
        log = []

        def f(x, i, *, scale=2, **more):
            log.append(len(more))
            y = x.index_select(0, i) * scale
            log.append("after")
            return y

        f.log = log
        return f

    agree(make, [(ONE, torch.tensor([i])) for i in (0, 9, 1)], state=lambda f: f.log)


def test_a_frame_that_reads_its_own_locals_stays_in_eager():
    def f(x):
        y = x + 1
        return sorted(locals()), y

    log = agree(lambda: f, [(ONE,), (ONE,)])
    assert log.graphs == 0 and "locals()" in log.skipped[0][1]
