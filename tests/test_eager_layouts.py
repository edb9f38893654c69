"""The strides of fake results are those of eager's kernels, operator by operator and layout by layout.

Nothing is compiled here: `end_to_end/test_strides_of_eager.py` shows that compiled code lays out what is
promised. All strides count, those of axes of size one and of tensors without elements too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from compiler_core.eager_layouts import RULES, EagerLayouts
from compiler_core.lower.pointwise import ROWS

sys.path.insert(0, str(Path(__file__).parent / "lower"))
from row_cases import call_of, cases  # noqa: E402

aten = torch.ops.aten


def made(*shape):
    return torch.rand(shape) + 0.5


LAYOUTS = {
    "rows": lambda: made(3, 4),
    "columns": lambda: made(4, 3).t(),
    "three axes turned": lambda: made(2, 3, 4).permute(2, 0, 1),
    "channels last": lambda: made(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "one channel": lambda: made(2, 1, 4, 5).contiguous(memory_format=torch.channels_last),
    "expanded": lambda: made(3, 1, 2).transpose(0, 2).expand(2, 4, 3),
    "every other": lambda: made(8, 6).t()[::2, ::2],
    "odd stride of one": lambda: made(3, 4).as_strided((3, 1, 4), (4, 7, 1)),
    "one in the middle, turned": lambda: made(3, 4).as_strided((4, 1, 3), (1, 99, 4)),
    "one element": lambda: made(9).as_strided((1, 1), (5, 3)),
    "no elements": lambda: made(3, 0, 4).permute(2, 0, 1),
    "no axes": lambda: made(),
}

# Second operands for those of four axes: other layouts, fewer axes, other types.
SECOND = {
    "rows": lambda: made(2, 3, 4, 5),
    "reversed": lambda: made(5, 4, 3, 2).permute(3, 2, 1, 0),
    "expanded": lambda: made(2, 3, 1, 1).expand(2, 3, 4, 5),
    "expanded integers": lambda: (made(2, 1, 1, 5) * 3).int().expand(2, 3, 4, 5),
    "fewer axes": lambda: made(4, 3).t().reshape(3, 4, 1),
    "no axes": lambda: made(),
}


def strides_of(results: Any) -> list[Any]:
    return [r.stride() for r in pytree.tree_leaves(results) if isinstance(r, torch.Tensor)]


def compare(call: Any, given: list[torch.Tensor], where: str) -> bool:
    """Whether eager runs this; then the strides must be equal."""
    try:
        eager = strides_of(call(*given))
    except (RuntimeError, IndexError, ValueError):
        return False
    with EagerLayouts() as mode:
        fake = strides_of(call(*map(mode.from_tensor, given)))
    assert fake == eager, where
    return True


@pytest.mark.parametrize("op", ROWS, ids=str)
def test_rows_of_the_element_wise_table(op):
    names = [a.name for a in op._schema.arguments if str(a.type) in ("Tensor", "Optional[Tensor]")]
    call = call_of(op, names, {k: v for k, v in cases(op)[0].items() if k not in names})
    run = 0
    for name, layout in LAYOUTS.items():
        given = [_typed(op, n, layout()) for n in names]
        run += compare(call, given, f"{op}, {name}")
    for name, second in SECOND.items() if len(names) > 1 else ():
        last = LAYOUTS["channels last"]
        for pair in ((last, second), (second, last)):
            given = [_typed(op, n, pair[k % 2]()) for k, n in enumerate(names)]
            run += compare(call, given, f"{op}, channels last and {name}")
    assert run


def _typed(op: Any, name: str, value: torch.Tensor) -> torch.Tensor:
    if name in ("condition", "mask"):
        return value > 1
    return value.int() if "bitwise" in str(op) or "shift" in str(op) else value


FUNCTIONS = {
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmax": lambda x: x.softmax(0),
    "sums kept": lambda x: (x.sum(0, keepdim=True), x.sum(tuple(range(x.ndim)), keepdim=True)),
    "reductions": lambda x: (x.max(0), x.argmax(-1, keepdim=True), x.var(0), x.logsumexp(0)),
    "sort": lambda x: x.sort(0),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: (x.roll(1, 0), x.roll(2, -1), x.roll(3)) if x.numel() else x * 2,
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0]), 1.0),
    "index_put": lambda x: x.index_put((torch.tensor([0]),), torch.tensor(1.0)),
    "cat": lambda x: (torch.cat([x, x], 0), torch.cat([x, x.contiguous()], -1)),
    "stack": lambda x: torch.stack([x, x], -1),
    "triangles": lambda x: (x.tril(), x.triu()),
    "numbers": lambda x: (2**x, x + 1, 1 - x, x // 2, 2 % x, x > 1, torch.xlogy(2.0, x)),
    "where": lambda x: (torch.where(x > 1, x, 0.0), torch.where(x > 1, 1.0, 0.0)),
    "logsigmoid": torch.nn.functional.logsigmoid,
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    "batch norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "isin": lambda x: torch.isin(x, x.reshape(-1)[:1]),
    "ldexp": lambda x: torch.ldexp(x, torch.tensor(2)),
    "frexp": torch.frexp,
    "like": lambda x: (torch.zeros_like(x), torch.full_like(x, 2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    def with_fakes(*given):  # constants inside are made under the mode, as in a capture
        return FUNCTIONS[name](*given)

    ran = [compare(with_fakes, [make()], f"{name}, {where}") for where, make in LAYOUTS.items()]
    assert sum(ran) > 4


def test_every_rule_is_of_an_operator_that_makes_a_fresh_result():
    for op in RULES:
        assert op._schema.returns[0].alias_info is None, op
