"""Every row of the element-wise table at infinities, NaN, zeros of both signs, denormals and the largest numbers.

The rows run as kernels, C on the CPU and Triton in the evaluator. A special result must be eager's own:
of its vector loop or of its scalar one, which differ here and there. Half types with Python numbers are
compared bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from row_cases import call_of, cases

from compiler_core.lower.pointwise import ROWS
from compiler_core.options import Target
from compiler_core.pipeline import compile_part
from compiler_core.provenance import handle

aten = torch.ops.aten
inf, nan = math.inf, math.nan

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DIVISORS = (3, -2, 0.7, -0.7, 0.0, inf, -inf, nan)

# numbers beside those of `row_cases` that lead to special results or do not fit half types
NUMBERS: dict[Any, list[dict[str, Any]]] = {
    aten.pow.Tensor_Scalar: [{"exponent": e} for e in (2, 3, -1, -2, 0.5, -0.5, 1.7, inf, -inf, nan)],
    aten.pow.Scalar: [{"self": s} for s in (0, 1, -2, 0.5, 1.3, inf, nan)],
    aten.add.Scalar: [{"other": o} for o in (0.1, inf, nan)],
    aten.mul.Scalar: [{"other": o} for o in (0.1, 1e6, 1e-9, -0.0, inf, nan)],
    aten.div.Scalar: [{"other": o} for o in (0.3, 0, -0.0, 1e6, 1e-9, inf)],
    aten.div.Scalar_mode: [{"other": o, "rounding_mode": m} for m in ("floor", "trunc") for o in DIVISORS],
    aten.floor_divide.Scalar: [{"other": o} for o in DIVISORS],
    aten.remainder.Scalar: [{"other": o} for o in DIVISORS],
    aten.remainder.Scalar_Tensor: [{"self": s} for s in (7, 0.7, -0.7)],
    aten.fmod.Scalar: [{"other": o} for o in DIVISORS],
    aten.clamp.default: [{"min": 0.1, "max": 1.7}, {"min": nan}, {"min": 0}, {"max": -0.0}],
    aten.clamp_min.default: [{"min": b} for b in (0, -0.0, 0.1, nan)],
    aten.clamp_max.default: [{"max": b} for b in (0, -0.0, 0.1, nan)],
    aten.copysign.Scalar: [{"other": o} for o in (-1, 0.0, -0.0)],
    aten.elu.default: [{}, {"alpha": 0.0}, {"alpha": -0.7}],
    aten.leaky_relu.default: [{"negative_slope": s} for s in (0.2, -0.2, 0.0)],
    aten.hardtanh_backward.default: [],  # eager's scalar and vector loops disagree where these meet NaN
    aten.logit.default: [{}, {"eps": 0.1}, {"eps": 0.0}, {"eps": -1.0}],
    aten.xlogy.Scalar_Other: [{"other": o} for o in (0.3, 0, -1, inf, nan)],
    aten.nan_to_num.default: [{}, {"nan": nan}, {"posinf": inf}],
    aten._to_copy.default: [{"dtype": t} for t in (*TYPES, torch.bool)],
    **{
        getattr(aten, name).Scalar: [{"other": o} for o in (0.1, inf, nan, 1e6, 0.0)]
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}  # fmt: skip

# Eager joins a product and a sum (one rounding), which matters only at the ends of a type's range.
FUSED = {
    aten.add.Tensor, aten.sub.Tensor, aten.rsub.Tensor, aten.addcmul.default, aten.lerp.Scalar, aten.lerp.Tensor,
}  # fmt: skip

# Of two zeros GPUs take the positive one as the larger; their eager kernels do so too.
LARGER_ZERO = {
    aten.clamp.default, aten.clamp.Tensor, aten.clamp_min.default, aten.clamp_min.Tensor, aten.clamp_max.default,
    aten.clamp_max.Tensor, aten.relu.default, aten.hardtanh.default,
}  # fmt: skip


def specials(dtype: torch.dtype, operands: int, extreme: bool) -> torch.Tensor:
    info = torch.finfo(dtype)
    found = [0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5, 2.5, -1.5, 3.0, -3.0]
    ends = [info.tiny, -info.tiny, info.tiny / 4, -info.tiny / 4, info.max, info.min]
    found += ends if extreme else []
    found += [11.0, -104.5, 20.5, -21.0, 89.5, -0.5] if operands == 1 else []
    return torch.tensor(found, dtype=torch.float64).to(dtype)


def operands_of(op: Any, names: list[str], dtype: torch.dtype) -> list[torch.Tensor]:
    """All combinations of special values, one tensor an operand."""
    found = specials(dtype, len(names), extreme=op not in FUSED)
    grid = torch.meshgrid(*[found] * len(names), indexing="ij") if len(names) > 1 else (found,)
    made = []
    for name, values in zip(names, grid):
        flat = values.reshape(-1)
        made.append(flat > 0 if name in ("condition", "mask") else flat)
    return made


def programs(op: Any, dtype: torch.dtype) -> list[tuple[dict[str, Any], Any, list[torch.Tensor]]]:
    """(numbers, a function of tensors, its operands) of each case that eager takes."""
    found = []
    for case in NUMBERS.get(op, cases(op)):
        tensors = [a for a in op._schema.arguments if "Tensor" in str(a.type)]
        names = [a.name for a in tensors if a.name not in case]
        call = call_of(op, names, case)
        operands = operands_of(op, names, dtype)
        if op is aten.masked_fill.Tensor:
            operands[-1] = torch.tensor(inf, dtype=dtype)
        try:
            call(*operands)
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        found.append((case, call, operands))
    return found


def kernels(
    kit: Any, calls: list[Any], operands: list[list[torch.Tensor]], target: str
) -> list[torch.Tensor]:
    """The results of several functions, compiled as one graph."""
    ends = [sum(map(len, operands[: n + 1])) for n in range(len(operands))]

    def together(*flat: torch.Tensor) -> list[torch.Tensor]:
        return [c(*flat[end - len(o) : end]) for c, o, end in zip(calls, operands, ends)]

    flat = [x for group in operands for x in group]
    graph = kit.trace(together, *flat)
    for node in graph.graph.nodes:
        node.meta.setdefault("origins", frozenset({handle("joint", node.name)}))
    made = compile_part(graph, "forward", Target.parse(target), kit.context())
    assert not kit.calls(made.lowered)
    return list(made.built.run(*flat))


def strided(x: torch.Tensor) -> torch.Tensor:
    """The same values in a layout that eager's vector loops do not take."""
    return torch.stack([x, x], -1)[..., 0] if x.dim() else x


