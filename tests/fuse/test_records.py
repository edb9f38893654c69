"""Every candidate pair leaves one record, with a category and a reason."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional as F

X = torch.randn(8, 16, dtype=torch.float64)


def block(x: Any, w: Any) -> Any:
    y = F.gelu(F.layer_norm(x, (16,)) @ w)
    return F.softmax(y, -1).sum(0), y


W = torch.randn(16, 16, dtype=torch.float64)


def test_each_record_says_what_why_and_how_much(fusing: SimpleNamespace) -> None:
    case = fusing.call(block, X, W)
    assert case.fusions
    lowered = {item.name for item in case.lowered.program.body}
    for decision in case.fusions:
        assert decision.outcome in ("fused", "refused")
        assert (decision.outcome == "fused") == (decision.data["category"] == "fused")
        assert decision.reason
        assert len(decision.about) == 2
        assert {handle.removeprefix("lower:forward/") for handle in decision.about} <= lowered
        if decision.outcome == "fused":
            assert isinstance(decision.data["bytes"], int)


def test_no_final_pair_is_recorded_twice(fusing: SimpleNamespace) -> None:
    case = fusing.call(block, X, W)
    pairs = Counter((frozenset(d.data["first"]), frozenset(d.data["second"])) for d in case.fusions)
    assert set(pairs.values()) == {1}


def test_refusals_are_between_kernels_that_are_left(fusing: SimpleNamespace) -> None:
    case = fusing.call(block, X, W)
    kernels = {frozenset(kernel.members) for kernel in case.fused.kernels.values()}
    refused = [d for d in case.fusions if d.outcome == "refused"]
    assert refused
    for decision in refused:
        assert {frozenset(decision.data["first"]), frozenset(decision.data["second"])} <= kernels


def test_merges_and_kernels_add_up(fusing: SimpleNamespace) -> None:
    """A chain, where each merge makes one nest less."""
    case = fusing.call(lambda x: torch.exp(torch.tanh(x * 2)) + 1, X)
    assert [d.outcome for d in case.fusions] == ["fused"] * 3
    assert sum(d.data["bytes"] for d in case.fusions) == 3 * 2 * X.numel() * 8


def test_a_library_call_between(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x, w: (lambda y: y + y @ w)(x * 2), X, W)
    (refused,) = [d for d in case.fusions if d.outcome == "refused"]
    assert refused.data["category"] == "dependency through a library call"
    assert "aten.mm.default" in refused.reason


def test_reductions_are_not_computed_again(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: (x * x.sum(1, keepdim=True)).sum(0), torch.randn(32, 16))
    assert case.categories() == {"would recompute a reduction"}


def test_other_positions(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: (lambda s: s[None, :] * s[:, None])(x.sum(1)), torch.randn(8, 8))
    assert case.categories() == {"reads another position of the producer"}


def test_other_shapes(fusing: SimpleNamespace) -> None:
    assert fusing.call(lambda x: (x.sum(0), x.sum(1)), X).categories() == {
        "different iteration space"
    }


def test_a_cycle(fusing: SimpleNamespace) -> None:
    """x*2 and the sum of its columns cannot meet the reader of both: the sum stands between."""
    case = fusing.call(
        lambda x: (lambda y: (y, y - y.flip(1).sum(0)[:, None].sum(0)))(torch.exp(x)),
        torch.randn(8, 8),
    )
    assert "cycle" in case.categories()


def test_too_many_buffers(fusing: SimpleNamespace) -> None:
    inputs = [torch.randn(4) for _ in range(60)]

    def total(*xs: Any) -> Any:
        result = xs[0]
        for x in xs[1:]:
            result = result + x
        return result

    case = fusing.call(total, *inputs)
    assert case.categories() == {"too many buffers"}
    assert len(case.kernels) == 2
    case.check(*inputs, rtol=1e-5)


def test_forbidden_pairs_stay_apart(fusing: SimpleNamespace) -> None:
    pair = frozenset({"mul", "tanh"})
    case = fusing.call(lambda x: torch.exp(torch.tanh(x * 2)), X, forbid=frozenset({pair}))
    assert not any(pair <= set(kernel.members) for kernel in case.fused.kernels.values())
    assert case.categories() == {"forbidden"}
    case.check(X)


def test_symbolic_sizes_have_no_exact_bytes(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: torch.exp(x * 2), X, dynamic=True)
    (decision,) = case.fusions
    assert decision.data["bytes"] is None
    assert decision.data["estimate"] > 0


def test_each_merge_is_a_rewrite(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: torch.exp(torch.tanh(x * 2)), X)
    rewrites = case.context.recorder.here.rewrites
    assert len(rewrites) == 2
    for rewrite in rewrites:
        assert (rewrite.pass_name, rewrite.rule) == ("fuse", "merge producer into consumer")
        assert rewrite.where.startswith("compiler_core/fuse/merge.py:")
        assert rewrite.before.count("nest ") == 2
        assert rewrite.after.count("nest ") == 1
