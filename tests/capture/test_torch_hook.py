"""The hook: replaced frames, hits, misses, errors, nesting, and torch.compile on the same code."""

import sys
import threading
import traceback
import types
from types import CodeType

import pytest
import torch

from compiler_core.capture import torch_frames
from compiler_core.capture.frames import Keep, RunOnly, Skip, SkipOnce
from compiler_core.capture.guard_check import compile_guards
from compiler_core.capture.guard_explain import sentence
from compiler_core.capture.guards import Guards
from compiler_core.capture.sources import local
from compiler_core.capture.torch_hook import TorchHook, is_disabled
from compiler_core.errors import InternalError


def code_of(source: str, name: str) -> CodeType:
    """The code of the function `name` that `source` defines, at any depth."""
    found, todo = None, [compile(source, f"<replacement {name}>", "exec")]
    while todo:
        code = todo.pop()
        found = code if code.co_name == name else found
        todo += [c for c in code.co_consts if isinstance(c, CodeType)]
    assert found is not None
    return found


class Compiler:
    """Replaces the functions it has a source for; guards every argument; notes what it was asked."""

    def __init__(self, **sources):
        self.sources, self.asked, self.reasons = sources, [], []

    def __call__(self, view, entries):
        name = view.code.co_name
        if name not in self.sources:
            return SkipOnce("not in this test")
        self.asked.append(name)
        self.reasons += [sentence(*e.guard_table.first_failure(view.locals)) for e in entries]
        source = self.sources[name]
        if not isinstance(source, str):
            return source(view, entries)
        return self.keep(view, code_of(source, name), f"{name}/{len(entries)}")

    @staticmethod
    def keep(view, code, name):
        guards = Guards(view)
        guards.add("grad_mode", None)
        for n, value in view.locals.items():
            kind = "tensor" if isinstance(value, torch.Tensor) else "type"
            guards.add(kind, local(n), value)
            if isinstance(value, int):
                guards.add("equals", local(n), value)
        return Keep(code, compile_guards(guards.rows(), guards, view.locals, view.globals), name)


def test_replaced_hit_miss_and_reason():
    def f(x, n):
        return x + n

    compiler = Compiler(f="def f(x, n):\n    return x * 100 + n\n")
    hook = TorchHook(compiler)
    g = hook.wrap(f)
    one, longer = torch.ones(2), torch.ones(3)
    assert g(one, 1).tolist() == [101, 101]
    assert g(one, 1).tolist() == [101, 101]
    assert compiler.asked == ["f"]
    assert g(longer, 1).tolist() == [101, 101, 101]
    assert g(one, 2).tolist() == [102, 102]
    assert compiler.asked == ["f"] * 3
    assert compiler.reasons[0] == (
        "L['x'] is now Tensor float32 [3] strides [1] cpu, was Tensor float32 [2] strides [1] cpu: "
        "code is generated for these sizes, strides, dtype and device"
    )
    assert any(r.startswith("L['n'] is now 2, was 1") for r in compiler.reasons[1:])
    with torch.no_grad():
        g(one, 1)
    assert compiler.reasons[-1].startswith("torch.is_grad_enabled() is now False, was True")
    assert f(one, 1).tolist() == [2, 2], "outside the wrapper the original runs"
    entries = hook.entries(f.__code__)
    assert sorted(e.name for e in entries) == ["f/0", "f/1", "f/2", "f/3"]
    # Every call ran a version, the first of each right after it was kept, so without a check.
    assert {e.name: e.hits for e in entries} == {"f/0": 1, "f/1": 0, "f/2": 0, "f/3": 0}


def test_forget_and_reset_ask_again():
    def f(n):
        return n

    compiler = Compiler(f="def f(n):\n    return -n\n")
    hook = TorchHook(compiler)
    g = hook.wrap(f)
    assert [g(1), g(1)] == [-1, -1] and compiler.asked == ["f"]
    hook.forget(f.__code__)
    assert hook.entries(f.__code__) == []
    assert g(1) == -1 and compiler.asked == ["f"] * 2
    hook.reset()
    assert hook.entries(f.__code__) == []
    assert g(1) == -1 and compiler.asked == ["f"] * 3


