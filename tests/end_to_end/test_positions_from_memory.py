"""Positions that lie in tensors: forward and backward, changed between calls, and eager's errors for bad ones.

Everything here must be generated: a library call would make `ops_library` count.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from agreement import STRICT, agree, compiling

import compiler_core as cc

EVALUATED = {"target": "cuda:90"}


def rows(*shape, high=9, low=0, dtype=torch.int64):
    return torch.randint(low, high, shape, dtype=dtype)


def param(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


def embedded(w, i):
    return (F.embedding(i, w) * 2).square()


def padded(w, i):
    return F.embedding(i, w, padding_idx=3).square()


def normed_rows(w, i):
    return F.layer_norm(F.embedding(i, w), (w.shape[1],))


def gathered(x, i):
    return (x.exp().gather(1, i) * 3).sum(1)


def selected(x, i):
    return x.index_select(1, i).sin()


def subscripted(x, i):
    return x[i - 9] * x[:, i % 5].sum()


def two_subscripts(x, i):
    return x[i, i % 5] + x[i, :2].sum(-1)


def between(x, i):
    return (x[:, :, None] * x[:, None])[i % 3, :, i % 5].cos()


def picked_along(x, i):
    return torch.take_along_dim(x.sigmoid(), i, 0)


def scattered(x, i):
    return x.scatter_add(0, i, i.to(x.dtype) * x[:4].cos())


def added(x, i):
    return x.index_add(0, i, x[: i.shape[0]] * 2, alpha=0.5).relu()


def put(x, i):
    return x.index_put((i,), x[: i.shape[0]].exp(), accumulate=True) * 2


def cross_entropy(x, i):
    return F.cross_entropy(x, i % 5, ignore_index=2)


def weighted_loss(x, i):
    return F.nll_loss(x.log_softmax(1), i % 5, weight=x[0].abs().detach(), reduction="none")


torch.manual_seed(0)  # the same positions in every run
FLAT = [(param(9, 5), rows(9)) for _ in range(3)]
WIDE = [(param(9, 5), rows(4, 5, high=5)) for _ in range(3)]
PROGRAMS = [
    (embedded, [(param(9, 8), rows(2, 3)) for _ in range(3)]),
    (embedded, [(param(9, 8), rows(6, dtype=torch.int32)), (param(9, 8), rows(6, dtype=torch.int32))]),
    (embedded, [(param(9, 8), torch.tensor(4)), (param(9, 8), torch.tensor(0))]),
    (padded, [(param(9, 8), rows(2, 3)), (param(9, 8), torch.full((2, 3), 3)), (param(9, 8), rows(2, 3))]),
    (normed_rows, [(param(9, 8), rows(2, 3)) for _ in range(3)]),
    (gathered, WIDE), (selected, [(x, i[:4] % 5) for x, i in FLAT]), (subscripted, FLAT), (two_subscripts, FLAT),
    (between, FLAT), (picked_along, WIDE), (scattered, WIDE), (added, [(x, i[:4]) for x, i in FLAT]),
    (put, [(x, i[:4] - 9) for x, i in FLAT]), (cross_entropy, FLAT), (weighted_loss, FLAT),
]  # fmt: skip


@pytest.mark.parametrize(
    "target", [{}, pytest.param(EVALUATED, marks=pytest.mark.evaluated)], ids=["cpu", "evaluated"]
)
@pytest.mark.parametrize(("program", "calls"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_agrees_with_eager(program, calls, target):
    with compiling(breaks=0, ops_library=0):
        agree(program, *calls, options=target)


@pytest.mark.parametrize("program", [embedded, gathered, put, scattered])
def test_half_types_keep_their_sums_in_f32(program):
    calls = [(param(9, 5, dtype=torch.bfloat16), rows(4, 5, high=5)) for _ in range(2)]
    if program in (embedded, put):
        calls = [(x, i[:, 0]) for x, i in calls]
    with compiling(breaks=0, ops_library=0):
        agree(program, *calls)


def test_no_positions_at_all():
    for program in (embedded, put):
        agree(program, (param(9, 5), rows(0)), (param(9, 5), rows(0)))


def test_lengths_that_change():
    """The second length makes the size symbolic; the third runs the same version."""
    with compiling(graphs=2, ops_library=0):
        agree(embedded, *[(param(9, 8), rows(n)) for n in (3, 5, 7, 64)])


def test_the_same_row_many_times_is_added_up_exactly():
    i = torch.zeros(1000, dtype=torch.int64)
    w = torch.ones(2, 4, requires_grad=True)
    compiled = cc.compile(embedded, options=STRICT)
    for scale in (1, 2):
        w.grad = None
        compiled(w, i).backward(torch.full((1000, 4), float(scale)))
        wide = w.detach().double().requires_grad_()
        embedded(wide, i).backward(torch.full((1000, 4), float(scale), dtype=torch.float64))
        torch.testing.assert_close(w.grad.double(), wide.grad, rtol=1e-4, atol=0)


# --------------------------------------------------------------------------------- errors

BAD = [
    ("embedding", lambda x, i: F.embedding(i, x) * 2, (9, -1)),
    ("gather", lambda x, i: x.gather(0, i[:, None]) * 2, (9, -1)),
    ("gather along 1", lambda x, i: x.gather(1, i[None]) * 2, (5, -1)),
    ("index_select", lambda x, i: x.index_select(0, i) * 2, (9, -1)),
    ("index_select of columns", lambda x, i: x.index_select(1, i) * 2, (5, -1)),
    ("subscript", lambda x, i: x[i] * 2, (9, -10)),
    ("subscript of columns", lambda x, i: x[:, i] * 2, (5, -6)),
    ("second subscript", lambda x, i: x[i * 0, i] * 2, (5, -6)),
    ("scatter_add", lambda x, i: x.scatter_add(0, i[:, None], x) * 2, (9, -1)),
    ("index_add", lambda x, i: x.index_add(0, i, x[:3]) * 2, (9, -1)),
    ("index_add of int32", lambda x, i: x.index_add(0, i.int(), x[:3]) * 2, (9, -1)),
    ("index_add with a factor", lambda x, i: x.index_add(0, i, x[:3], alpha=2) * 2, (9, -1)),
    ("index_add of a vector", lambda x, i: x[:, 0].index_add(0, i, x[:3, 0]) * 2, (9, -1)),
    ("index_add of columns", lambda x, i: x.index_add(1, i, x[:, :3]) * 2, (5, -1)),
    ("index_put", lambda x, i: x.index_put((i,), x[:3], accumulate=True) * 2, (9, -10)),
    ("nll_loss", lambda x, i: F.nll_loss(x[:3], i), (5, -1)),
    ("cross_entropy", lambda x, i: F.cross_entropy(x[:3], i), (5, -1)),
]


def raised(call, *args):
    with pytest.raises((IndexError, RuntimeError)) as caught:
        call(*args)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize(("name", "program", "bad"), BAD, ids=[name for name, *_ in BAD])
def test_a_position_out_of_bounds_raises_as_in_eager(name, program, bad):
    x, good = torch.randn(9, 5), torch.tensor([1, 0, 4])
    compiled = cc.compile(program, options=STRICT)
    with compiling(breaks=0, ops_library=0):
        torch.testing.assert_close(compiled(x, good), program(x, good))
        for value in bad:
            wrong = torch.tensor([1, value, 4])
            assert raised(compiled, x, wrong) == raised(program, x, wrong)
        torch.testing.assert_close(compiled(x, good + 0), program(x, good))  # nothing is left over


def test_an_unread_part_is_checked_too():
    def part(x, i):
        return x[i][:1] * 2

    x, compiled = torch.randn(9, 5), cc.compile(part, options=STRICT)
    good, bad = torch.tensor([1, 2]), torch.tensor([1, 99])
    torch.testing.assert_close(compiled(x, good), part(x, good))
    assert raised(compiled, x, bad) == raised(part, x, bad)


@pytest.mark.evaluated
def test_an_evaluated_kernel_asserts():
    compiled = cc.compile(embedded, options=STRICT | EVALUATED)
    w = torch.randn(9, 8)
    compiled(w, torch.tensor([8, 0]))
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(w, torch.tensor([9, 0]))


@pytest.mark.evaluated
def test_deterministic_algorithms_keep_the_library_on_a_gpu():
    torch.use_deterministic_algorithms(True)
    try:
        with cc.record() as recorder:
            w = param(9, 8)
            cc.compile(embedded, options=STRICT | EVALUATED)(w, rows(4)).sum().backward()
    finally:
        torch.use_deterministic_algorithms(False)
    decisions = [d for v in recorder.recording.frames[0].versions for d in v.decisions]
    assert any("deterministic" in d.reason for d in decisions if d.kind == "library")


def test_scale_by_frequency_says_why_it_is_a_library_call():
    def scaled(w, i):
        return F.embedding(i, w, scale_grad_by_freq=True) * 2

    with cc.record() as recorder:
        agree(scaled, (param(9, 8), rows(6)), (param(9, 8), rows(6)))
    decisions = [d for f in recorder.recording.frames for v in f.versions for d in v.decisions]
    assert any("number of times" in d.reason for d in decisions if d.kind == "library")
