"""The demonstration's programs on a real GPU: values, gradients, every stage, counts."""

from __future__ import annotations

import copy

import pytest
import torch

import compiler_core as cc
from compiler_core.devtools.compare_stages import bounded_error, check_stages
from explorer.programs import PROGRAMS, Program

pytestmark = pytest.mark.gpu


def on_gpu(value):
    if isinstance(value, torch.nn.Module):
        return copy.deepcopy(value).cuda()
    return value.cuda() if isinstance(value, torch.Tensor) else value


def called(program: Program, fn, inputs) -> list:
    if program.dynamic:
        for value in inputs:
            cc.mark_dynamic(value, 0)
    output = fn(*inputs)
    if not program.trains:
        return [output]
    fn.zero_grad(set_to_none=True)
    output.backward()
    return [output.detach(), *(p.grad for p in fn.parameters())]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program: Program) -> None:
    eager = on_gpu(program.make())
    before = cc.stats()
    with cc.record(inputs=True) as recorder:
        compiled = cc.compile(copy.deepcopy(eager), options={"strict": True})
        for inputs in program.calls():
            inputs = [on_gpu(v) for v in inputs]
            doubles = [v.double() if v.is_floating_point() else v for v in inputs]
            wide = copy.deepcopy(eager).double() if program.trains else eager
            own, truth = called(program, eager, inputs), called(program, wide, doubles)
            for result, e, t in zip(called(program, compiled, inputs), own, truth, strict=True):
                error, tolerance = bounded_error(result, e, t)
                assert result.device.type == "cuda" and error <= tolerance
    after = cc.stats()
    assert after.graphs > before.graphs and after.fallbacks == before.fallbacks
    for name, code in recorder.compilations.items():
        (target,) = code.targets
        assert target.startswith("cuda:") and not code.part().built.evaluates
        assert all(check.ok for check in check_stages(code, recorder.inputs[name]))


def test_unaligned_and_odd_inputs() -> None:
    def f(x, y):
        return torch.softmax(x.sin() + y, -1).sum(0)

    compiled = cc.compile(f, options={"strict": True})
    base = torch.randn(200_001, device="cuda")
    for start in (0, 1, 3):
        x = base[start : start + 100 * 999].view(100, 999)
        y = torch.randn(999, device="cuda")
        torch.testing.assert_close(compiled(x, y), f(x, y))
    assert cc.stats().fallbacks == 0


def test_streams_and_empty_inputs() -> None:
    def f(x):
        return (x * 2).sum(1)

    compiled = cc.compile(f, options={"strict": True})
    side = torch.cuda.Stream()
    for rows in (5, 0, 1):
        x = torch.randn(rows, 7, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = compiled(x)
        torch.cuda.current_stream().wait_stream(side)
        torch.testing.assert_close(result, f(x))
