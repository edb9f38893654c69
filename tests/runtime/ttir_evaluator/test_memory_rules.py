"""What the evaluator refuses: accesses outside, races between programs, use of what was not loaded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler_core.errors import InternalError
from compiler_core.ir.dtypes import DTYPES

COPY = """\
def kernel(x, y, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    v = tl.load(x + i, mask=i < 20, other=0.0)
    tl.store(y + i, v, mask=i < n)
"""


def test_masks_keep_accesses_inside(evaluated: Any) -> None:
    x, y = torch.randn(20), torch.zeros(20)
    evaluated(COPY, ["*f32", "*f32", "i64"], [x, y, 20], (2,))
    assert torch.equal(x, y)


def test_store_outside_is_refused(evaluated: Any) -> None:
    x, y = torch.randn(20), torch.zeros(20)
    with pytest.raises(InternalError, match=r"CC621.*offset 20 of y is not in \[0, 20\)"):
        evaluated(COPY, ["*f32", "*f32", "i64"], [x, y, 21], (2,))


def test_load_outside_is_refused(evaluated: Any) -> None:
    with pytest.raises(InternalError, match=r"CC621.*offset 19 of x is not in \[0, 19\)"):
        evaluated(COPY, ["*f32", "*f32", "i64"], [torch.randn(19), torch.zeros(20), 20], (2,))


def test_a_view_ends_where_it_ends(evaluated: Any) -> None:
    """The memory behind a view belongs to somebody else, although it is there."""
    memory = torch.zeros(64)
    with pytest.raises(InternalError, match="CC621"):
        evaluated(COPY, ["*f32", "*f32", "i64"], [torch.randn(20), memory[:16], 20], (2,))


RACE = """\
def kernel(y, stride):
    pid = tl.program_id(0)
    i = pid * stride + tl.arange(0, 16)
    tl.store(y + i, (i * 0 + pid).to(tl.float32))
"""


def test_programs_that_store_to_their_own_elements(evaluated: Any) -> None:
    y = torch.zeros(32)
    evaluated(RACE, ["*f32", "i64"], [y, 16], (2,))
    assert y.tolist() == [0.0] * 16 + [1.0] * 16


@pytest.mark.parametrize("chunk", [1, 1 << 22])
def test_racing_stores_are_refused(evaluated: Any, chunk: int) -> None:
    """Whether the programs run in one step or one after another."""
    with pytest.raises(InternalError, match="CC622.*element 8 of y: another program stores it"):
        evaluated(RACE, ["*f32", "i64"], [torch.zeros(32), 8], (2,), chunk=chunk)


def test_equal_stores_of_two_programs_are_refused_too(evaluated: Any) -> None:
    text = "def kernel(y):\n    tl.store(y + tl.arange(0, 16), tl.zeros([16], tl.float32))\n"
    with pytest.raises(InternalError, match="CC622"):
        evaluated(text, ["*f32"], [torch.zeros(16)], (2,))


def test_lanes_of_one_program_that_disagree_are_refused(evaluated: Any) -> None:
    text = "def kernel(y):\n    i = tl.arange(0, 16)\n    tl.store(y + i // 2, i.to(tl.float32))\n"
    with pytest.raises(InternalError, match="CC622.*two lanes"):
        evaluated(text, ["*f32"], [torch.zeros(16)])


SHIFT = """\
def kernel(y, n, by):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    v = tl.load(y + i + by, mask=i + by < n, other=0.0)
    tl.store(y + i, v, mask=i < n)
"""


@pytest.mark.parametrize("chunk", [1, 1 << 22])
def test_reading_what_another_program_stores_is_refused(evaluated: Any, chunk: int) -> None:
    with pytest.raises(InternalError, match="CC622.*another program"):
        evaluated(SHIFT, ["*f32", "i64", "i64"], [torch.randn(32), 32, 1], (2,), chunk=chunk)


def test_a_program_may_read_what_it_stores(evaluated: Any) -> None:
    y = torch.randn(32)
    before = y.clone()
    evaluated(SHIFT, ["*f32", "i64", "i64"], [y, 32, 0], (2,))
    assert torch.equal(y, before)


def test_arguments_that_share_memory_are_one_memory(evaluated: Any) -> None:
    text = """\
def kernel(x, y):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(y + i, tl.load(x + i))
"""
    memory = torch.randn(48)
    with pytest.raises(InternalError, match="CC622"):
        evaluated(text, ["*f32", "*f32"], [memory[:32], memory[16:]], (2,))
    evaluated(text, ["*f32", "*f32"], [memory[:32], memory[:32]], (2,))


def test_what_a_mask_left_out_shows_when_it_is_used(evaluated: Any) -> None:
    text = """\
def kernel(x, y):
    i = tl.arange(0, 16)
    v = tl.load(x + i, mask=i < 3)
    tl.store(y, tl.sum(v, 0))
"""
    y = torch.zeros(1)
    evaluated(text, ["*f32", "*f32"], [torch.ones(3), y])
    assert y.isnan().all()


def test_alignment_that_the_kernel_was_compiled_for() -> None:
    from compiler_core.runtime.ttir_evaluator import evaluate, parse

    text = """
  tt.func public @k(%y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %one = arith.constant 1.000000e+00 : f32
    tt.store %y, %one : !tt.ptr<f32>
    tt.return
  }
"""
    y = torch.zeros(8)
    evaluate(parse(text), [y], (1,))
    assert y[0] == 1
    with pytest.raises(InternalError, match="CC621.*not aligned to 16 bytes"):
        evaluate(parse(text), [y[1:]], (1,))


ADD = """\
def kernel(y, x, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.atomic_add(y + i // 4, tl.load(x + i, mask=i < n), mask=i < n, sem="relaxed")
"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "i64", "i32"])
@pytest.mark.parametrize("chunk", [1, 1 << 22])
def test_atomic_additions_meet(evaluated: Any, dtype: str, chunk: int) -> None:
    x = torch.arange(30).to(DTYPES[dtype].torch)
    y = torch.ones(8, dtype=x.dtype)
    evaluated(ADD, [f"*{dtype}", f"*{dtype}", "i64"], [y, x, 30], (2,), chunk=chunk)
    padded = torch.cat([x, torch.zeros(2, dtype=x.dtype)])
    assert torch.equal(y, 1 + padded.reshape(8, 4).sum(1).to(x.dtype))


@pytest.mark.parametrize("chunk", [1, 1 << 22])
@pytest.mark.parametrize("other", ["tl.store(y + i, i * 0.0)", "tl.store(x + i, tl.load(y + i))"])
def test_atomic_additions_meet_nothing_else(evaluated: Any, other: str, chunk: int) -> None:
    text = ADD + "    " + other + "\n"
    with pytest.raises(InternalError, match="CC622"):
        evaluated(
            text, ["*f32", "*f32", "i64"], [torch.zeros(32), torch.zeros(32), 32], (2,), chunk=chunk
        )


def test_an_atomic_addition_outside_is_refused(evaluated: Any) -> None:
    with pytest.raises(InternalError, match=r"CC621.*offset 7 of y is not in \[0, 7\)"):
        evaluated(ADD, ["*f32", "*f32", "i64"], [torch.zeros(7), torch.zeros(32), 32], (2,))


def test_assertions_hold_or_raise(evaluated: Any) -> None:
    text = "def kernel(y, n):\n    i = tl.arange(0, 16)\n"
    text += '    tl.device_assert(i < n, "too far", mask=i < 12)\n    tl.store(y + i, i)\n'
    evaluated(text, ["*i32", "i64"], [torch.zeros(16, dtype=torch.int32), 12], (1,))
    with pytest.raises(IndexError, match="too far"):
        evaluated(text, ["*i32", "i64"], [torch.zeros(16, dtype=torch.int32), 11], (1,))
