"""The table of rules for callables, and how a rule is registered.

A rule takes (trace, args, kwargs) and gives the result's value. `simple` wraps a rule that takes
plain positional arguments, looked at; `folds` is the rule of a pure function of constants.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import (
    UNKNOWN_CALL,
    Break,
)
from compiler_core.capture.folding import fold_or_break
from compiler_core.capture.values.base import Value

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


__all__ = ["RULES", "Rule", "breaks", "find_rule", "folds", "rule", "simple"]

Rule = Callable[[Any, list[Value], dict[str, Value]], Value]

RULES: dict[Any, Rule] = {}


def find_rule(real: Any) -> Rule | None:
    """The rule of a callable, if there is one."""
    from compiler_core.capture import (  # noqa: F401  (they fill RULES)
        builtin_calls,
        builtin_containers,
        cached_calls,
        checkpoints,
        control_flow,
        copying,
        getters,
        library_calls,
        module_calls,
        reflection_calls,
        torch_rules,
    )

    try:
        return RULES.get(real) or RULES.get(_stored(real))
    except TypeError:  # not hashable: no rule can be about it
        return None


def _stored(real: Any) -> Any:
    """What the class stores for its class method written in C: one rule serves all subclasses."""
    owner = getattr(real, "__self__", None)
    if not isinstance(real, types.BuiltinFunctionType) or not isinstance(owner, type):
        return None
    return inspect.getattr_static(owner, real.__name__, None)


def rule(*callables: Any) -> Callable[[Rule], Rule]:
    """Register a rule for callables."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(callables, function))
        return function

    return register


def simple(*callables: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a rule that takes the trace and positional arguments, looked at."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
            if kwargs:
                raise Break(UNKNOWN_CALL, f"{function.__name__} with keywords")
            return function(trace, *map(trace.look, args))

        RULES.update(dict.fromkeys(callables, called))
        return function

    return register


def folds(*callables: Any) -> None:
    """Pure functions, computed while tracing when their arguments are constant."""
    for function in callables:

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            return fold_or_break(trace, f, args, kwargs)

        RULES[function] = called


def breaks(kind: Any, *callables: Any) -> None:
    """Callables that always break, and why."""
    for function in callables:

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            raise Break(kind, getattr(f, "__qualname__", str(f)))

        RULES[function] = called
