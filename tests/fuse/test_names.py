"""Kernels are named after what they do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from compiler_core.fuse.fresh import Names
from compiler_core.fuse.names import with_final_names

X = torch.randn(8, 16)

NAMES = {
    "add_0": lambda x: x + 1,
    "mul_tanh_0": lambda x: torch.tanh(x * 2),
    "copy_0": lambda x: x.t().contiguous(),
    "max_sum_exp_div_0": lambda x: F.softmax(x, -1),
    "sum_exp_tanh_rsqrt_0": lambda x: (torch.exp(-x) + torch.tanh(x) * torch.rsqrt(x)).sum(1),
}


@pytest.mark.parametrize("name", NAMES)
def test_kernel_name(fusing: SimpleNamespace, name: str) -> None:
    assert list(fusing.call(NAMES[name], X).fused.kernels) == [name]


def test_kernels_are_numbered_in_order(fusing: SimpleNamespace) -> None:
    w = torch.randn(16, 16)
    fused = fusing.call(lambda x, w: torch.tanh(torch.exp(torch.tanh(x) @ w) @ w), X, w).fused
    assert list(fused.kernels) == ["tanh_0", "exp_1", "tanh_2"]
    assert [item.name for item in fused.program.body if item.name in fused.kernels] == list(
        fused.kernels
    )


def test_axes_have_short_names(fusing: SimpleNamespace) -> None:
    (nest,) = fusing.call(lambda x: x.sum(1), X).fused.program.body
    assert [axis.name for axis in nest.axes] == ["i0"]


def test_a_name_that_a_buffer_has_is_left_to_it(fusing: SimpleNamespace) -> None:
    (nest,) = fusing.call(lambda x: x.sum(1), X).fused.program.body
    (again,) = with_final_names([nest], Names([]), ["i0", "r0", "sum_0"])
    assert again.name == "sum_0_" and [axis.name for axis in again.axes] == ["i0_"]


def test_the_first_copy_gets_the_old_name_back() -> None:
    names = Names({"x", "x_1", "y"})
    first, second = names.fresh("x"), names.fresh("x")
    assert len({"x", "x_1", "y", first, second}) == 5
    assert names.restored([first, "y", second]) == {first: "x", "y": "y", second: "x_2"}
    assert names.restored(["x", second]) == {"x": "x", second: "x_2"}


def test_a_copy_of_a_copy_knows_its_root() -> None:
    names = Names({"x"})
    copy = names.fresh(names.fresh("x"))
    assert names.root(copy) == "x"
    assert names.restored([copy]) == {copy: "x"}
