"""The whole table of rules: ATen overload → what it becomes.

In: an operator node. Out: its value, after its row has appended nests to the program. An operator
without a row, or whose row refuses the case, is a library call with the reason recorded.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from compiler_core.lower import (
    creation,
    gathers,
    indexing,
    matmul,
    normalisation,
    pointwise,
    pooling,
    reductions,
    scatters,
    views,
)  # fmt: skip
from compiler_core.lower.empty import is_empty, lower_empty
from compiler_core.lower.environment import Environment
from compiler_core.lower.fallback import call_library, reason_for
from compiler_core.lower.operands import LoweredValue, Refusal

__all__ = ["TABLE", "lower_operator"]

TABLE: dict[Any, Any] = {
    **views.TABLE,
    **creation.TABLE,
    **pointwise.TABLE,
    **reductions.TABLE,
    **normalisation.TABLE,
    **indexing.TABLE,
    **gathers.TABLE,
    **scatters.TABLE,
    **pooling.TABLE,
    **matmul.TABLE,
}


def lower_operator(env: Environment, node: fx.Node) -> LoweredValue:
    """What the operator's row makes of it; a library call when there is none or it refuses."""
    rule = TABLE.get(node.target)
    if rule is None:
        return call_library(env, node, reason_for(node.target))
    if node.target not in views.TABLE and is_empty(node):
        return lower_empty(env, node)
    before = env.mark()
    try:
        return rule(env, node)
    except Refusal as refusal:
        env.back_to(before)
        return call_library(env, node, str(refusal))