def test_nested_frames_and_methods():
    class Layer(torch.nn.Module):
        def forward(self, x):
            return inner(x) + 1

    def inner(x):
        return x

    compiler = Compiler(
        inner="def inner(x):\n    return x * 10\n", forward=lambda v, e: SkipOnce("-")
    )
    layer = Layer()
    g = TorchHook(compiler).wrap(layer)
    assert [g(torch.ones(1)).item(), g(torch.ones(1)).item()] == [11, 11]
    assert compiler.asked.count("inner") == 1 and compiler.asked.count("forward") == 2


def test_frames_called_from_c_are_seen():
    def helper(v):
        return v

    def f(values):
        return sum(map(helper, values)), sorted(values, key=helper)

    compiler = Compiler(helper="def helper(v):\n    return -v\n")
    assert TorchHook(compiler).wrap(f)([1, 2, 3]) == (-6, [3, 2, 1])


def test_arguments_defaults_closures_and_cells():
    factor = 3

    def f(a, /, b=2, *args, k=5, **kw):
        nonlocal factor
        factor += 1
        return lambda: (a, b, args, k, kw, factor)

    source = """
def outer(factor):
    def f(a, /, b=2, *args, k=5, **kw):
        nonlocal factor
        factor += 10
        return lambda: (b, a, args, k, kw, factor)
    return f
"""
    hook = TorchHook(Compiler(f=source))
    g = hook.wrap(f)
    assert g(1)() == (2, 1, (), 5, {}, 13)
    assert g(1, 7, 8, 9, k=0, z=1)() == (7, 1, (8, 9), 0, {"z": 1}, 23)
    assert factor == 23, "the cell of the program itself was written"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def f(a): return a", "co_argcount is 1, the frame has 2"),
        ("def f(a, b, *c): return a", "*args or **kwargs differ"),
        ("def o(z):\n    def f(a, b): return z\n", "co_freevars is ('z',), the frame has ()"),
        ("def f(a, b): yield a", "one is a generator"),
    ],
)
def test_a_replacement_with_another_layout_is_refused(source, fault):
    def f(a, b):
        return a - b

    errors = []
    hook = TorchHook(Compiler(f=source), on_error=lambda e: errors.append(e))
    assert hook.wrap(f)(5, 2) == 3, "the original runs"
    assert hook.wrap(f)(5, 3) == 2
    assert len(errors) == 1 and isinstance(errors[0], InternalError) and fault in str(errors[0])
    hook.forget(f.__code__)
    strict = TorchHook(Compiler(f=source))
    with pytest.raises(InternalError, match="refused"):
        strict.wrap(f)(5, 2)


def raising(view, entries):
    raise ValueError("inside the compiler")


def test_an_error_inside_is_recorded_and_the_frame_runs_in_eager():
    def f(n):
        return n + 1

    errors, compiler = [], Compiler(f=raising)
    g = TorchHook(compiler, on_error=lambda e: errors.append(e)).wrap(f)
    assert [g(1), g(2)] == [2, 3]
    assert [str(e) for e in errors] == ["inside the compiler"] and compiler.asked == ["f"]


def test_an_error_inside_reaches_the_user_and_the_hook_survives():
    def f(n):
        return n + 1

    def h(n):
        return n

    compiler = Compiler(f=raising, h="def h(n): return -n")
    hook = TorchHook(compiler)
    with pytest.raises(ValueError, match="inside the compiler"):
        hook.wrap(f)(1)
    assert hook.wrap(h)(1) == -1
    assert f(1) == 2

    def swallowing(n):
        try:
            return f(n)
        except ValueError:
            return "swallowed"

    with pytest.raises(ValueError, match="inside the compiler"):
        hook.wrap(swallowing)(1)
    assert hook.wrap(h)(1) == -1, "the error was raised once"


def test_exceptions_of_the_program_restore_the_callback():
    def f(n):
        raise KeyError(n)

    def plain(n):
        return n

    compiler = Compiler(f="def f(n):\n    raise KeyError(-n)\n", plain="def plain(n): return -n")
    hook = TorchHook(compiler)
    for _ in range(3):
        with pytest.raises(KeyError, match="-1"):
            hook.wrap(f)(1)
        assert plain(1) == 1
    assert torch_frames.eval_frame.get_eval_frame_callback() is None


