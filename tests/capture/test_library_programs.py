"""Programs that use libraries, subclasses and loops with breaks: each call agrees with plain Python in every respect."""

from __future__ import annotations

import collections
import enum
import functools

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


@program([(one,)] * 3, state=lambda f: f.c)
def counters():
    c = collections.Counter()

    def f(x):
        c["a"] += 1
        return x + c["a"]

    f.c = c
    return f


@program([(one,)] * 2)
def user_dict_subclass():
    class D(dict):
        def __getattr__(s, k):
            return s[k]

    d = D(a=1, b=2)

    def f(x):
        e = D(z=3)
        return x + d.a, d["b"], e.z, len(d)

    return f


@program([(one,)] * 2)
def user_list_subclass():
    class L(list):
        def total(s):
            return sum(s)

    d = L([1, 2])

    def f(x):
        return x + d.total(), d[0], [v for v in d]

    return f


@program([(one,)] * 2)
def int_subclass():
    class Whole(int):
        pass

    i = Whole(3)

    class Color(enum.IntEnum):
        A = 1
        B = 2

    def f(x):
        return x * i, x * Color.B, Color.A + 1, i + 1, Color.B > Color.A, Color(2) is Color.B

    return f


@program([(one,)] * 2)
def numpy_use():
    import numpy as np

    k = np.float64(2.0)
    arr = np.ones(3)

    def f(x):
        return x * float(k), x + torch.from_numpy(arr), x * k

    return f


@program([(one,)] * 2)
def deepcopy_use():
    import copy

    def f(x):
        d = {"a": [1, 2]}
        e = copy.deepcopy(d)
        e["a"].append(3)
        return d, e, x + 1, copy.copy(d)

    return f


@program([(one,)] * 2)
def time_and_random():
    import random
    import time as tm

    def f(x):
        random.seed(1)
        a = random.random()
        t = tm.perf_counter() > 0
        return x * a, t

    return f


@program([(one,)] * 2)
def regex_and_json():
    import json
    import os
    import re

    def f(x):
        m = re.match(r"a(\d+)", "a12")
        j = json.loads('{"k": 3}')
        return x * int(m.group(1)) + j["k"], os.path.join("a", "b")

    return f


@program([(one,)] * 2)
def wraps():
    def deco(fn):
        @functools.wraps(fn)
        def inner(*a, **k):
            return fn(*a, **k) + 1

        return inner

    @deco
    def g(x):
        return x * 2

    def f(x):
        return g(x), g.__name__

    return f


@program([(one,)] * 2)
def lru():
    @functools.lru_cache
    def g(n):
        return n * 2

    def f(x):
        return x * g(3)

    return f


@program([(one,)] * 2)
def kwargs_mutation():
    def f(x, **kw):
        kw["n"] = kw.get("n", 0) + 1
        a = list(kw)
        x = x + kw["n"]
        return x, kw, a

    return f


@program([(one, (1, 2)), (one, (1, 3)), (one, (one, one))])
def tuple_args():
    def f(x, t):
        a, b = t
        return x * a + b, t

    return f


@program([(one,)] * 2)
def global_tensor():
    w = torch.full((3,), 2.0)
    lst = [w, {"k": w}]

    def f(x):
        return x * w + lst[0] + lst[1]["k"], w

    return f


@program([(one,)] * 2)
def iter_args():
    def f(x):
        it = iter([1, 2, 3])
        next(it)
        print(end="")
        return x * next(it), list(it)

    return f


@program([(one,)] * 2)
def zip_break():
    def f(x):
        out = []
        for i, (a, b) in enumerate(zip([1, 2], [3, 4])):
            x = x + a
            print(end="")
            out.append(x * b + i)
        return out

    return f


@program([(one,)] * 2)
def dict_loop_break():
    def f(x):
        out = {}
        for k, v in {"a": 1, "b": 2}.items():
            x = x + v
            print(end="")
            out[k] = x
        return out

    return f


@program([(one,)] * 2)
def try_loop_break():
    def f(x):
        for i in range(3):
            try:
                x = x + 1
                if i == 1:
                    continue
                print(end="")
                x = x * 2
            finally:
                x = x - 1
        return x

    return f


@program([(one,)] * 2)
def nested_with_break():
    class M:
        def __init__(s, log_, n):
            s.log_ = log_
            s.n = n

        def __enter__(s):
            s.log_.append(("in", s.n))
            return s.n

        def __exit__(s, *e):
            s.log_.append(("out", s.n, e[0] is not None))
            return e[0] is KeyError

    def f(x):
        log = []
        with M(log, 1) as a, M(log, 2) as b:
            x = x * a
            print(end="")
            x = x * b
            with torch.no_grad():
                x = x + 1
                print(end="")
                raise KeyError("q")
        return x, log, torch.is_grad_enabled()

    return f


@program([(one,)] * 2)
def super_break():
    class A:
        def m(s, x):
            print(end="")
            return x + 1

    class B(A):
        def m(s, x):
            y = x * 2
            print(end="")
            return super().m(y) * 3

    b = B()

    def f(x):
        return b.m(x)

    return f


@program([(one,)] * 2)
def ternary_mixed():
    def f(x):
        y = x if x.sum() > 100 else x * 2
        return (y.sum() > 0 or False), y and True if y.numel() == 1 else 3

    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees(name):
    make, calls, options = PROGRAMS[name]
    log = agree(make, calls, **options)
    assert log.captures and not log.skipped and log.graph_calls >= 1
