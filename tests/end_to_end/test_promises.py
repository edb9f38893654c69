"""The promises about stages: they are values that do not change, print the same text every time, and run."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import os
import subprocess
import sys
import types
import weakref
from pathlib import Path

import pytest
import torch
from agreement import STRICT, compiling
from programs import (
    Layer,
    chosen,
    joined,
    normalised,
    picked,
    softmax_of_scores,
    spread,
    wave,
)
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import compiler_core as cc
from compiler_core import pipeline
from compiler_core.devtools.compare_stages import check_stages

GPU = "cuda:90"

PROGRAMS = {
    "pointwise": (wave, [(3, 4), (4,)]),
    "broadcast": (spread, [(5,), (7,)]),
    "reductions": (normalised, [(6, 8), (8,), (8,)]),
    "softmax": (softmax_of_scores, [(2, 4, 8), (2, 5, 8)]),
    "cat": (joined, [(4, 3), (4, 2)]),
    "where": (chosen, [(5, 6), (5, 6)]),
    "indexing": (picked, [(6, 4), [3, 0, 5, 3]]),
}


def inputs_for(shapes):
    return [
        torch.tensor(s) if isinstance(s, list) else torch.randn(*s, requires_grad=True)
        for s in shapes
    ]


def compilation_of(fn, *inputs, **options):
    """The stages of one program, which was run three times."""
    with cc.record(inputs=True) as recorder, compiling(graphs=1):
        compiled = cc.compile(fn, options={**STRICT, **options})
        for _ in range(3):
            compiled(*inputs)
    ((name, compilation),) = recorder.compilations.items()
    return compilation, recorder.inputs[name]


def stages_of(compilation):
    yield from (compilation.captured, compilation.joint, compilation.partitioned)
    for parts in compilation.targets.values():
        for code in parts.values():
            yield from (code.lowered, code.fused, code.generated, code.built)


# ------------------------------------------------------------------------------ hold


def test_no_stage_changes_after_it_was_made(monkeypatch):
    made = []

    def noting(stage):
        def run(*args, **kwargs):
            value = stage(*args, **kwargs)
            made.append((value, value.digest(), value.text()))
            return value

        return run

    names = ("trace_joint", "partition", "lower", "fuse", "generate", "build")
    for name in names:
        monkeypatch.setattr(pipeline, name, noting(getattr(pipeline, name)))
    x, weight, bias = inputs_for(PROGRAMS["reductions"][1])
    compilation, inputs = compilation_of(normalised, x, weight, bias)
    check_stages(compilation, inputs)
    compilation.call(*inputs)[0].sum().backward()
    for stage in stages_of(compilation):
        made.append((stage, stage.digest(), stage.text()))
    assert len({type(value) for value, _, _ in made}) == 7
    for value, digest, text in made:
        assert value.text() == text and value.digest() == digest, type(value)
        assert dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen


def contents(value):
    """What a value of a stage leads to: fields, elements, cells of closures; not a function's module."""
    match value:
        case (
            torch.Tensor() | type() | types.ModuleType() | FakeTensorMode() | weakref.ref() | str()
        ):
            return
        case fx.Node():  # its fields live in a C structure
            yield from (value.meta, value.args, value.kwargs, value.target)
        case fx.Graph():
            yield from value.nodes
            yield from vars(value).values()
        case dict():
            yield from itertools.chain(value.keys(), value.values())
        case list() | tuple() | set() | frozenset():
            yield from value
        case types.FunctionType():
            yield from value.__closure__ or ()
            yield from (value.__defaults__, value.__kwdefaults__)
        case types.CellType():
            yield value.cell_contents
        case types.MethodType():
            yield from (value.__func__, value.__self__)
        case _:
            yield from vars(value).values() if hasattr(value, "__dict__") else ()
            names = (n for c in type(value).__mro__ for n in vars(c).get("__slots__", ()))
            yield from (getattr(value, n, None) for n in names if isinstance(n, str))


def reachable(root):
    seen, left = {}, [root]
    while left:
        value = left.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            left += contents(value)
    return seen.values()