def test_the_replacement_stands_in_tracebacks():
    def f(n):
        return n

    try:
        TorchHook(Compiler(f="def f(n):\n    return missing_name\n")).wrap(f)(1)
    except NameError as error:
        frames = traceback.extract_tb(error.__traceback__)
        assert frames[-1].filename == "<replacement f>" and frames[-1].lineno == 2
    else:
        pytest.fail("no NameError")


def test_wrapped_calls_nest():
    def inner(n):
        return n

    def outer(n):
        return nested(n) + inner(n)

    hook = TorchHook(Compiler(inner="def inner(n): return n * 100"))
    other = TorchHook(Compiler(inner="def inner(n): return n * 7"))
    nested = other.wrap(inner)
    g = hook.wrap(outer)
    assert [g(1), g(2), g(1)] == [107, 214, 107]
    assert len(hook.entries(inner.__code__)) == len(other.entries(inner.__code__)) == 2


def test_generators_are_skipped():
    def numbers(n):
        for i in range(n):
            yield helper(i)

    def helper(i):
        return i

    def f(n):
        return list(numbers(n))

    skipped = []
    compiler = Compiler(numbers=raising, helper="def helper(i): return -i")
    hook = TorchHook(compiler, on_skip=lambda code, reason: skipped.append((code.co_name, reason)))
    g = hook.wrap(f)
    assert [g(3), g(3)] == [[0, -1, -2]] * 2
    generator = [reason for name, reason in skipped if name == "numbers"]
    assert len(generator) == 1 and "generator" in generator[0]


def test_skip_and_run_only_are_asked_once():
    def left(n):
        return n

    def limited(n):
        return n

    def keep_one(view, entries):
        if entries:
            return RunOnly("one is enough")
        return Compiler.keep(view, code_of("def limited(n): return -n", "limited"), "limited/0")

    compiler = Compiler(left=lambda v, e: Skip("boring"), limited=keep_one)
    hook = TorchHook(compiler)
    g, h = hook.wrap(left), hook.wrap(limited)
    assert [g(1), g(2)] == [1, 2] and compiler.asked == ["left"]
    assert [h(1), h(2), h(3), h(1)] == [-1, 2, 3, -1]
    assert compiler.asked == ["left", "limited", "limited"]


def test_opaque_hides_callees_and_disable_switches_off():
    def helper(n):
        return n

    def graph(n):
        return helper(n)

    compiler = Compiler(helper="def helper(n): return -n")
    hook = TorchHook(compiler)
    hidden = hook.opaque(graph)
    off = hook.disable(helper)
    assert hidden is graph and is_disabled(off) and not is_disabled(helper)

    def f(n):
        return hidden(n), off(n), helper(n)

    assert hook.wrap(f)(1) == (1, 1, -1)
    assert hook.wrap(f)(1) == (1, 1, -1)
    called = hook.opaque(torch.nn.Identity())
    assert hook.wrap(lambda n: called(n))(5) == 5


def test_deep_recursion():
    # a hooked frame is a C call, and CPython 3.12 and 3.13 count those apart from sys.setrecursionlimit
    depth = 1000 if sys.version_info < (3, 12) else 500

    def f(n):
        return 0 if n == 0 else 1 + f(n - 1)

    def same(view, entries):
        guards = Guards(view)
        guards.add("type", local("n"), view.locals["n"])
        table = compile_guards(guards.rows(), guards, view.locals, view.globals)
        return Keep(view.code.replace(), table, "f/0")

    hook = TorchHook(Compiler(f=same))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        assert hook.wrap(f)(depth) == depth
    finally:
        sys.setrecursionlimit(limit)


def test_threads_are_watched_each_for_itself():
    def helper(n):
        return n

    def spawning(n):
        out = []
        thread = threading.Thread(target=lambda: out.append(helper(n)))
        thread.start()
        thread.join()
        return out[0], helper(n)

    hook = TorchHook(Compiler(helper="def helper(n): return -n"))
    assert hook.wrap(spawning)(1) == (1, -1), "a plain thread inside is not watched"
    results = []
    threads = [
        threading.Thread(target=lambda i=i: results.append((i, hook.wrap(helper)(i))))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(i, -i) for i in range(8)]


