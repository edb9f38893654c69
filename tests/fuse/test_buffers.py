"""Which buffers are left, how long they live, whose memory they take, in which order kernels run."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from compiler_core.fuse.accesses import read_buffers, written_buffers
from compiler_core.fuse.viewed import viewed_buffers
from compiler_core.ir.loop import Nest

X = torch.randn(8, 16, dtype=torch.float64)
W = torch.randn(16, 16, dtype=torch.float64)


def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.tanh(x @ w) * 2
    return x


def test_a_temp_that_nobody_reads_is_gone(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x: torch.exp(x * 2), X)
    assert [b.role for b in case.lowered.program.buffers.values()] == ["in", "temp", "out"]
    assert [b.role for b in case.fused.program.buffers.values()] == ["in", "out"]


def test_what_a_call_or_the_caller_sees_is_stored(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda x, w: (lambda y: (y[1:], torch.exp(y) @ w))(x * 2), X, W)
    written = {
        b
        for item in case.fused.program.body
        if isinstance(item, Nest)
        for b in written_buffers(item)
    }
    seen = {
        b
        for item in case.fused.program.body
        if not isinstance(item, Nest)
        for b in viewed_buffers(item.args)
    }
    returned = case.fused.program.outputs[0].buffer
    assert returned in written
    assert seen - {"arg0_1", "arg1_1"} <= written
    case.check(X, W)


def test_a_kernel_never_loads_what_it_stores(fusing: SimpleNamespace) -> None:
    for item in fusing.call(chain, X, W).fused.program.body:
        if isinstance(item, Nest):
            assert set(read_buffers(item)).isdisjoint(written_buffers(item))


def test_dead_memory_is_taken(fusing: SimpleNamespace) -> None:
    case = fusing.call(chain, X, W)
    assert case.fused.reuse
    taken = list(case.fused.reuse.values())
    assert len(taken) == len(set(taken)), "two buffers took the same memory"
    records = [d for d in case.decisions if d.kind == "reuse"]
    assert len(records) == len(taken)
    assert all(d.data["bytes"] == X.numel() * 8 for d in records)
    case.check(X, W)


def test_memory_is_dead_before_it_is_taken(fusing: SimpleNamespace) -> None:
    fused = fusing.call(chain, X, W).fused
    made = {
        name: position
        for position, item in enumerate(fused.program.body)
        for name in (written_buffers(item) if isinstance(item, Nest) else item.outputs)
    }
    for new, dead in fused.reuse.items():
        assert fused.last_use[dead] < made[new]
        old, young = fused.program.buffers[dead], fused.program.buffers[new]
        assert (old.role, young.role, old.dtype) == ("temp", "temp", young.dtype)


def test_last_use_is_the_last_reader(fusing: SimpleNamespace) -> None:
    fused = fusing.call(chain, X, W).fused
    assert set(fused.program.inputs) <= fused.last_use.keys(), "arguments can be freed too"
    for name, last in fused.last_use.items():
        readers = [
            position
            for position, item in enumerate(fused.program.body)
            if name in (read_buffers(item) if isinstance(item, Nest) else viewed_buffers(item.args))
        ]
        assert not readers or max(readers) == last
    assert all(name not in fused.last_use for name in fused.program.outputs)


def test_random_calls_keep_their_order(fusing: SimpleNamespace) -> None:
    """The second draw could be freed first, but the generator would give it the first numbers."""

    def draws(x: torch.Tensor) -> torch.Tensor:
        big = torch.rand_like(x.repeat(8, 1)).sum(0)
        return torch.rand_like(x).sum(0) + big

    targets = [
        i.target for i in fusing.call(draws, X).lowered.program.body if not isinstance(i, Nest)
    ]
    case = fusing.call(draws, X)
    order = [i.name for i in case.fused.program.body if not isinstance(i, Nest)]
    before = [i.name for i in case.lowered.program.body if not isinstance(i, Nest)]
    assert len(targets) >= 2
    assert order == before


def test_memory_breaks_ties_in_the_order(fusing: SimpleNamespace) -> None:
    """Both products first would keep two large results alive; each is better reduced at once."""

    def wide(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        a, b, c = x @ w, (x + 1) @ w, (x + 2) @ w
        return torch.cat([a.sum(1), b.sum(1), c.sum(1)])

    x, w = torch.randn(8, 16, dtype=torch.float64), torch.randn(16, 512, dtype=torch.float64)
    case = fusing.call(wide, x, w)
    alive = peak = 0
    program = case.fused.program
    for position, item in enumerate(program.body):
        made = written_buffers(item) if isinstance(item, Nest) else item.outputs
        alive += sum(program.buffers[name].shape[-1].constant == 512 for name in made)
        peak = max(peak, alive)
        alive -= sum(
            last == position
            and program.buffers[name].role == "temp"
            and program.buffers[name].shape[-1] == 512
            for name, last in case.fused.last_use.items()
        )
    assert peak == 1
    case.check(x, w)
