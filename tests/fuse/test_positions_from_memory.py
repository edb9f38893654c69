"""Positions that lie in tensors: what joins them, what must not, and the order around sums in memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from compiler_core.ir.loop import Nest, Place, Store
from compiler_core.ir.text import print_program

aten = torch.ops.aten
W, AT = torch.randn(9, 8, dtype=torch.float64), torch.tensor([3, 0, 3, 8, 1, 3])


def texts(case: SimpleNamespace) -> str:
    return print_program(case.fused.program)


def test_a_checked_read_joins_its_readers(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda w, i: F.layer_norm(F.embedding(i, w) * 2, (8,)), W, AT)
    assert case.kernels == ["row"]
    assert texts(case).count("= place ") == 1
    case.check(W, AT)


def test_the_check_stays_outside_the_loop_that_does_not_move_it(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda w, i: F.layer_norm(F.embedding(i, w), (8,)), W, AT)
    (nest,) = (item for item in case.fused.program.body if isinstance(item, Nest))
    assert any(isinstance(s, Place) for s in nest.body)


@pytest.mark.parametrize("part", [lambda e: e[:2] * 2, lambda e: torch.cat([e[:, :4], e], 1) + 1])
def test_a_reader_of_a_part_does_not_take_the_check_along(fusing: SimpleNamespace, part) -> None:
    case = fusing.call(lambda w, i: part(F.embedding(i, w)), W, AT)
    assert "would skip a bounds check" in case.categories()
    case.check(W, AT)
    with pytest.raises(IndexError, match="index out of range in self"):
        case.fused.run(W, torch.tensor([3, 0, 3, 8, 1, 99]))


def test_a_read_at_positions_goes_through_its_cheap_producer(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda w, i: F.embedding(i, w + 1) * 2, W, AT)
    assert len(case.kernels) == 1
    case.check(W, AT)


def test_a_reduction_is_not_run_again_at_each_position(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda w, i: (w.sum(1))[i] * 2, W, AT)
    assert len(case.kernels) == 2 and case.categories() & {
        "would recompute a reduction", "reads another position of the producer"
    }  # fmt: skip
    case.check(W, AT)


def sums(w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    grad = (F.embedding(i, w) * 3).tanh()
    return aten.embedding_dense_backward(grad, i, 9, -1, False)


def test_sums_take_their_terms_from_registers(fusing: SimpleNamespace) -> None:
    case = fusing.call(sums, W, AT)
    assert len(case.kernels) == 2  # zeros, sums
    last = case.fused.program.body[-1]
    assert isinstance(last, Nest)
    assert [s.adds for s in last.body if isinstance(s, Store)] == [True]
    case.check(W, AT)


def test_rows_do_not_run_one_after_the_other_for_sums(fusing: SimpleNamespace) -> None:
    case = fusing.call(lambda w, i: aten.index_add(w, 0, i, F.embedding(i, w).softmax(1)), W, AT)
    assert "too little parallel work" in case.categories()
    case.check(W, AT)


def test_readers_on_both_sides_of_the_sums_keep_their_order(fusing: SimpleNamespace) -> None:
    def both(w: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        start = w.exp()
        after = start.index_add(0, i, start[: len(i)] * 2)
        return start.sum(1), after * 2, after.sum(0), start + after

    for target in ("cpu", "cuda:90"):
        fusing.call(both, W, AT, target=target).check(W, AT)


def test_sums_twice_into_one_result(fusing: SimpleNamespace) -> None:
    def twice(w: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        once = w.index_add(0, i, w[: len(i)])
        return once.index_add(0, i - i.min(), once[: len(i)].cos()) * 2

    fusing.call(twice, W, AT).check(W, AT)