def counting_backend():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return backend, graphs


@pytest.mark.parametrize("regions", [True, False], ids=["own region", "private copies"])
@pytest.mark.parametrize("decision", ["keep", "skip", "run only"])
@pytest.mark.parametrize("ours_first", [True, False])
def test_torch_compile_of_the_same_function(ours_first, decision, regions, monkeypatch):
    if not regions:
        monkeypatch.setattr(torch_frames, "HAS_REGIONS", False)
    if regions and not torch_frames.HAS_REGIONS:
        pytest.skip("this torch has no regions")

    def f(x):
        return x.sin() + 1

    verdict = {
        "keep": "def f(x):\n    return x * 0 + 42\n",
        "skip": lambda v, e: Skip("boring"),
        "run only": lambda v, e: RunOnly("enough"),
    }[decision]
    hook, (backend, graphs) = TorchHook(Compiler(f=verdict)), counting_backend()
    ours, theirs = hook.wrap(f), torch.compile(f, backend=backend)
    x = torch.ones(2)
    plain = f(x).tolist()
    expected = [42, 42] if decision == "keep" else plain
    for _ in range(2):
        if ours_first:
            assert ours(x).tolist() == expected
        assert theirs(x).tolist() == plain
        assert ours(x).tolist() == expected
    assert len(graphs) == 1
    assert theirs(torch.ones(3, 2)).shape == (3, 2) and len(graphs) == 2
    torch._dynamo.reset()
    assert theirs(x).tolist() == plain and len(graphs) == 3
    assert ours(x).tolist() == expected
    hook.reset()
    assert ours(x).tolist() == expected and theirs(x).tolist() == plain


@pytest.mark.parametrize("regions", [True, False], ids=["own region", "no regions"])
@pytest.mark.parametrize("verdict", ["keep", "skip", "run only"])
def test_torch_compile_of_a_function_that_ours_calls(verdict, regions, monkeypatch):
    """A callee has one code object for both compilers, also where regions are missing."""
    if not regions:
        monkeypatch.setattr(torch_frames, "HAS_REGIONS", False)
    if regions and not torch_frames.HAS_REGIONS:
        pytest.skip("this torch has no regions")

    def helper(x):
        return x.cos() + 1

    def f(x):
        return helper(x) * 2

    helper = afresh(helper)
    decision = {
        "keep": "def helper(x):\n    return x * 0 + 21\n",
        "skip": lambda v, e: Skip("boring"),
        "run only": lambda v, e: RunOnly("enough"),
    }[verdict]
    compiler = Compiler(helper=decision)
    hook, (backend, graphs) = TorchHook(compiler), counting_backend()
    ours, theirs, x = hook.wrap(f), torch.compile(helper, backend=backend), torch.ones(2)
    plain = helper(x).tolist()
    expected = [42, 42] if verdict == "keep" else f(x).tolist()
    assert ours(x).tolist() == expected and ours(x).tolist() == expected
    assert compiler.asked == ["helper"]
    if verdict == "keep" and not regions:
        hook.forget(helper.__code__)
    for _ in range(2):
        assert theirs(x).tolist() == plain and len(graphs) == 1
        assert ours(x).tolist() == expected


def afresh(fn):
    """The function under a code object that no other run of the test has used."""
    return types.FunctionType(
        fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )


def test_the_self_test_names_what_differs(monkeypatch):
    assert torch_frames.self_test() == torch_frames.EXPECTED
    monkeypatch.setattr(torch_frames, "self_test", lambda: ["original 1"])
    with pytest.raises(InternalError, match="frame hook gave"):
        TorchHook(Compiler()).wrap(lambda: 1)


def test_a_dead_code_object_is_forgotten():
    hook = TorchHook(Compiler(f="def f(n): return -n"))

    def make():
        scope = {}
        exec("def f(n): return n", globals(), scope)
        return scope.pop("f")

    fn = make()
    assert hook.wrap(fn)(1) == -1
    assert len(hook._known) == 1
    del fn
    import gc

    gc.collect()
    assert len(hook._known) == 0
