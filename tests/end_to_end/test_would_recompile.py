"""`would_recompile` says what a call would do, and does nothing."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import compiler_core as cc


def f(x, k=2, *rest, scale=1.0, **named):
    return x * k + scale + len(rest) + len(named)


@pytest.mark.parametrize("backend", ["cutaway", "eager"])
def test_prediction_is_what_happens(backend):
    compiled = cc.compile(f, backend=backend, options={"strict": True})
    x = torch.rand(3)
    calls = [
        ((x,), {}),
        ((x, 3), {}),
        ((x,), {"scale": 0.5}),
        ((x, 2, 4), {}),
        ((x,), {"z": 1}),
        ((x.double(),), {}),
    ]
    for args, kwargs in (*calls, *calls):
        before = cc.stats()
        prediction = compiled.would_recompile(*args, **kwargs)
        assert cc.stats() == before
        compiled(*args, **kwargs)
        assert bool(prediction) == (cc.stats().graphs > before.graphs), prediction


def test_it_names_guard_line_and_values_of_the_closest_version():
    compiled = cc.compile(f, backend="eager")
    x = torch.rand(3)
    assert "nothing was compiled yet" in str(compiled.would_recompile(x))
    compiled(x)
    compiled(torch.rand(2, 3).double(), 7, 1)
    prediction = compiled.would_recompile(x, 3)
    assert [failure.row.source for failure in prediction.failures] == ["L['k']"]
    assert f"k is now 3, was 2 ({__file__}:{f.__code__.co_firstlineno + 1})" in str(prediction)
    assert not compiled.would_recompile(x)
    assert "runs a compiled version (2 in all)" in str(compiled.would_recompile(x))


def test_arguments_that_the_function_does_not_take():
    with pytest.raises(TypeError, match="missing a required argument"):
        cc.compile(f).would_recompile()


def test_methods_closures_and_modules():
    class Thing:
        k = 2

        def method(self, x):
            return x * self.k

    thing, x, factor = Thing(), torch.rand(3), 2

    def inner(x):
        return x * factor

    for fn, change in ((thing.method, lambda: setattr(thing, "k", 3)), (inner, None)):
        compiled = cc.compile(fn, backend="eager")
        compiled(x)
        assert not compiled.would_recompile(x)
        if change:
            change()
        else:
            factor = 5
        assert compiled.would_recompile(x)

    module = cc.compile(nn.Linear(3, 3), backend="eager")
    module(x)
    assert not module.would_recompile(x)
    module.requires_grad_(False)
    assert "requires_grad" in str(module.would_recompile(x))


def test_at_the_limit_it_runs_in_eager():
    compiled = cc.compile(f, backend="eager", options={"recompile_limit": 2})
    x = torch.rand(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in "abc":
            compiled(x, scale=torch.tensor(1.0), **{text: 1})
    prediction = compiled.would_recompile(x, d=1)
    assert not prediction
    assert "limit" in str(prediction)
    assert prediction.failures