def test_stages_lead_to_no_real_tensor():
    layer = Layer()
    compilation, _ = compilation_of(layer, torch.randn(5, 4))
    for stage in stages_of(compilation):
        values = list(reachable(stage))
        real = [v for v in values if isinstance(v, torch.Tensor) and not isinstance(v, FakeTensor)]
        assert real == [], type(stage).__name__
    assert any(isinstance(v, FakeTensor) for v in reachable(compilation.captured))


def test_the_walk_finds_a_tensor_where_there_is_one():
    x = torch.ones(2)
    graph = fx.symbolic_trace(lambda y: y + 1)
    next(iter(graph.graph.nodes)).meta["val"] = [(x,)]
    holder = types.SimpleNamespace(graph=graph)
    assert any(v is x for v in reachable(holder))
    assert any(v is x for v in reachable(lambda: x))


def test_parameters_and_inputs_die_while_the_stages_live():
    def run():
        layer = Layer()
        x = torch.randn(5, 4)
        with cc.record() as recorder, compiling(graphs=1):
            compiled = cc.compile(layer, options=STRICT)
            for _ in range(3):
                compiled(x).sum().backward()
        kept = [weakref.ref(v) for v in (layer, compiled, layer.linear.weight, layer.shift, x)]
        return recorder.compilations, kept

    compilations, kept = run()
    gc.collect()
    assert compilations and [r() for r in kept] == [None] * 5


# ------------------------------------------------------------------------------ print

PRINTING = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch
import compiler_core as cc
from test_promises import PROGRAMS, inputs_for
for name in ("reductions", "indexing"):
    fn, shapes = PROGRAMS[name]
    with cc.record() as recorder:
        inputs = inputs_for(shapes)
        cc.compile(fn, options={{"strict": True, "also": ({GPU!r},)}})(*inputs)
    for frame in recorder.recording.frames:
        for version in frame.versions:
            for stage in version.stages:
                print("=====", version.name, stage.name, stage.part, stage.target, stage.digest)
                print(stage.text)
                for item in stage.items:
                    print(item)
            print(*(guard["check"] for guard in version.guards), sep="\\n")
"""


def test_two_processes_print_identical_text():
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PRINTING],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    first, second = (process.communicate(timeout=100)[0] for process in running)
    titles = [line for line in first.splitlines() if line.startswith("=====")]
    for name in (
        "capture",
        "replacement",
        "joint",
        "backward",
        "lower",
        "fuse",
        "kernels",
        "host",
        "ptx",
    ):
        assert any(f" {name} " in line for line in titles), name
    differing = [(a, b) for a, b in zip(first.splitlines(), second.splitlines()) if a != b]
    assert differing[:3] == [] and first == second


# ------------------------------------------------------------------------------ run


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_runs_and_is_right(name):
    fn, shapes = PROGRAMS[name]
    compilation, inputs = compilation_of(fn, *inputs_for(shapes), also=(GPU,))
    checks = check_stages(compilation, inputs)
    assert [c for c in checks if not c.ok] == []
    assert {(c.name, c.target) for c in checks} == {
        ("capture", ""), ("joint", ""), ("partition", ""),
        *itertools.product(("lower", "fuse", "kernels"), ("cpu", GPU)),
    }  # fmt: skip
    parts = {c.part for c in checks if c.name == "kernels"}
    assert parts == {"forward", "backward"}


def test_a_wrong_stage_is_found(monkeypatch):
    """A kernel that computes something else fails in that stage, and only there."""
    generate = pipeline.generate

    def with_a_fault(fused, context):
        made = generate(fused, context)
        kernels = tuple(
            dataclasses.replace(k, source=k.source.replace("v_sin(", "v_cos("))
            for k in made.kernels
        )
        return dataclasses.replace(made, kernels=kernels)

    monkeypatch.setattr(pipeline, "generate", with_a_fault)
    compilation, inputs = compilation_of(wave, torch.randn(3, 4), torch.randn(4))
    wrong = {(c.name, c.part) for c in check_stages(compilation, inputs) if not c.ok}
    assert wrong == {("kernels", "forward")}
