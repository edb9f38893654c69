"""Arguments for every row of the element-wise table: what tests of all rows share."""

from __future__ import annotations

import math
from typing import Any

import torch

from compiler_core.lower.pointwise import ROWS

aten = torch.ops.aten

# arguments that are not tensors, where the default or the number 2 will not do: one tuple per case
NUMBERS: dict[Any, list[dict[str, Any]]] = {
    aten.add.Tensor: [{}, {"alpha": 3}],
    aten.sub.Tensor: [{}, {"alpha": 3}],
    aten.rsub.Tensor: [{}, {"alpha": 2}],
    aten.add.Scalar: [{"other": 0.1}, {"other": 2}, {"other": -3, "alpha": 2}],
    aten.sub.Scalar: [{"other": 0.1}, {"other": 2}],
    aten.rsub.Scalar: [{"other": 0.1}, {"other": 2, "alpha": 3}],
    aten.mul.Scalar: [{"other": 0.1}, {"other": 3}, {"other": True}],
    aten.div.Scalar: [{"other": 0.3}, {"other": 3}],
    aten.div.Tensor_mode: [{"rounding_mode": m} for m in (None, "floor", "trunc")],
    aten.div.Scalar_mode: [{"other": o, "rounding_mode": m} for m in (None, "floor", "trunc") for o in (3, -2)],
    aten.floor_divide.Scalar: [{"other": 3}, {"other": -2}, {"other": 0.7}],
    aten.remainder.Scalar: [{"other": 3}, {"other": -2}, {"other": 0.7}],
    aten.remainder.Scalar_Tensor: [{"self": 7}],
    aten.fmod.Scalar: [{"other": 3}, {"other": -2}, {"other": 0.7}],
    aten.pow.Tensor_Scalar: [{"exponent": e} for e in (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1.7)],
    aten.pow.Scalar: [{"self": 2}, {"self": 1.5}],
    aten.copysign.Scalar: [{"other": -1}, {"other": 0.0}],
    aten.clamp.default: [{"min": 1}, {"max": 2}, {"min": 0.5, "max": 1.5}, {"min": 2, "max": 1}],
    aten.clamp.Tensor: [{}, {"min": None}, {"max": None}],
    aten.clamp_min.default: [{"min": 1}, {"min": 0.5}],
    aten.clamp_max.default: [{"max": 1}, {"max": 0.5}],
    aten.nan_to_num.default: [{}, {"nan": 3.0, "posinf": 1.0, "neginf": -2.0}],
    aten.masked_fill.Scalar: [{"value": 1}, {"value": -math.inf}],
    aten.gelu.default: [{"approximate": a} for a in ("none", "tanh")],
    aten.gelu_backward.default: [{"approximate": a} for a in ("none", "tanh")],
    aten.elu.default: [{}, {"alpha": 0.7, "scale": 1.3, "input_scale": 0.9}],
    aten.elu_backward.default: [
        {"alpha": 0.7, "scale": 1.3, "input_scale": 0.9, "is_result": r} for r in (True, False)
    ],
    aten.softplus.default: [{}, {"beta": 0.5, "threshold": 1.0}],
    aten.softplus_backward.default: [{"beta": 0.5, "threshold": 1.0}],
    aten.hardtanh.default: [{}, {"min_val": -0.3, "max_val": 0.8}],
    aten.hardtanh_backward.default: [{"min_val": -0.3, "max_val": 0.8}],
    aten.leaky_relu.default: [{}, {"negative_slope": 0.2}],
    aten.leaky_relu_backward.default: [{"negative_slope": 0.2, "self_is_result": False}],
    aten.threshold.default: [{"threshold": 0.1, "value": -3.0}],
    aten.threshold_backward.default: [{"threshold": 0}],
    aten.logit.default: [{}, {"eps": 0.1}],
    aten.addcmul.default: [{}, {"value": 0.3}],
    aten.addcdiv.default: [{}, {"value": 0.3}],
    aten.lerp.Scalar: [{"weight": 0.3}, {"weight": 0.8}],
    aten.round.decimals: [{"decimals": 0}, {"decimals": 1}, {"decimals": -1}],
    aten.xlogy.Scalar_Other: [{"other": 0.3}],
    aten._to_copy.default: [{"dtype": d} for d in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool)],
}  # fmt: skip
for op in ROWS:
    numbers = [
        a.name
        for a in op._schema.arguments
        if str(a.type) == "number" and not a.has_default_value()
    ]
    if op not in NUMBERS and numbers:
        NUMBERS[op] = [dict.fromkeys(numbers, 2), dict.fromkeys(numbers, 1.5)]


def cases(op: Any) -> list[dict[str, Any]]:
    return NUMBERS.get(op, [{}])


def call_of(op: Any, names: list[str], case: dict[str, Any]) -> Any:
    """`op` as a function of its tensors alone."""
    only = {a.name for a in op._schema.arguments if a.kwarg_only}

    def call(*tensors: torch.Tensor) -> Any:
        given = case | dict(zip(names, tensors))
        ordered = [a.name for a in op._schema.arguments if a.name not in only]
        positional = []
        for name in ordered:
            if name not in given:
                break
            positional.append(given[name])
        named = {k: v for k, v in given.items() if k not in ordered[: len(positional)]}
        return op(*positional, **named)

    return call
