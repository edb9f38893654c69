"""Every statement of a fused program knows the lowered statements that it came from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional as F

from compiler_core.fuse.blocks import walk
from compiler_core.ir.loop import Load, Loop, Nest, Store
from compiler_core.ir.text import statement_handles

X = torch.randn(8, 16, dtype=torch.float64)
W = torch.randn(16, 16, dtype=torch.float64)


def block(x: Any, w: Any) -> Any:
    y = F.gelu(F.layer_norm(x, (16,)) @ w)
    z = F.softmax(torch.cat([y, y.contiguous().clone() * 2], 1), -1)
    return z.sum(0), y


def origins_of(fused: Any) -> dict[str, frozenset[str]]:
    return {
        h: origins
        for h, (_, origins, _) in statement_handles(fused.program, "fuse", "forward").items()
    }


def test_origins_are_items_of_the_lowered_program(fusing: SimpleNamespace) -> None:
    case = fusing.call(block, X, W)
    known = statement_handles(case.lowered.program, "lower", "forward")
    for handle, origins in origins_of(case.fused).items():
        assert origins, handle
        assert origins <= known.keys(), handle


def test_only_stores_that_are_gone_leave_no_trace(fusing: SimpleNamespace) -> None:
    case = fusing.call(block, X, W)
    left = frozenset[str]().union(*origins_of(case.fused).values())
    lost = statement_handles(case.lowered.program, "lower", "forward").keys() - left
    assert lost
    assert all(".store_" in handle for handle in lost), sorted(lost)
    kept = {f".store_{name}" for name in case.fused.program.buffers}
    assert not any(handle.endswith(suffix) for handle in lost for suffix in kept)


def test_the_first_user_takes_the_handle_of_a_load_that_is_gone(fusing: SimpleNamespace) -> None:
    fused = fusing.call(lambda x: torch.exp(x * 2), X).fused
    (nest,) = fused.program.body
    (exp,) = [s for s in nest.body if getattr(s, "op", "") == "exp"]
    assert exp.origins == {"lower:forward/exp.exp_exp", "lower:forward/exp.exp_x"}
    (mul,) = [s for s in nest.body if getattr(s, "op", "") == "mul"]
    assert mul.origins == {"lower:forward/mul.mul_mul"}


def test_equal_loads_become_one_with_both_handles(fusing: SimpleNamespace) -> None:
    fused = fusing.call(lambda x: torch.exp(x) + torch.tanh(x), X).fused
    (nest,) = fused.program.body
    (load,) = [s for s in walk(nest.body) if isinstance(s, Load)]
    assert load.origins == {"lower:forward/exp.exp_x", "lower:forward/tanh.tanh_x"}


def test_a_store_names_its_readers_in_other_kernels(fusing: SimpleNamespace) -> None:
    fused = fusing.call(lambda x, w: (lambda y: y + y @ w)(x * 2), X, W).fused
    first = next(item for item in fused.program.body if isinstance(item, Nest))
    (store,) = [s for s in walk(first.body) if isinstance(s, Store)]
    assert store.origins == {"lower:forward/mul.store_buf_mul", "lower:forward/add.add_x"}


def test_a_loop_is_the_nest_that_it_was(fusing: SimpleNamespace) -> None:
    fused = fusing.call(lambda x: x - x.sum(1, keepdim=True), X).fused
    (nest,) = fused.program.body
    (loop,) = [s for s in nest.body if isinstance(s, Loop)]
    assert loop.origins == {"lower:forward/sub"}
    assert nest.origins == {"lower:forward/sub", "lower:forward/sum_1"}


def test_statements_keep_their_names(fusing: SimpleNamespace) -> None:
    """A reader finds in the kernel what the lowered program called it."""
    fused = fusing.call(lambda x: torch.exp(torch.tanh(x * 2)), X).fused
    (nest,) = fused.program.body
    names = [s.name for s in nest.body if not isinstance(s, Store)]
    assert names == ["mul_x", "mul_c", "mul_mul", "tanh_tanh", "exp_exp"]


def test_members_are_the_nests_inside(fusing: SimpleNamespace) -> None:
    fused = fusing.call(lambda x: F.softmax(x, -1), X).fused
    (kernel,) = fused.kernels.values()
    assert set(kernel.members) == {"amax", "sub", "exp", "sum_1", "div"}
    assert kernel.name == "max_sum_exp_div_0"
    assert (kernel.reads, kernel.writes) == (("arg0_1",), ("buf_div",))
