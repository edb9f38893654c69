"""One lowering, several batch sizes: dimension 0 of every tensor is a symbol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)  # fmt: skip

from compiler_core.errors import InternalError
from compiler_core.ir.index import Sym

PROGRAMS: dict[str, Callable[..., Any]] = {
    "pointwise": lambda x, y: (x + y).relu() * 2,
    "broadcast": lambda x, y: x + y[:1],
    "rows": lambda x, y: F.layer_norm(x, [6]).softmax(-1) + y,
    "columns": lambda x, y: (x.mean(0), y.sum(0, keepdim=True), (x * y).var(0), x.softmax(0)),
    "all": lambda x, y: (x.sum(), (x * y).mean(), x.argmax(), x.amax([0, 1])),
    "size": lambda x, y: x / x.shape[0] + y * (y.shape[0] * 2 + 1),
    "arange": lambda x, y: x + torch.arange(x.shape[0]).unsqueeze(1),
    "full": lambda x, y: x + torch.full((x.shape[0], 1), 3.0) - torch.zeros_like(y),
    "flatten": lambda x, y: (x + y).reshape(-1) * 2,
    "fold": lambda x, y: (x + y).reshape(-1, 2, 3).transpose(0, 1) + 1,
    "expand": lambda x, y: x.unsqueeze(0).expand(3, -1, -1) * y,
    "cat rows": lambda x, y: torch.cat([x, y * 2, x], 0),
    "cat columns": lambda x, y: torch.cat([x, y], 1),
    "pad": lambda x, y: F.pad(x, (0, 0, 1, 2), value=3.0).sum(0) + F.pad(y, (1, -2)).amax(),
    "slice": lambda x, y: (x[1:] * y[:-1], x[:, 1:4].t() + 1),
    "select": lambda x, y: x[0] + y[-1],
    "flip": lambda x, y: x.flip(0) + y.roll(1, 0),
    "matmul": lambda x, y: F.gelu(x @ y.t()).sum(1),
    "float of sizes": lambda x, y: (
        x * (1 / x.shape[0]) + y * x.shape[0] ** 0.5 - torch.full((6,), 2.0 / y.shape[0])
    ),
    "float of whole quotients": lambda x, y: x * (1 / (x.shape[0] // 2 + 1)) + y,
    "average windows": lambda x, y: F.avg_pool2d(x.view(-1, 1, 2, 3) * 2, 2, 1, 1).sum(0),
    "windows over a size": lambda x, y: F.avg_pool2d(
        (x + y)[None], (2, 3), (2, 1), (1, 0), False, False
    ),
    "triangle": lambda x, y: (x @ y.t()).tril(),
    "norm": lambda x, y: torch.linalg.vector_norm(x, dim=0) + y.std(0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_three_batch_sizes(kit: Any, name: str) -> None:
    torch.manual_seed(0)
    sizes = [(torch.randn(n, 6), torch.randn(n, 6)) for n in (4, 9, 2)]
    made = kit.check(PROGRAMS[name], *sizes[0], again=sizes[1:], dynamic=True)
    assert set(made.program.symbols.values()) <= {(tensor, 0) for tensor in made.program.inputs}


def test_size_is_an_argument(kit: Any) -> None:
    """A SymInt placeholder names the symbol, and comes before what a tensor says."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    sizes = StatelessSymbolicContext([DimDynamic.DYNAMIC, DimDynamic.STATIC])
    fake = mode.from_tensor(torch.randn(4, 3), symbolic_context=sizes)
    with mode:
        graph = make_fx(lambda n, x: (x.expand(n, 3) * n, n, n * 2))(fake.shape[0], fake)
    made = kit.lowered(graph)
    (symbol,) = made.program.symbols
    assert made.program.symbols == {symbol: None}
    assert made.program.inputs[0] == symbol
    for n in (4, 7):
        x = torch.randn(n, 3)
        scaled, same, double = made.run(n, x)
        assert torch.equal(scaled, x * n)
        assert (same, double) == (n, 2 * n)
    assert made.program.outputs[1] is Sym(symbol)


def test_size_that_no_argument_tells_is_refused(kit: Any) -> None:
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fake = mode.from_tensor(torch.tensor([1.0, 0.0]))
    with mode:
        graph = make_fx(lambda x: x.nonzero() + 1)(fake)
    with pytest.raises(InternalError, match=r"\[CC301\].*\n.*why"):
        kit.lowered(graph)
