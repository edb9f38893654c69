"""What the tests of Triton code share: programs from text, built, evaluated, compared.

`kit.check(text, strategy, *inputs, eager=f)` generates Triton, compiles it to TTIR, evaluates that, and
compares with eager and float64; the kernels' operations must be among those of the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from compiler_core.codegen import generate
from compiler_core.codegen.statement_handles import statements_of
from compiler_core.codegen.triton import generate_kernels
from compiler_core.ir.loop import Load, Nest, Store
from compiler_core.ir.parse import parse_program
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Recorder
from compiler_core.runtime.build_triton import build_triton
from compiler_core.stages import Built, Fused, Kernel, KernelSource

TARGET = Target("cuda", 90)


def context() -> Context:
    return Context(Options.of({"strict": True}), Recorder())


def fused(text: str, strategy: str, reuse: dict[str, str] | None = None) -> Fused:
    """A program's text as fusion would hand it over: every nest is a kernel."""
    program = parse_program(text)
    kernels = {}
    for nest in program.body:
        assert isinstance(nest, Nest)
        statements = list(statements_of(nest.body))
        reads = tuple(dict.fromkeys(s.buffer for s in statements if isinstance(s, Load)))
        writes = tuple(dict.fromkeys(s.buffer for s in statements if isinstance(s, Store)))
        symbols = tuple(program.symbols)
        kernels[nest.name] = Kernel(nest.name, strategy, reads, writes, symbols, (nest.name,))
    return Fused(program, kernels, reuse or {}, {}, TARGET, "forward")


def kernel(text: str, strategy: str) -> KernelSource:
    """The one kernel of a program."""
    (source,) = generate_kernels(fused(text, strategy), context())
    return source


def built(text: str, strategy: str, where: Context | None = None) -> Built:
    where = where or context()
    return build_triton(generate(fused(text, strategy), where), where)


def assert_close(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    """Error against `exact` at most twice eager's, or four ulp of the output's scale."""
    assert (got.dtype, got.shape) == (eager.dtype, eager.shape)
    if not eager.dtype.is_floating_point:
        assert torch.equal(got, eager), (got, eager)
        return
    wide, want, truth = got.double(), eager.double(), exact.double()
    assert torch.equal(wide.isnan(), want.isnan()), "NaN elsewhere than in eager"
    infinite = want.isinf()
    assert torch.equal(wide[infinite], want[infinite]), "infinity elsewhere than in eager"
    finite = want.isfinite() & truth.isfinite()
    scale = truth[finite].abs().max().item() if bool(finite.any()) else 0.0
    worst = (want - truth)[finite].abs().max().item() if bool(finite.any()) else 0.0
    error = (wide - truth)[finite].abs().max().item() if bool(finite.any()) else 0.0
    allowed = max(2 * worst, 4 * torch.finfo(eager.dtype).eps * scale)
    assert error <= allowed, (error, allowed)


def in_double(x: Any) -> Any:
    is_float = isinstance(x, torch.Tensor) and x.dtype.is_floating_point
    return x.double() if is_float else x


def check(
    text: str, strategy: str, *inputs: Any, eager: Callable[..., Any], again: Any = ()
) -> Built:
    """Build once; run on `inputs` twice and on each of `again`; every result must equal eager."""
    made = built(text, strategy)
    for arguments in [inputs, inputs, *again]:
        want, truth = eager(*arguments), eager(*map(in_double, arguments))
        got = made.run(*arguments)
        wants = want if isinstance(want, tuple) else (want,)
        truths = truth if isinstance(truth, tuple) else (truth,)
        assert len(got) == len(wants)
        for one, two, three in zip(got, wants, truths):
            assert_close(one, two, three)
    return made


@pytest.fixture(scope="session")
def kit() -> Any:
    """The functions above, as one namespace."""
    return SimpleNamespace(
        fused=fused, kernel=kernel, built=built, check=check, context=context, target=TARGET,
        assert_close=assert_close,
    )  # fmt: skip
