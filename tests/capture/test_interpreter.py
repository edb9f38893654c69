"""Programs that are captured whole: Python's statements, containers, calls and classes in one graph."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math

import pytest
import torch
from capturing import agree

ONE = torch.ones(3)
CASES = {}


def case(calls, graphs=1):
    """Register a maker of a program, its calls, and the number of graphs that they take."""

    def register(make):
        CASES[make.__name__] = make, calls, graphs
        return make

    return register


@case(
    [
        (ONE, torch.zeros(3)),
        (-ONE, ONE),
        (torch.ones(4), torch.zeros(4)),
        (torch.ones(5), torch.ones(5) * 2),
    ],
    graphs=2,
)
def sin_plus_cos():
    return lambda x, y: torch.sin(x) + torch.cos(y)


@case([(ONE, 1), (ONE, 2), (ONE, 2)], graphs=2)
def closures_and_arguments():
    def f(x, n):
        total = 0

        def add(v, k=2, *a, **kw):
            nonlocal total
            total += k
            return v + total + sum(a) + kw.get("z", 0)

        y = add(x)
        y = add(y, 3, 4, z=n)
        return y, total

    return f


@case([(ONE,)] * 3)
def signatures():
    def h(a, /, b, *args, c=3, **kw):
        return a + b + sum(args) + c + sum(kw.values())

    def f(x):
        _, *b = [1, 2, 3]
        (_, d), e = (1, 2), 3
        kw = {"c": 5, "z": 2}
        return h(x, 1, *b, **kw), h(x, d), [*b, e], {**kw, "q": 1}, (lambda *a: a)(1, 2)

    return f


@case([(ONE,)] * 3)
def containers():
    def f(x):
        xs = [x, x + 1]
        xs.append(x * 2)
        xs.extend([1, 2])
        xs.insert(0, xs.pop())
        d = {"a": x, "b": 3}
        d.update(c=xs, q=(1, 2))
        d["b"] += 1
        d.setdefault("n", []).append(d.pop("q"))
        s = {1, 2} | {3}
        s.add(4)
        order = sorted([3, 1, 2], key=lambda v: -v)
        return (
            xs,
            d,
            s,
            {k: 1 for k in d},
            [i for i in order if i > 1],
            d.get("zz"),
            list(d.items()),
        )

    return f


@case([(ONE,)] * 3)
def identity_of_containers():
    def f(x):
        a = [x]
        b = a
        b.append(a is b)
        shared = {"a": a, "t": (a, a)}
        return shared["t"][0] is shared["a"], shared, x * 2

    return f


@case([(ONE, 3), (ONE, 2)], graphs=2)
def loops():
    def f(x, n):
        out = []
        for i in range(n):
            if i == 7:
                break
            x = x + i
            out.append(x)
        else:
            x = x + 1
        for i, (a, b) in enumerate(zip(out, reversed(out))):
            x = x + a * b * i
        while n > 0:
            n -= 1
            x = x * 2
        return x, out

    return f


@case([(ONE, 3), (ONE, -1), (ONE, 0)], graphs=3)
def exceptions():
    class Negative(Exception):
        def __init__(self, n):
            super().__init__(n)
            self.n = n

    def check(n):
        if n < 0:
            raise Negative(n)
        return 10 // n

    def f(x, n):
        log = []
        try:
            y = x * check(n)
        except Negative as e:
            y = x + e.n
        except ZeroDivisionError as e:
            y = x - 1
            log.append(str(e))
        else:
            log.append("else")
        finally:
            log.append("finally")
        return y, log

    return f


@case([(ONE,)] * 2)
def nested_handlers():
    def f(x):
        log = []
        for i in range(3):
            try:
                try:
                    if i == 1:
                        raise KeyError("k")
                    if i == 2:
                        continue
                    log.append(i)
                except KeyError as e:
                    log.append(repr(e))
                    raise ValueError("v") from e
                finally:
                    log.append("f")
            except ValueError as e:
                log.append(str(e))
                x = x + 1
        return x, log

    return f


@case([(ONE,)] * 2)
def context_managers():
    class Manager:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, *exc):
            self.log.append(exc[0] is ValueError)
            return True

    @contextlib.contextmanager
    def scope(log):
        log.append("scope in")
        try:
            yield 5
        finally:
            log.append("scope out")

    def f(x):
        log = []
        with Manager(log), scope(log) as k:
            x = x * k
            raise ValueError
        return x, log

    return f


@case([(ONE,)] * 2)
def generators():
    def numbers(x):
        for i in range(3):
            yield x + i
        return 7

    def outer(x):
        r = yield from numbers(x)
        yield x * r

    def f(x):
        first = next(numbers(x))
        return (
            sum(outer(x)),
            list(numbers(x)),
            first,
            sum(v for v in numbers(x)),
            max(i for i in [1, 3]),
        )

    return f


@case([(ONE,)] * 2)
def classes():
    class Base:
        def __init__(self):
            self.raw = 0

        @property
        def c(self):
            return self.raw - 273

        @c.setter
        def c(self, v):
            self.raw = v + 273

        def __add__(self, other):
            return self.raw + other

        def __len__(self):
            return 4

        def __str__(self):
            return "a base"

    class Special(Base):
        k = 5

        @property
        def c(self):
            return super().c + 2

        @c.setter
        def c(self, v):
            Base.c.fset(self, v * 3)

        @staticmethod
        def st(x):
            return x + 1

        @classmethod
        def cl(cls, x):
            return x + cls.k

    def f(x):
        t = Special()
        t.c = 7
        t.k += 1
        return (
            x + t.c,
            t.raw,
            Special.st(x),
            t.cl(x),
            t + 1,
            len(t),
            f"{t}",
            isinstance(t, Base),
            t.k,
        )

    return f


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Point:
    x: object
    n: int = 3

    def scaled(self):
        return self.x * self.n


class Colour(enum.Enum):
    RED = 1


@case([(ONE,)] * 2)
def data_classes():
    cfg = Point(None, 4)

    def f(x):
        p = Pair(x, 2)
        return (
            p,
            p.a + p.b,
            Point(x).scaled(),
            Colour.RED.value,
            cfg.n,
            p._replace(b=3),
            getattr(cfg, "zz", 5),
            hasattr(cfg, "n"),
            Colour.RED is Colour["RED"],
        )

    return f


@case([(ONE,)] * 2)
def standard_library():
    def f(x):
        d = collections.defaultdict(list)
        d["a"].append(x)
        return (
            functools.reduce(lambda a, b: a + b, [x, 1, 2]), list(itertools.chain([1], [2])), d, math.sqrt(16), math.prod([2, 3]),
            list(itertools.islice(itertools.count(3), 2)), functools.partial(torch.add, x)(1), list(map(lambda a, b: a * b, [1, 2], [x, x])),
            min([3, 1], key=lambda v: -v), divmod(7, 2), round(2.567, 1), any([0, 1]), abs(-3), type(x) is torch.Tensor, list(zip("ab", [1, 2])),
        )  # fmt: skip

    return f


@case([(ONE,)] * 2)
def strings():
    def f(x):
        s = "abc"
        return (
            s.upper(),
            "%d %s" % (3, "a"),  # noqa: UP031
            ",".join(str(i) for i in range(3)),
            f"{x.shape} {x.dtype} {3.14159:.2f} {s!r:>6}",
            "b" in s,
            x + 1,
        )

    return f


@case([(ONE, {"a": ONE})] * 2)
def pattern_matching():
    def f(x, d):
        match d:
            case {"a": y}:
                x = x + y
        match [1, x]:
            case [2, z]:
                x = x - z
            case [1, z]:
                x = x * z
        return x

    return f


@case([(ONE,)] * 2)
def inner_functions_outlive():
    def f(x):
        n = 1

        def inc():
            nonlocal n
            n += 1
            return x * n

        return inc() + inc()

    return f


@pytest.mark.parametrize("name", CASES)
def test_program_agrees_with_python(name):
    make, calls, graphs = CASES[name]
    log = agree(make, calls)
    assert log.graphs == graphs
    assert not log.breaks and not log.skipped