def agreeing(got: torch.Tensor, eager: torch.Tensor, zeros: bool) -> torch.Tensor:
    """Where both are NaN, the same infinity, zeros of one sign, or neither of these."""
    if not eager.dtype.is_floating_point:
        return got == eager
    is_special = eager.isnan() | got.isnan() | eager.isinf() | got.isinf()
    same = (got.isnan() & eager.isnan()) | (got == eager)
    both_zero = (got == 0) & (eager == 0) & zeros
    return torch.where(is_special, same, ~both_zero | (got.signbit() == eager.signbit()))


def assert_special(kit: Any, op: Any, target: str, types: tuple[torch.dtype, ...]) -> None:
    for dtype in types:
        found = programs(op, dtype)
        if not found:
            continue
        _, calls, operands = zip(*found)
        results = kernels(kit, list(calls), list(operands), target)
        for (case, call, given), got in zip(found, results):
            zeros = target == "cpu" or op not in LARGER_ZERO
            zeros &= not (op in (aten.fmax.default, aten.fmin.default) and dtype == torch.bfloat16)
            right = agreeing(got, call(*given), zeros)
            right |= agreeing(got, call(*map(strided, given)), zeros)
            at = (~right).nonzero().flatten()[:5]
            wrong = [(*(x[n].item() for x in given if x.dim()), got[n].item()) for n in at]
            assert not wrong, (case, dtype, wrong)


@pytest.mark.parametrize("op", ROWS, ids=str)
def test_special_results_on_cpu(kit: Any, op: Any) -> None:
    assert_special(kit, op, "cpu", TYPES)


# Where eager's GPU kernels for half types differ from its CPU kernels.
OF_CPU = {
    aten.pow.Tensor_Scalar,
    aten.sigmoid_backward.default,
    aten.xlogy.Tensor,
    aten.logit.default,
}


@pytest.mark.parametrize("op", ROWS, ids=str)
def test_special_results_in_triton(kit: Any, op: Any) -> None:
    assert_special(kit, op, "cuda:90", (torch.float32,) if op in OF_CPU else TYPES)


HALVES = (torch.float16, torch.bfloat16)

# functions of a half tensor with numbers that half types do not have
WITH_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": lambda x: x + 0.1,
    "subtract": lambda x: 0.1 - x,
    "multiply": lambda x: x * 0.1,
    "divide": lambda x: x / 0.3,
    "divide a number": lambda x: 0.3 / x,
    "floor divide": lambda x: x // 0.7,
    "remainder": lambda x: x % 0.7,
    "remainder of a number": lambda x: 0.7 % x,
    "fmod": lambda x: torch.fmod(x, 0.7),
    "truncated": lambda x: torch.div(x, 0.7, rounding_mode="trunc"),
    "truncated quotient of tensors": lambda x: torch.div(x, x.flip(0), rounding_mode="trunc"),
    "power": lambda x: x.abs() ** 1.7,
    "power of three": lambda x: x**3,
    "power of minus two": lambda x: x**-2,
    "power of a number": lambda x: 1.3**x,
    "greater": lambda x: x > 0.1,
    "equal": lambda x: x == 0.1,
    "clamp": lambda x: x.clamp(-0.3, 0.7),
    "xlogy": lambda x: torch.special.xlogy(x, 0.3),
    "logit": lambda x: torch.logit(x, 0.1),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.abs() + 1, value=0.3),
    "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x, 0.2),
    "hardshrink": lambda x: torch.nn.functional.hardshrink(x, 0.3),
    "threshold": lambda x: torch.nn.functional.threshold(x, 0.1, -3.3),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.1),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_half_types_with_numbers(kit: Any, name: str, dtype: torch.dtype) -> None:
    call = WITH_NUMBERS[name]
    x = (torch.randn(640, generator=torch.Generator().manual_seed(3)) * 3).to(dtype)
    (got,) = kernels(kit, [call], [[x]], "cpu")
    assert torch.equal(got, call(x))
