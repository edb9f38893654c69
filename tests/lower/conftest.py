"""What the tests of `lower` share: tracing under fake tensors, running, comparing.

`check(call, *tensors)` traces `call`, lowers it, runs the loop IR and compares with eager and float64.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)  # fmt: skip

from compiler_core.ir.loop import Call, Nest
from compiler_core.ir.verify import verify_program
from compiler_core.lower import lower
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Recorder
from compiler_core.stages import Lowered

sys.path.insert(0, str(Path(__file__).parent))


def strict_context() -> Context:
    return Context(Options(strict=True), Recorder(explore=True))


def trace(call: Callable[..., Any], *inputs: Any, dynamic: bool = False) -> fx.GraphModule:
    """The ATen graph of `call`; with `dynamic`, dimension 0 of each tensor is a symbol."""
    mode = FakeTensorMode(shape_env=ShapeEnv() if dynamic else None)

    def fake(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if not dynamic or x.dim() == 0:
            return mode.from_tensor(x)
        sizes = [DimDynamic.DYNAMIC] + [DimDynamic.STATIC] * (x.dim() - 1)
        return mode.from_tensor(x, symbolic_context=StatelessSymbolicContext(sizes))

    fakes = [fake(x) for x in inputs]
    with mode, enable_python_dispatcher():
        return make_fx(lambda *x: call(*x))(*fakes)


def lowered(graph: fx.GraphModule, part: str = "forward", target: str = "cpu") -> Lowered:
    return lower(graph, part, Target.parse(target), strict_context())


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_close(got: Any, eager: Any, exact: Any) -> None:
    """Error against `exact` (float64) at most twice eager's, or four ulp of the output's scale."""
    if not isinstance(eager, torch.Tensor):
        assert got == eager
        return
    assert (got.dtype, got.shape) == (eager.dtype, eager.shape)
    if not eager.dtype.is_floating_point:
        assert torch.equal(got, eager)
        return
    # eager's vectorised kernels lose some infinities that its float64 kernels keep
    as_eager = (got.isnan() == eager.isnan()) & (got.isinf() == eager.isinf())
    as_exact = (got.isnan() == exact.isnan()) & (got.isinf() == exact.to(got.dtype).isinf())
    assert bool((as_eager | as_exact).all()), "NaN or infinity elsewhere than in eager"
    finite = eager.isfinite() & exact.isfinite() & got.isfinite()
    truth = exact[finite].double()
    allowed = 2 * (eager[finite].double() - truth).abs()
    scale = truth.abs().max().item() if truth.numel() else 0.0
    ulp = 4 * torch.finfo(eager.dtype).eps * scale
    error = (got[finite].double() - truth).abs()
    worst = allowed.max().item() if allowed.numel() else 0.0
    assert bool((error <= max(worst, ulp)).all()), (error.max().item(), worst, ulp)


def assert_strides(graph: fx.GraphModule, results: Any) -> None:
    """Results have the strides that the fake tensors promise (eager's own, but for bugs of its metas)."""
    promised = flat(next(n for n in graph.graph.nodes if n.op == "output").args[0])
    for node, got in zip(promised, results):
        if isinstance(got, torch.Tensor) and got.numel():
            assert got.stride() == node.meta["val"].stride()


def in_double(x: Any) -> Any:
    if isinstance(x, torch.Tensor) and x.dtype.is_floating_point:
        return x.double()
    return x


def check(
    call: Callable[..., Any], *inputs: Any, again: Any = None, dynamic: bool = False
) -> Lowered:
    """Lower `call` for `inputs`; run it on these and on `again`; each must equal eager."""
    graph = trace(call, *inputs, dynamic=dynamic)
    made = lowered(graph)
    verify_program(made.program, "lower")
    for arguments in [inputs, *(again or ())]:
        eager = flat(call(*arguments))
        try:
            exact = [in_double(x) for x in flat(call(*map(in_double, arguments)))]
        except RuntimeError:
            exact = [in_double(x) for x in eager]
        before = [x.clone() if isinstance(x, torch.Tensor) else x for x in arguments]
        results = made.run(*arguments)
        if not dynamic:
            assert_strides(graph, results)
        assert len(results) == len(eager)
        for got, want, truth in zip(results, eager, exact):
            assert_close(got, want, truth)
        for now, then in zip(arguments, before):
            assert not isinstance(now, torch.Tensor) or torch.equal(
                now.nan_to_num(3.0), then.nan_to_num(3.0)
            )
    assert_origins(made)
    return made


def assert_origins(made: Lowered) -> None:
    """Every nest, call and statement has origins of its part."""
    for item in made.program.body:
        assert item.origins
        if isinstance(item, Nest):
            assert_block(item.body, made.part)


def assert_block(block: Any, part: str) -> None:
    for statement in block:
        assert statement.origins, statement
        assert all(h.startswith((f"{part}:", "backward:")) for h in statement.origins)
        assert_block(getattr(statement, "body", ()), part)


def calls(made: Lowered) -> list[str]:
    return [item.target for item in made.program.body if isinstance(item, Call)]


def nests(made: Lowered) -> list[str]:
    return [item.name for item in made.program.body if isinstance(item, Nest)]


@pytest.fixture(scope="session")
def kit() -> Any:
    """The functions above, as one namespace."""
    return SimpleNamespace(
        trace=trace, lowered=lowered, check=check, calls=calls, nests=nests, flat=flat,
        context=strict_context, assert_close=assert_close, assert_origins=assert_origins, inf=math.inf,
    )  # fmt: skip
