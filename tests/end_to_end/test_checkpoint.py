"""`torch.utils.checkpoint` in captured code: eager's values and gradients, one mask for both passes, little saved."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from agreement import STRICT, compiling
from torch import nn
from torch.utils.checkpoint import checkpoint

import compiler_core as cc

T = torch.Tensor
torch.manual_seed(1)
FIRST, SECOND = nn.Linear(16, 16), nn.Linear(16, 16)
SEEN: list[int] = []


def block(t: T) -> T:
    return F.dropout(SECOND(F.gelu(FIRST(t))), 0.5, True) * 2


def once(x: T) -> T:
    return checkpoint(block, x.sin(), use_reentrant=False).cos()


def twice(x: T) -> T:
    inner = checkpoint(block, x, use_reentrant=False)
    return checkpoint(block, inner, use_reentrant=False)


def nested(x: T) -> T:
    def outer(t: T) -> T:
        return checkpoint(block, t * 2, use_reentrant=False).sin()

    return checkpoint(outer, x, use_reentrant=False)


def with_keywords(x: T) -> T:
    return checkpoint(lambda a, b: block(a) * b, x, use_reentrant=False, early_stop=False, b=3)


def of_a_method(x: T) -> T:
    return functools.partial(checkpoint, use_reentrant=False)(FIRST.__call__, x * 2)


def reentrant(x: T) -> T:
    return checkpoint(block, x.sin(), use_reentrant=True).cos()


def draws_again(x: T) -> T:
    return checkpoint(block, x.sin(), use_reentrant=False, preserve_rng_state=False).cos()


def counts(x: T) -> T:
    def inside(t: T) -> T:
        SEEN.append(len(SEEN))
        return t.sin() * 2

    return checkpoint(inside, x * 2, use_reentrant=False)


def writes(x: T) -> T:
    y = x * 2

    def inside(t: T) -> T:
        y.add_(1)
        return t.sin() * 2

    return checkpoint(inside, x, use_reentrant=False) + y


def without_gradients(x: T) -> T:
    with torch.no_grad():
        y = checkpoint(block, x, use_reentrant=False)
    return y * x


def run(fn: Callable[[T], T]) -> list[Any]:
    seen: list[Any] = []
    SEEN.clear()
    torch.manual_seed(7)
    for number in range(3):
        generator = torch.Generator().manual_seed(number)
        x = torch.rand(8, 16, generator=generator).requires_grad_()
        FIRST.zero_grad(), SECOND.zero_grad()
        y = fn(x)
        torch.rand(3)  # the generator moves on before the backward pass
        (y * y).sum().backward()
        gradients = [x.grad, FIRST.weight.grad, SECOND.weight.grad]
        seen.append([y.detach(), *gradients, torch.get_rng_state(), len(SEEN)])
    return seen


def agree(fn: Callable[[T], T], graphs: int | None, breaks: int) -> None:
    eager = run(fn)
    with compiling(graphs, breaks=breaks):
        ours = run(cc.compile(fn, options=STRICT))
    for a, b in zip(ours, eager):
        assert a[-1] == b[-1] and torch.equal(a[-2], b[-2])
        for mine, other in zip(a[:-2], b[:-2], strict=True):
            assert (mine is None) == (other is None)
            if mine is not None:
                torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("fn", [once, twice, nested, with_keywords, of_a_method, without_gradients])
def test_it_is_part_of_the_graph(fn: Callable[[T], T]) -> None:
    agree(fn, graphs=1, breaks=0)


@pytest.mark.parametrize("fn", [reentrant, draws_again, counts, writes])
def test_what_a_second_run_would_do_besides_is_left_to_eager(fn: Callable[[T], T]) -> None:
    agree(fn, graphs=None, breaks=1)


def test_only_inputs_and_masks_are_saved_and_each_record_names_the_line() -> None:
    x = torch.rand(8, 16, requires_grad=True)
    with cc.record(explore=True) as recorder:
        cc.compile(once, options=STRICT)(x)
    (compilation,) = recorder.compilations.values()
    partitioned = compilation.partitioned
    saved = {s.node for s in partitioned.saved}
    products = [n.name for n in partitioned.forward.graph.nodes if "addmm" in str(n.target)]
    assert len(products) == 2 and not saved & set(products)
    again = [n for n in partitioned.backward.graph.nodes if n.name == products[0]]
    assert len(again) == 1 and again[0].op == "call_function"
    (frame,) = recorder.recording.frames
    reasons = [d.reason for d in frame.versions[0].decisions if d.kind == "recompute"]
    line = once.__code__.co_firstlineno + 1
    assert f"the checkpoint at {__file__}:{line} asks for it" in reasons


def test_less_is_saved_than_without() -> None:
    def kept(fn: Callable[[T], T]) -> int:
        with cc.record(explore=True) as recorder:
            cc.compile(fn, options=STRICT)(torch.rand(64, 16, requires_grad=True))
        (compilation,) = recorder.compilations.values()
        nodes = {n.name: n for n in compilation.joint.graph.graph.nodes}
        records = compilation.partitioned.saved
        return sum(s.bytes or 0 for s in records if not nodes[s.node].meta.get("is_parameter"))

    def plain(x: T) -> T:
        return block(x.sin()).cos()

    assert kept(once) < kept(plain)
