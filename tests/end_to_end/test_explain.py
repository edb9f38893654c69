"""`explain` says what happened on every kind of callable, compiled before or not, and is never silent."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
from agreement import STRICT, compiling
from programs import Layer, printing, wave

import compiler_core as cc


def numbers_of(explained):
    return explained.graphs, len(explained.breaks), len(explained.fallbacks), len(explained.skipped)


def test_graphs_breaks_and_guards_of_a_function(capsys):
    explained = cc.explain(printing)(torch.randn(3))
    assert numbers_of(explained) == (2, 1, 0, 0)
    text = str(explained)
    assert text.startswith("2 graph(s), 1 break(s), ")
    assert "[CC103] the program prints" in text and "do: Remove the print" in text
    assert "programs.py:" in text and "version  printing/0: 2 operation(s)" in text
    assert explained.guards == sum(len(v.guards) for v in explained.versions) > 20
    assert text.count("guard    global state: grad mode on, autocast off") == 2
    assert "guard    y: Tensor float32 [3]" in text and "it is an input of the graph" in text
    assert "is_grad_enabled" not in text and "L['x']" not in text


def test_a_resumed_frame_is_named_by_function_and_line():
    explained = cc.explain(printing)(torch.randn(3))
    line = next(d.data["where"] for d in explained.breaks).rpartition(":")[2]
    assert f"version  printing, resumed after line {line} (print)/0" in str(explained)
    assert "__resume" not in str(explained)


def branching(x):
    print("one"), print("two")
    for k in range(2):
        x = x + x.sum().item()
        print(k)
    if x.sum() > 0:
        return x - 1
    return x + 1


def test_resumed_frames_have_titles_of_their_own(capsys):
    first = branching.__code__.co_firstlineno
    names = set()
    with cc.record() as recorder, compiling():
        compiled = cc.compile(branching, options=STRICT)
        for sign in (1, -1):
            torch.testing.assert_close(
                compiled(torch.ones(3) * sign), branching(torch.ones(3) * sign)
            )
    names = {frame.name for frame in recorder.recording.frames}
    assert names >= {
        "branching",
        f"branching, resumed after line {first + 1} (print), column 5",
        f"branching, resumed after line {first + 1} (print), column 19",
        f"branching, resumed after line {first + 4} (print)",
        f"branching, resumed at line {first + 6}",
        f"branching, resumed at line {first + 7}",
    }


def test_no_line_of_guards_is_longer_than_a_hundred_columns():
    explained = cc.explain(Layer())(torch.randn(3, 4))
    lines = [line for line in str(explained).splitlines() if line.startswith("  guard")]
    assert lines and max(map(len, lines)) <= 100


def test_every_explanation_starts_afresh():
    """The same program explained twice, or after it was compiled, gives the same text."""

    class Gain:
        def apply(self, x):
            return x * 2

    layer, gain, x = Layer(), Gain(), torch.randn(3, 4)
    compiled = cc.compile(wave, options=STRICT)
    for fn, args in (
        (wave, (x, x + 1)), (compiled, (x, x + 1)), (gain.apply, (x,)), (layer, (x,)),
        (cc.compile(layer, options=STRICT), (x,)), (layer.forward, (x,)),
    ):  # fmt: skip
        with compiling(graphs=4):
            texts = [str(cc.explain(fn)(*args)) for _ in range(2)]
            runs = cc.compile(fn, options=STRICT)
            runs(*args), runs(*args)
            texts.append(str(cc.explain(fn)(*args)))
        assert texts[0] == texts[1] == texts[2] and texts[0].startswith("1 graph(s)"), fn
        cc.reset()


def test_a_function_without_tensors_has_no_graph():
    for _ in range(2):
        explained = cc.explain(lambda n: n + 1)(3)
        assert numbers_of(explained) == (0, 0, 0, 0)
        assert "version  <lambda>/0: no tensor operation, no graph" in str(explained)
        assert explained.guards > 0


def test_a_generator_function_is_skipped_with_the_reason():
    def count(n):
        yield from range(n)

    for _ in range(2):
        explained = cc.explain(count)(3)
        assert numbers_of(explained) == (0, 0, 0, 1)
        assert "skipped  frame:count: a generator" in str(explained)


@pytest.mark.parametrize(
    ("fn", "args", "reason"),
    [
        (torch.sin, (torch.ones(2),), "not written in Python"),
        (len, ([],), "not written in Python"),
        (textwrap.dedent, (" a",), "the standard library holds no tensor programs"),
        (torch.stack, ([torch.ones(2)],), "not written in Python"),
        (torch.einsum, ("i->", torch.ones(2)), "torch's own code"),
    ],
    ids=["torch_builtin", "builtin", "standard_library", "stack", "torch_function"],
)
def test_what_has_no_frame_of_the_user_says_so(fn, args, reason):
    for _ in range(2):
        explained = cc.explain(fn)(*args)
        assert numbers_of(explained) == (0, 0, 0, 1) and reason in str(explained)


def test_a_state_in_which_nothing_is_captured_is_named():
    def explained_inside(x):
        return str(cc.explain(wave)(x, x))

    with torch.overrides.BaseTorchFunctionMode():
        text = explained_inside(torch.ones(2))
    assert "skipped  frame:wave: a torch function mode is active" in text
    assert explained_inside(torch.ones(2)).startswith("1 graph(s)")


def test_an_exception_of_the_program_is_raised():
    def refuses(x):
        return x @ x

    for _ in range(2):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            cc.explain(refuses)(torch.randn(2, 3))


def test_arguments_of_compile_count():
    with pytest.raises(cc.errors.GraphBreakError):
        cc.explain(printing, fullgraph=True)(torch.randn(3))
    with pytest.raises(cc.errors.OptionError):
        cc.explain(wave, options={"nonsense": 1})
    with compiling(graphs=1, ops_generated=0):
        assert cc.explain(wave, backend="eager")(torch.ones(2), torch.ones(2)).graphs == 1


def test_what_libraries_run_by_themselves_is_no_skipped_frame():
    """Printing a tensor imports modules and makes named tuples, while interception is on."""
    program = """
import torch, compiler_core as cc
def f(x):
    print(x.sum())
    return x * 2
found = cc.explain(f)(torch.randn(4))
assert len(found.versions) == 2, found.versions
assert found.skipped == () and len(found.breaks) == 1, found
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_values_that_end_a_notebook_cell_are_short_or_their_text():
    x, y = torch.randn(2, 5)
    explained = cc.explain(wave)(x, y)
    assert repr(explained) == str(explained)
    with cc.record(explore=True) as recorder:
        compiled = cc.compile(wave, options=STRICT)
        compiled(x, y)
    assert repr(compiled.would_recompile(x, y)) == "runs a compiled version (1 in all)"
    assert repr(compiled.would_recompile(x.double(), y)).startswith(
        "compiles: the one version does"
    )
    assert repr(recorder) == "<Recorder of wave/0>" and len(repr(recorder.recording)) < 1000
    code = recorder.compilations["wave/0"]
    part = code.part("forward")
    pretty = pytest.importorskip("IPython.lib.pretty")
    stages = code.captured, code.joint, code.partitioned, part.lowered, part.fused, part.generated
    for value in (*stages, part.built):
        count = len(str(value).splitlines())
        assert repr(value) == f"<{type(value).__name__}: {count} lines, shown by print>"
        assert pretty.pretty(value) == str(value)
