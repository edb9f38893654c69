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


def assert_within_bounds(calls) -> None:
    """Error of one tensor of all calls ≤ 2 × eager's own, or 4 ulp of its scale.

    A matrix product of a few thousand elements meets eager's own error by luck at one call and by twice
    of it at the next, so eager's own is the largest of the calls, relative to the tensor's scale.
    """
    scales = [truth.abs().max().item() or 1.0 for _, _, truth in calls]
    own = max(bounded_error(e, e, t)[0] / scale for (_, e, t), scale in zip(calls, scales))
    for (result, e, t), scale in zip(calls, scales):
        error, tolerance = bounded_error(result, e, t)
        assert error <= max(tolerance, 2 * own * scale)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program: Program) -> None:
    eager = on_gpu(program.make())
    before = cc.stats()
    with cc.record(inputs=True) as recorder:
        compiled = cc.compile(copy.deepcopy(eager), options={"strict": True})
        wide = copy.deepcopy(eager).double() if program.trains else eager
        rows = []  # one of each call: per tensor the result, eager's, and the truth
        for inputs in program.calls():
            inputs = [on_gpu(v) for v in inputs]
            doubles = [v.double() if v.is_floating_point() else v for v in inputs]
            own, truth = called(program, eager, inputs), called(program, wide, doubles)
            rows.append(list(zip(called(program, compiled, inputs), own, truth, strict=True)))
    assert all(result.device.type == "cuda" for row in rows for result, _, _ in row)
    for calls in zip(*rows, strict=True):
        assert_within_bounds(calls)
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
