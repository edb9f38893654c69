"""`record`: what a compile leaves behind is complete, named without doubt, and is read back equal."""

from __future__ import annotations

import threading

import pytest
import torch
from agreement import STRICT, compiling
from programs import normalised, printing, wave

import compiler_core as cc
from compiler_core.stages import Captured
from explorer.session import open_recording

STAGES = ["source", "bytecode", "capture", "replacement", "joint", "forward", "lower", "fuse", "host",
          "kernels"]  # fmt: skip


def test_saved_and_opened_it_is_equal(tmp_path):
    compiled = cc.compile(wave, options=STRICT)
    x = torch.randn(3)
    with cc.record(explore=True, inputs=True) as recorder, compiling(graphs=2):
        for value in (x, x * 2, x.double()):
            compiled(value, value + 1)
    recorder.recording.save(tmp_path / "run.json.gz")
    opened = open_recording(tmp_path / "run.json.gz")
    assert opened == recorder.recording
    assert opened.to_json() == recorder.recording.to_json()
    (frame,) = opened.frames
    assert [v.name for v in frame.versions] == ["wave/0", "wave/1"]
    assert frame.versions[0].reason == "first call" and "L['x']" in frame.versions[1].reason
    assert [s.name for s in frame.versions[0].stages] == STAGES
    assert "def wave" in frame.source


def test_inputs_are_copies_from_the_first_call():
    compiled = cc.compile(wave, options=STRICT)
    with cc.record(inputs=True) as recorder, compiling(graphs=1):
        x, y = torch.ones(3), torch.zeros(3)
        for _ in range(3):
            compiled(x, y)
            x.add_(1)
    kept = recorder.inputs["wave/0"]
    assert [k.tolist() for k in kept] == [[1.0] * 3, [0.0] * 3]


def test_nothing_outside_the_block_is_recorded():
    compiled = cc.compile(wave, options=STRICT)
    x = torch.randn(3)
    compiled(x, x + 1)
    with cc.record() as recorder, compiling(graphs=1):
        compiled(x, x + 1)
        compiled(x.double(), x + 1)
    compiled(x, x.double())
    (frame,) = recorder.recording.frames
    assert len(frame.versions) == len(recorder.compilations) == 1


def test_methods_of_one_name_are_told_apart_by_their_classes():
    class Left:
        def apply(self, x):
            return x * 2

    class Right:
        def apply(self, x):
            return x * 3

    with cc.record(inputs=True) as recorder, compiling(graphs=2):
        for k in range(3):
            for kind, factor in ((Left, 2), (Right, 3)):
                x = torch.full((3,), float(k))
                assert torch.equal(cc.compile(kind().apply, options=STRICT)(x), x * factor)
    names = [v.name for f in recorder.recording.frames for v in f.versions]
    assert names == ["Left.apply/0", "Right.apply/0"]
    assert names == list(recorder.compilations) == list(recorder.inputs)


def test_functions_of_one_name_in_two_scopes_have_versions_of_different_names():
    def left():
        def apply(x):
            return x * 2

        return apply

    def right():
        def apply(x):
            return x * 3

        return apply

    with cc.record(inputs=True) as recorder, compiling(graphs=2):
        for fn, factor in ((left(), 2), (right(), 3)):
            for k in range(3):
                x = torch.full((3,), float(k))
                assert torch.equal(cc.compile(fn, options=STRICT)(x), x * factor)
    names = [v.name for f in recorder.recording.frames for v in f.versions]
    assert names == ["apply/0", "apply/1"] == list(recorder.compilations) == list(recorder.inputs)


def test_a_break_makes_versions_of_the_parts(capsys):
    with cc.record() as recorder, compiling(graphs=2):
        compiled = cc.compile(printing, options=STRICT)
        for k in range(3):
            compiled(torch.randn(3) + k)
    first, rest = recorder.recording.frames
    assert first.name == "printing" and rest.name.startswith("printing, resumed after line ")
    assert all(isinstance(c.captured, Captured) for c in recorder.compilations.values())


def test_decisions_and_timings_of_every_phase():
    weight, bias = torch.ones(4, requires_grad=True), torch.zeros(4)
    with cc.record() as recorder, compiling(graphs=1):
        compiled = cc.compile(normalised, options=STRICT)
        for k in range(3):
            compiled(torch.randn(5, 4) + k, weight, bias)
    (version,) = recorder.recording.frames[0].versions
    kinds = {d.kind for d in version.decisions}
    assert {"fuse", "cache"} <= kinds and kinds & {"save", "recompute"}
    assert all(d.reason for d in version.decisions)
    phases = {t.phase for t in version.timings}
    assert {"capture", "guards", "joint", "partition", "build forward cpu"} <= phases
    assert all(t.seconds >= 0 for t in version.timings)


def test_the_second_build_of_a_kernel_is_a_cache_hit():
    x = torch.randn(3, 5)
    with compiling(graphs=1, cache_hits=0):
        cc.compile(wave, options=STRICT)(x, x * 2)
    cc.reset()
    with compiling(graphs=1, cache_hits=1):
        cc.compile(wave, options=STRICT)(x, x * 2)


def test_compiles_in_threads_are_right():
    compiled = cc.compile(normalised, options=STRICT)
    weight, bias = torch.randn(6), torch.randn(6)
    faults = []

    def work(number):
        for k in range(3):
            x = torch.randn(number + 2, 6) + k
            try:
                torch.testing.assert_close(
                    compiled(x, weight, bias), normalised(x, weight, bias), atol=1e-5, rtol=1e-4
                )
            except BaseException as fault:
                faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    with compiling():
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert faults == []


def test_an_exception_leaves_the_recorder_as_it_was():
    with pytest.raises(ZeroDivisionError), cc.record():
        raise ZeroDivisionError
    with cc.record() as outer:
        assert cc.explain(wave, options=STRICT)(torch.ones(2), torch.ones(2)).graphs == 1
        cc.compile(wave, options=STRICT)(torch.ones(2, 2), torch.ones(2))
    assert len(outer.compilations) == 1


def test_functions_whose_source_cannot_be_found_or_cut_out_are_recorded():
    scope = {}
    exec("def without_file(x):\n    return x + 1", scope)
    over_lines = [
        lambda x: (x
                   + 1),
        lambda x: x
        + 1,
    ]  # fmt: skip
    for fn in (scope["without_file"], *over_lines):
        with cc.record() as recorder, compiling(graphs=1):
            compiled = cc.compile(fn, options=STRICT)
            for k in range(3):
                assert torch.equal(compiled(torch.ones(2) * k), torch.ones(2) * k + 1)
        (frame,) = recorder.recording.frames
        assert frame.source == "" or "x" in frame.source
        assert recorder.recording.to_json()


def test_reset_inside_the_block_keeps_what_was_recorded():
    compiled = cc.compile(wave, options=STRICT)
    x = torch.randn(3)
    with cc.record() as recorder:
        for _ in range(3):
            cc.reset()
            with compiling(graphs=1):
                compiled(x, x + 1)
    assert list(recorder.compilations) == ["wave/0", "wave/1", "wave/2"]
