"""`evaluated(text, types, arguments, grid)`: a hand-written Triton kernel, compiled to TTIR and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from compiler_core.options import Target
from compiler_core.provenance import NOWHERE
from compiler_core.runtime.triton_stages import compile_forms
from compiler_core.runtime.ttir_evaluator import Function, evaluate, parse
from compiler_core.stages import KernelSource, Launch, Param

HEAD = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
"""


def kernel_of(text: str, types: Sequence[str], constants: dict[str, int]) -> KernelSource:
    """A kernel from its `def`; a type starting with `*` is a pointer."""
    source = HEAD + text
    params = tuple(
        Param(f"a{n}", "out" if t.startswith("*") else "size", t.lstrip("*"))
        for n, t in enumerate(types)
    )
    lines = (NOWHERE,) * len(source.splitlines())
    return KernelSource("kernel", "triton", source, lines, params, Launch(("1",), constants))


def compiled(text: str, types: Sequence[str], constants: dict[str, int]) -> Function:
    kernel = kernel_of(text, types, constants)
    forms = compile_forms(kernel, Target("cuda", 90), is_aligned=False, until="ttir")
    return parse(forms.texts["ttir"])


@pytest.fixture(scope="session")
def evaluated() -> Callable[..., None]:
    def run(
        text: str, types: Sequence[str], arguments: Sequence[Any], grid: tuple[int, ...] = (1,),
        *, constants: dict[str, int] | None = None, **others: Any,
    ) -> None:  # fmt: skip
        evaluate(compiled(text, types, constants or {}), arguments, grid, **others)

    return run


@pytest.fixture(scope="session")
def function_of() -> Callable[..., Function]:
    return lambda text, types, constants=None: compiled(text, types, constants or {})
