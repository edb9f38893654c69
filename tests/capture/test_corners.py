"""Programs with odd corners, breaks among them: each call agrees with plain Python in every respect."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from capturing import agree

one = torch.ones(3)
PROGRAMS = {}


def program(calls, **options):
    """Register a maker of a program and its calls."""

    def register(make):
        PROGRAMS[make.__name__] = make, calls, options
        return make

    return register


@program([(one,)] * 2)
def gen_send():
    def acc():
        total = 0
        while True:
            v = yield total
            if v is None:
                return
            total = total + v

    def f(x):
        g = acc()
        next(g)
        a = g.send(x)
        b = g.send(2)
        g.close()
        return a, b

    return f


@program([(one,)] * 2)
def gen_throw():
    def g(log):
        try:
            yield 1
        except ValueError as e:
            log.append(str(e))
            yield 2
        finally:
            log.append("end")

    def f(x):
        log = []
        it = g(log)
        a = next(it)
        b = it.throw(ValueError("q"))
        try:
            next(it)
        except StopIteration:
            log.append("stop")
        return x * a * b, log

    return f


@program([(one,)] * 2)
def gen_returned():
    def g(x):
        yield x
        yield x + 1

    def f(x):
        y = x * 2
        return g(y), y

    def h(x):
        a, b = f(x)
        return list(a), b

    return h


@program([(one,)] * 2)
def gen_break_inside():
    def g(x):
        for i in range(3):
            print(end="")
            yield x + i

    def f(x):
        y = x * 2
        return [v * 2 for v in g(y)]

    return f


@program([(one, [1, 2]), (one, [1, 2]), (one, [4, 5, 6])])
def display_break_inside():
    """A display that is half built at a break goes on in the resume function."""

    def g(x):
        print(end="")
        return x

    def f(x, items):
        listed = [*items, print(end=""), x + 1, *items]
        collected = {*items, print(end=""), 1, *items}
        mapped = {**{"a": x}, "b": g(x), **{"c": x + 2}}
        named = str(dict(**{"a": 1}, b=print(end=""), **{"c": 1}))
        return listed, collected, mapped, named, x + len(named)

    return f


@program([(one, [1, 2]), (one, [1, 2]), (one, [1, 2, 3])])
def comprehension_break_inside():
    """CPython 3.11 gives a comprehension a frame of its own, 3.12 runs it in the function's."""

    def f(x, items):
        listed = [x + i for i in items if print(end="") is None]
        collected = {i for i in items if print(end="") is None}
        mapped = {i: x + i for i in items if print(end="") is None}
        return listed, collected, mapped, x + 1

    return f


@program([(one, [3, 1, 2]), (one, [3, 1, 2]), (one, [1, 2])])
def sort_input():
    def f(x, items):
        items.sort()
        items.reverse()
        items += [9]
        del items[0]
        items[0:1] = [7, 8]
        return x * items[0], sorted(items), items.index(8), items.count(7)

    return f


@program([(one, {1, 2}), (one, {1, 3})])
def set_input():
    def f(x, s):
        s.add(5)
        s.discard(1)
        return x * len(s), 5 in s, s | {7}

    return f


@program([(one,)] * 2)
def global_list_aug():
    ns = {"torch": torch}
    exec(
        "acc=[]\nd={}\ndef f(x):\n    global acc\n    acc += [1]\n    acc = acc + [len(acc)]\n    d.setdefault('k', []).append(x)\n    d['k'][0] = 3\n    return x+len(acc), acc, d\n",
        ns,
    )
    return ns["f"]


@program([(one,)] * 3)
def nonlocal_break():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        y = x * n
        print(end="")
        n += 1
        return y * n

    return f


@program([(one, 2), (one, 3), (one, 4), (one, 5)])
def symint_things():
    def f(x, n):
        a = [0] * n
        s = "a" * n
        t = (1,) * n
        b = x.repeat(n)
        c = torch.arange(n)
        m = max(n, 3)
        q = n**2
        w = n / 2
        z = -n
        k = abs(z)
        return (
            a,
            s,
            t,
            b,
            c,
            m,
            q,
            w,
            z,
            k,
            n in (1, 2, 3),
            {n: 1},
            f"{n:03d}",
            n == 3,
            range(n),
            math.sqrt(n),
            int(n),
            float(n),
            bool(n),
            n if n > 2 else 0,
            divmod(n, 2),
            str(n),
            isinstance(n, int),
            type(n) is int,
            min(n, 2),
            n & 1,
            n << 1,
            x[:n],
            [i for i in range(n)],
        )

    return f


