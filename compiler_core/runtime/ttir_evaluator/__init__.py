"""Runs compiled TTIR on CPU tensors: `parse(text)`, then `evaluate(function, arguments, grid)`."""

from __future__ import annotations

from compiler_core.runtime.ttir_evaluator.evaluate import OPERATIONS, Trace, evaluate
from compiler_core.runtime.ttir_evaluator.parse import Function, operations_of, parse

__all__ = ["OPERATIONS", "Function", "Trace", "evaluate", "operations_of", "parse"]
