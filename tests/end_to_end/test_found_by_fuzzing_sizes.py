"""Sizes that generated programs got wrong: conditions of later stages, symbols that only the backward pass needs."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, agree, compiling
from torch.nn import functional as F

import compiler_core as cc


def marked(*shape):
    x = torch.randn(*shape, requires_grad=True)
    cc.mark_dynamic(x, 0, 1)
    return (x,)


def windows(x):
    return F.conv1d(x[None].transpose(1, 2), torch.ones(2, x.shape[1], 3, dtype=x.dtype))


# The first sizes make a condition true that only the trace of the backward pass asks about.
PROGRAMS = {
    "one window": (windows, (3, 4)),
    "a product of two rows": (lambda x: x.prod(0), (2, 4)),
    "the last piece is one row": (lambda x: x.split(3)[0] * 2, (4, 2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_backward_trace_assumes_about_sizes_is_guarded(name):
    fn, first = PROGRAMS[name]
    sizes = (first, (6, 5), (5, 3), (9, 9), first)
    agree(fn, *[marked(*size) for size in sizes])


def test_the_assumption_is_a_guard_one_can_read():
    with cc.record() as recorder:
        cc.compile(lambda x: x.prod(0), options=STRICT)(*marked(2, 4))
    (frame,) = recorder.recording.frames
    (guard,) = [g for g in frame.versions[0].guards if "generated for sizes" in g["reason"]]
    assert guard["kind"] == "shape" and "L['x'].size(0)" in guard["check"]


PIECES = {
    "chunk": lambda x: x.chunk(2)[0] * 2,
    "both chunks": lambda x: [c.sin() for c in x.chunk(2)],
    "split": lambda x: x.split(3)[0] * 2,
    "second half": lambda x: x[x.shape[0] // 2 :].sin(),
}


@pytest.mark.parametrize("name", PIECES)
def test_a_backward_pass_that_gets_only_pieces_knows_the_whole_size(name):
    agree(PIECES[name], *[marked(n, 4) for n in (6, 5, 9, 2, 3)])


def test_a_frame_without_operations_compiles_nothing():
    def passes_on(x, k):
        return {"x": x, "k": k + 1}

    compiled = cc.compile(passes_on, options=STRICT)
    with cc.record() as recorder, compiling(graphs=0, ops_generated=0, ops_library=0):
        for k in (1, 1, 2):
            x = torch.randn(3)
            assert compiled(x, k) == {"x": x, "k": k + 1}
    phases = {t.phase for f in recorder.recording.frames for v in f.versions for t in v.timings}
    assert "capture" in phases and not any(p.startswith(("joint", "build")) for p in phases)
