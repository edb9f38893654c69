"""One row softmax with a masked tail, compiled once to the cubin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compiler_core.codegen.triton import generate_kernels
from compiler_core.ir.parse import parse_program
from compiler_core.options import Context, Options, Target
from compiler_core.recording import Recorder
from compiler_core.runtime.artifacts import artifacts_of, sass_artifact
from compiler_core.runtime.triton_stages import compile_forms, pseudo_path
from compiler_core.stages import Fused, Kernel

TEXT = """
program p(x, w):
  in x: bf16[64, 1000] stride [1000, 1]
  in w: f32[1000] stride [1]
  out o: bf16[64, 1000] stride [1000, 1]
  nest softmax_0 for i < 64:
    m: f32 = max over j < 1000:
      a: bf16 = load x[1000*i + j]
      a1: f32 = cast a
      yield a1
    s: f32 = sum over k < 1000:
      b: bf16 = load x[1000*i + k]
      b1: f32 = cast b
      b2: f32 = sub b1 m
      b3: f32 = exp b2
      yield b3
    q: f32 = sum over n < 1000:
      f: f32 = load w[n]
      yield f
    for l < 1000:
      c: bf16 = load x[1000*i + l]
      c1: f32 = cast c
      c2: f32 = sub c1 m
      c3: f32 = exp c2
      c4: f32 = div c3 s
      c5: f32 = mul c4 q
      c6: bf16 = cast c5
      store o[1000*i + l] = c6
  return o
"""


@pytest.fixture(scope="session")
def softmax() -> Any:
    """kernel, forms, artifacts by stage (SASS too), lines of the kernel's text."""
    names = ("x", "w"), ("o",)
    program = parse_program(TEXT)
    plan = Kernel("softmax_0", "row", *names, (), ("softmax_0",))
    fused = Fused(program, {"softmax_0": plan}, {}, {}, Target("cuda", 90), "forward")
    (kernel,) = generate_kernels(fused, Context(Options(), Recorder()))
    forms = compile_forms(kernel, Target("cuda", 90))
    made = artifacts_of(forms.texts, pseudo_path(kernel))
    made = (*made, sass_artifact(forms.binary, made[-1]))
    by_stage = {artifact.stage: artifact for artifact in made}
    lines = [line.strip() for line in kernel.source.splitlines()]
    return SimpleNamespace(kernel=kernel, forms=forms, artifacts=by_stage, lines=lines)
