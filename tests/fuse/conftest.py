"""What the tests of `fuse` share: fusing a function or a text, and comparing in the interpreter.

`fusing.call(f, *inputs)` traces, lowers and fuses; `fusing.text(program)` fuses a program written in
the IR's own text. Both give a `Case`; `case.check(*inputs)` runs it before and after fusion, and once
more with each buffer in the memory that it is planned to take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import fx
from torch._decomp import get_decompositions
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)

from compiler_core.fuse import fuse
from compiler_core.fuse.accesses import written_buffers
from compiler_core.ir.interpret import _Machine
from compiler_core.ir.interpret_nest import run_nest
from compiler_core.ir.loop import Block, Loop, Nest, Program, Reduce
from compiler_core.ir.parse import parse_program
from compiler_core.ir.verify import verify_program
from compiler_core.lower import lower
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Decision, Recorder
from compiler_core.stages import Fused, Lowered

aten = torch.ops.aten
_COMPOSITE = [
    aten.native_layer_norm, aten.native_layer_norm_backward, aten._softmax, aten._softmax_backward_data,
    aten._log_softmax, aten._log_softmax_backward_data, aten.gelu, aten.gelu_backward, aten.addmm, aten.t,
    aten.nll_loss_forward, aten.nll_loss_backward, aten.threshold_backward, aten.mse_loss, aten.mse_loss_backward,
]  # fmt: skip


def strict_context() -> Context:
    return Context(Options(strict=True), Recorder(explore=True))


def trace(call: Callable[..., Any], *inputs: Any, dynamic: bool = False) -> fx.GraphModule:
    """The decomposed ATen graph of `call`; with `dynamic`, each dimension 0 is a symbol."""
    mode = FakeTensorMode(shape_env=ShapeEnv() if dynamic else None)

    def fake(x: torch.Tensor) -> torch.Tensor:
        if not dynamic:
            return mode.from_tensor(x)
        sizes = [DimDynamic.DYNAMIC] + [DimDynamic.STATIC] * (x.dim() - 1)
        return mode.from_tensor(x, symbolic_context=StatelessSymbolicContext(sizes))

    fakes = [fake(x) for x in inputs]
    with mode:
        graph = make_fx(lambda *x: call(*x), decomposition_table=get_decompositions(_COMPOSITE))(
            *fakes
        )
    graph.graph.eliminate_dead_code()
    return graph


@dataclass(frozen=True)
class Case:
    """A program before and after fusion."""

    lowered: Lowered
    fused: Fused
    decisions: list[Decision]
    context: Context

    @property
    def kernels(self) -> list[str]:
        """Strategies of the kernels in order."""
        return [kernel.strategy for kernel in self.fused.kernels.values()]

    @property
    def fusions(self) -> list[Decision]:
        return [d for d in self.decisions if d.kind == "fuse"]

    def categories(self) -> set[str]:
        """Why pairs were refused."""
        return {d.data["category"] for d in self.fusions if d.outcome == "refused"}

    def check(self, *inputs: Any, rtol: float = 1e-10) -> None:
        """The same results before and after, and in reused memory."""
        want = self.lowered.run(*copies(inputs))
        for got in (self.fused.run(*copies(inputs)), run_in_planned_memory(self.fused, inputs)):
            assert len(got) == len(want)
            for a, b in zip(got, want):
                torch.testing.assert_close(a, b, rtol=rtol, atol=rtol, equal_nan=True)


def copies(inputs: Any) -> list[Any]:
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def run_in_planned_memory(fused: Fused, inputs: Any) -> tuple[Any, ...]:
    """Run with each buffer that takes a dead buffer's memory in that memory, spoiled beforehand."""
    program = fused.program
    machine = _Machine.start(program, copies(inputs))
    made: set[str] = set()
    for item in program.body:
        for name in written_buffers(item) if isinstance(item, Nest) else item.outputs:
            if name in fused.reuse and name not in made:
                made.add(name)
                memory = machine.memory[fused.reuse[name]]
                assert len(memory) == len(machine.memory[name])
                machine.memory[name] = memory.fill_(77)
        if isinstance(item, Nest):
            run_nest(item, machine.memory, machine.sizes, machine.device_of(item))
        else:
            machine.call(item)
    return tuple(machine.result(output) for output in program.outputs)


def fuse_lowered(lowered: Lowered, **options: Any) -> Case:
    context = strict_context()
    fused = fuse(lowered, context, **options)
    verify_program(fused.program, "fuse")
    return Case(lowered, fused, context.recorder.here.decisions, context)


def fuse_call(
    call: Callable[..., Any],
    *inputs: Any,
    dynamic: bool = False,
    target: str = "cpu",
    **options: Any,
) -> Case:
    graph = trace(call, *inputs, dynamic=dynamic)
    return fuse_lowered(lower(graph, "forward", Target.parse(target), strict_context()), **options)


def fuse_text(text: str, target: str = "cpu", **options: Any) -> Case:
    program = with_origins(parse_program(text))
    verify_program(program, "lower")
    return fuse_lowered(Lowered(program, Target.parse(target), "forward"), **options)


def with_origins(program: Program) -> Program:
    """Each item of a program from a node of its nest's name."""

    def block(statements: Block, origins: frozenset[str]) -> Block:
        return tuple(
            replace(s, origins=origins, body=block(s.body, origins))
            if isinstance(s, Reduce | Loop)
            else replace(s, origins=origins)
            for s in statements
        )

    body = []
    for item in program.body:
        origins = frozenset({f"forward:{item.name}"})
        item = replace(item, origins=origins)
        body.append(
            replace(item, body=block(item.body, origins)) if isinstance(item, Nest) else item
        )
    return replace(program, body=tuple(body))


@pytest.fixture
def fusing() -> SimpleNamespace:
    return SimpleNamespace(
        call=fuse_call, text=fuse_text, lowered=fuse_lowered, trace=trace,
        context=strict_context,
    )  # fmt: skip
