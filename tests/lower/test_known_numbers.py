"""A result that is one number everywhere is that number to its readers: they do not load it, and say where it came from."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compiler_core.ir.loop import Constant, Load, Nest


def statements(made: Any, name: str) -> list[Any]:
    (nest,) = (item for item in made.program.body if isinstance(item, Nest) and item.name == name)
    return list(nest.body)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
def test_readers_of_a_number_load_nothing(kit: Any, dtype: torch.dtype) -> None:
    value = 3.1 if dtype.is_floating_point else 3

    def call(x: torch.Tensor) -> torch.Tensor:
        return x * torch.full((2, 1), value, dtype=dtype).expand(2, 5)

    made = kit.check(call, torch.randn(2, 5).to(dtype), again=[(torch.ones(2, 5, dtype=dtype),)])
    body = statements(made, "mul")
    assert len([s for s in body if isinstance(s, Load)]) == 1
    (number,) = (s for s in body if isinstance(s, Constant))
    assert number.value == torch.tensor(value, dtype=dtype).item()
    assert {"forward:full", "forward:expand", "forward:mul"} <= number.origins


def test_a_number_that_is_returned_or_read_by_a_library_is_stored(kit: Any) -> None:
    made = kit.check(
        lambda x: (torch.zeros(3), x @ torch.ones(5, 2), torch.ones(5, 2) + 1), torch.randn(4, 5)
    )
    assert kit.calls(made) == ["aten.mm.default"]


def test_masked_loads_of_a_number_give_it_only_where_the_mask_holds(kit: Any) -> None:
    made = kit.check(lambda x: torch.cat([torch.ones(2, 3), x]), torch.randn(2, 3))
    assert len([s for s in statements(made, "cat") if isinstance(s, Load)]) == 2


def test_positions_and_sizes_are_no_numbers(kit: Any) -> None:
    made = kit.check(lambda x: x + torch.arange(5) + torch.eye(5)[0], torch.randn(2, 5))
    assert len([s for s in statements(made, "add") if isinstance(s, Load)]) == 2
