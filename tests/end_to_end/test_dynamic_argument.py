"""`dynamic=None|True|False`, marks, and the guards on sizes: their text, and the line that made each."""

from __future__ import annotations

import pytest
import torch

import compiler_core as cc
from explorer.models import VOCABULARY
from explorer.programs import PROGRAMS


def graphs(fn, sizes, **options) -> int:
    cc.reset()
    compiled = cc.compile(fn, options={"strict": True}, **options)
    for size in sizes:
        x = torch.rand(size) if isinstance(size, tuple) else size
        torch.testing.assert_close(compiled(x), fn(x))
    assert cc.stats().fallbacks == 0
    return cc.stats().graphs


def scaled(x):
    return x * 2 + x.shape[0]


SIZES = [(4, 3), (5, 3), (6, 7), (9, 8)]


@pytest.mark.parametrize("backend", ["cutaway", "eager"])
def test_the_three_values(backend):
    assert graphs(scaled, SIZES, backend=backend) == 3  # static, first size open, both open
    assert graphs(scaled, SIZES, backend=backend, dynamic=True) == 1
    assert graphs(scaled, SIZES, backend=backend, dynamic=False) == 4


def test_zero_and_one_have_versions_of_their_own():
    assert graphs(scaled, [(4, 3), (1, 3), (0, 3), (7, 5), (1, 3)], dynamic=True) == 3


def test_equal_sizes_need_not_stay_equal():
    cc.reset()
    compiled = cc.compile(lambda x, y: x.sum(0) + y.sum(0), dynamic=True, options={"strict": True})
    for a, b in [(4, 4), (5, 5), (6, 7)]:
        compiled(torch.rand(a, 3), torch.rand(b, 3))
    assert cc.stats().graphs == 1


def test_sizes_that_an_operator_makes_equal_are_guarded():
    cc.reset()
    compiled = cc.compile(lambda x, y: x + y, dynamic=True, options={"strict": True})
    for a, b in [((4, 3), (4, 3)), ((5, 6), (5, 6)), ((5, 6), (1, 6))]:
        x, y = torch.rand(a), torch.rand(b)
        assert torch.equal(compiled(x, y), x + y)
    assert cc.stats().graphs == 2


def test_ints_that_are_passed():
    cc.reset()
    compiled = cc.compile(lambda x, k: x * k, dynamic=True, options={"strict": True})
    for k in (2, 3, 7, 1, 0):
        assert torch.equal(compiled(torch.ones(3), k), torch.full((3,), float(k)))
    assert cc.stats().graphs == 1


@pytest.mark.parametrize("dynamic, expected", [(None, 3), (True, 3)])
def test_mark_static(dynamic, expected):
    cc.reset()
    compiled = cc.compile(scaled, dynamic=dynamic, options={"strict": True})
    for size in (4, 5, 6):
        x = torch.rand(size, 3)
        cc.mark_static(x)
        assert torch.equal(compiled(x), scaled(x))
    assert cc.stats().graphs == expected


def test_mark_dynamic_holds_under_dynamic_false():
    cc.reset()
    compiled = cc.compile(scaled, dynamic=False, options={"strict": True})
    for size in (4, 5, 6):
        x = torch.rand(size, 3)
        cc.mark_dynamic(x, 0)
        assert torch.equal(compiled(x), scaled(x))
    assert cc.stats().graphs == 1


def branches(x):
    if x.shape[0] % 2 == 0:
        return x * 2
    y = x + 1
    if y.shape[1] > 5:
        return y * 3
    return y


def test_guards_on_sizes_name_their_line():
    cc.reset()
    compiled = cc.compile(branches, dynamic=True, backend="eager")
    first = branches.__code__.co_firstlineno
    compiled(torch.rand(5, 9))
    prediction = compiled.would_recompile(torch.rand(4, 9))
    lines = {failure.row.line.rpartition(":")[2] for failure in prediction.failures}
    assert lines == {str(first + 1)}
    assert "x.size(0)" in str(prediction)
    (failure,) = compiled.would_recompile(torch.rand(5, 3)).failures
    assert failure.row.line.endswith(f":{first + 4}")
    assert "x.size(1) = 3" in str(failure)
    for shape in ((5, 9), (4, 9), (7, 3), (8, 2), (9, 12)):
        x = torch.rand(shape)
        assert torch.equal(compiled(x), branches(x))
    assert cc.stats().graphs == 3


def test_a_sweep_of_sequence_lengths_takes_two_graphs():
    """Forward and backward of a transformer at 20 lengths: one version, then one for all the others."""
    (program,) = (p for p in PROGRAMS if p.name == "transformer")
    model, plain = program.make(), program.make()
    for made in (model, plain):  # places for longer sequences than the program itself has
        made.place = torch.nn.Embedding(32, made.place.embedding_dim)
        for block in made.blocks:
            block.attention.causal = torch.ones(32, 32, dtype=torch.bool).tril()
    plain.load_state_dict(model.state_dict())
    cc.reset()
    compiled = cc.compile(model, options={"strict": True})
    generator = torch.Generator().manual_seed(0)
    for length in range(4, 24):
        tokens, following = torch.randint(0, VOCABULARY, (2, 2, length), generator=generator)
        got, want = compiled(tokens, following), plain(tokens, following)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
        for ours, theirs in zip(
            torch.autograd.grad(got, list(model.parameters())),
            torch.autograd.grad(want, list(plain.parameters())),
            strict=True,
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert cc.stats().fallbacks == 0
    assert cc.stats().graphs <= 2
