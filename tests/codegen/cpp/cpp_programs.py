"""Programs for the tests, from their text, built and called."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler_core.codegen import generate
from compiler_core.codegen.statement_handles import statements_of
from compiler_core.ir.loop import Load, Loop, Nest, Program, Reduce, Store
from compiler_core.ir.parse import parse_program
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Recorder
from compiler_core.runtime import build
from compiler_core.stages import Built, Fused, Generated, Kernel

__all__ = ["built", "context_for", "fused", "generated", "run"]


def context_for(cache: Path, **options: Any) -> Context:
    return Context(Options.of({"strict": True, "cache_dir": str(cache), **options}), Recorder())


def fused(text: str, part: str = "forward", **changes: Any) -> Fused:
    """A program's text as fusion would hand it over: every nest is a kernel."""
    program = parse_program(text)
    kernels = {item.name: _kernel(item, program) for item in program.body if isinstance(item, Nest)}
    value = Fused(program, kernels, {}, {}, Target("cpu"), part)
    return replace(value, **changes)


def _kernel(nest: Nest, program: Program) -> Kernel:
    statements = list(statements_of(nest.body))
    reads = dict.fromkeys(s.buffer for s in statements if isinstance(s, Load))
    writes = dict.fromkeys(s.buffer for s in statements if isinstance(s, Store))
    names: set[str] = set()
    for s in statements:
        for field in ("offset", "index", "extent"):
            names |= getattr(s, field).names if hasattr(s, field) else set()
        if isinstance(s, Reduce | Loop):
            names |= {name for axis in s.axes for name in axis.extent.names}
    names |= {name for axis in nest.axes for name in axis.extent.names}
    symbols = tuple(name for name in program.symbols if name in names)
    return Kernel(nest.name, "", tuple(reads), tuple(writes), symbols, (nest.name,))


def generated(text: str, cache: Path, **options: Any) -> Generated:
    return generate(fused(text), context_for(cache, **options))


def built(text: str, cache: Path, **options: Any) -> Built:
    context = context_for(cache, **options)
    return build(generate(fused(text), context), context)


def run(text: str, cache: Path, *inputs: Any, **options: Any) -> Any:
    """The only output of a program, called twice: the second result must equal the first."""
    program = built(text, cache, **options)
    (first,) = program.run(*inputs)
    (second,) = program.run(*inputs)
    assert first.equal(second) or first.isnan().any()
    return second