@program([(torch.randn(n, 4),) for n in (3, 4, 5, 6)])
def symsize_things():
    def f(x):
        B, C = x.shape
        y = x.view(B, 2, 2).transpose(1, 2).reshape(B, -1)
        z = torch.zeros(B, B)
        p = x[: B - 1]
        q = torch.cat([x, x])
        r = q.shape[0]
        m = x.mean(0, keepdim=True).expand(B, C)
        mask = torch.ones(B, B, dtype=torch.bool).tril()
        if B % 2 == 0:
            z = z + 1
        return (
            y,
            z,
            p,
            q,
            r,
            m,
            mask,
            x.numel(),
            B * C,
            x.new_full((B,), 1.0),
            torch.arange(B),
            x.size(),
            x.size(-1),
            list(x.shape),
            x.shape[0] // 2,
            math.ceil(B / 2),
            len(x),
            x.unbind(0)[0],
            [r.sum() for r in x],
        )

    return f


@program([(one,)] * 2)
def exceptions_misc():
    class E(ValueError):
        def __init__(s, a, b=2):
            s.a = a
            s.b = b
            super().__init__(a, b)

        def __str__(s):
            return f"E<{s.a}>"

    def f(x):
        out = []
        for exc in (KeyError("k"), E(1), IndexError):
            try:
                raise exc
            except (KeyError, IndexError) as e:
                out.append(type(e).__name__)
            except E as e:
                out.append((str(e), e.args, e.b, f"{e}"))
        try:
            try:
                [][1]
            except IndexError as e:
                raise RuntimeError("x") from e
        except RuntimeError as e:
            out.append(type(e.__cause__).__name__)
        try:
            {}["z"]
        except KeyError as e:
            out.append(e.args)
        try:
            x.nope
        except AttributeError:
            out.append("attr")
        try:
            int("q")
        except ValueError as e:
            out.append(str(e))
        try:
            _a, _b = 1, 2, 3
        except ValueError as e:
            out.append(str(e))
        try:
            None + 1
        except TypeError as e:
            out.append(str(e))
        try:
            (lambda a: a)()
        except TypeError:
            out.append("te")
        return x + 1, out

    return f


@program([(one,)] * 2)
def exc_value_kept():
    def f(x):
        err = None
        try:
            raise ValueError("v", x)
        except ValueError as e:
            err = e
        print(end="")
        return x + 1, err.args[1]

    return f


@program([(one,)] * 2)
def dataclass_variants():
    @dataclasses.dataclass(frozen=True)
    class In:
        k: int = 3

    @dataclasses.dataclass
    class Cfg:
        inner: In = dataclasses.field(default_factory=In)
        items: list = dataclasses.field(default_factory=list)

    def f(x):
        c = Cfg()
        c.items.append(x)
        d = dataclasses.replace(c.inner, k=5)
        try:
            c.inner.k = 4
        except dataclasses.FrozenInstanceError:
            y = x + 1
        return y * c.inner.k, d.k, c.items, c.inner == In(3), c == Cfg(In(3), [])

    return f


@program([(one,)] * 2)
def ret_instance():
    class Out:
        def __init__(s, a):
            s.a = a
            s.me = None

    def f(x):
        o = Out(x * 2)
        o.l = [o.a]
        return o

    def h(x):
        o = f(x)
        return o.a, o.l, o.l[0] is o.a, type(o).__name__

    return h


@program([(torch.ones(3),)] * 2)
def out_alias():
    def f(x):
        y = x + 1
        z = y.view(3)
        z.mul_(2)
        w = y[1:]
        return y, z, w, x.detach(), x

    return f


@program([(torch.ones(2, 2),)] * 3)
def inplace_break():
    def f(x):
        x.mul_(2)
        print(end="")
        x.add_(1)
        y = x.t_() if False else x.t()
        return y

    return f


@program([(one,)] * 2)
def many_branches():
    def f(x):
        for i in range(4):
            if x.sum() > i:
                x = x + 1
            else:
                x = x - 1
        return x

    return f


@program([(one, None), (one, one), (one, 3)])
def isinstance_args():
    def f(x, y):
        if y is None:
            y = 1
        elif isinstance(y, torch.Tensor):
            y = y * 2
        elif isinstance(y, (int, float)):
            y = y + 0.5
        return x * y, type(y).__name__

    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees(name):
    make, calls, options = PROGRAMS[name]
    log = agree(make, calls, **options)
    assert log.captures and not log.skipped and log.graph_calls >= 1
