"""Matrix products and convolutions: library calls on views, one reason a row.

In: a node of the table. Out: a `Call`; transposed or sliced operands go to the library as they lie.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import fx

from compiler_core.lower.environment import Environment
from compiler_core.lower.fallback import call_library
from compiler_core.lower.operands import LoweredValue

__all__ = ["REASONS", "TABLE"]

aten = torch.ops.aten

_MATMUL = "matrix product: the library's blocked kernels are faster than generated loops"
_CONVOLUTION = "convolution: the library chooses among algorithms by shape"
_ATTENTION = "attention: the library's kernel never writes the score matrix"

REASONS: dict[Any, str] = {
    aten.mm.default: _MATMUL,
    aten.addmm.default: _MATMUL,
    aten.bmm.default: _MATMUL,
    aten.baddbmm.default: _MATMUL,
    aten.addbmm.default: _MATMUL,
    aten.mv.default: _MATMUL,
    aten.addmv.default: _MATMUL,
    aten.dot.default: _MATMUL,
    aten.vdot.default: _MATMUL,
    aten.addr.default: _MATMUL,
    aten._int_mm.default: _MATMUL,
    aten._scaled_mm.default: _MATMUL,
    aten._grouped_mm.default: _MATMUL,
    aten.convolution.default: _CONVOLUTION,
    aten.convolution_backward.default: _CONVOLUTION,
    aten._scaled_dot_product_flash_attention.default: _ATTENTION,
    aten._scaled_dot_product_flash_attention_backward.default: _ATTENTION,
    aten._scaled_dot_product_flash_attention_for_cpu.default: _ATTENTION,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _ATTENTION,
    aten._scaled_dot_product_efficient_attention.default: _ATTENTION,
    aten._scaled_dot_product_efficient_attention_backward.default: _ATTENTION,
    aten._scaled_dot_product_cudnn_attention.default: _ATTENTION,
}


def _row(reason: str) -> Callable[[Environment, fx.Node], LoweredValue]:
    return partial(call_library, reason=reason)


TABLE: dict[Any, Any] = {op: _row(reason) for op, reason in REASONS.items()}
