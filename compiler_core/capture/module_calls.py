"""Calling a torch.nn.Module: its forward, with the hooks that are registered.

In: a module and arguments. Out: the result of forward and forward hooks. What is relied on (no
hooks, or these; the class's `__call__`) is guarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.attributes import get_attribute
from compiler_core.capture.break_kinds.calls import COMPILED
from compiler_core.capture.breaks import HOOKS, UNKNOWN_CALL, Break
from compiler_core.capture.calls import _call_special, call, is_compiled
from compiler_core.capture.comparisons import truth
from compiler_core.capture.guard_predicates import active_request
from compiler_core.capture.instances import class_lookup
from compiler_core.capture.rules import rule
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import NONE, Constant, is_none
from compiler_core.capture.values.containers import DictValue, TupleValue
from compiler_core.capture.values.objects import Instance, ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["call_module", "call_new_module"]

_FORWARD = ("_forward_pre_hooks", "_forward_hooks")
_BACKWARD = ("_backward_hooks", "_backward_pre_hooks")
_GLOBAL = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")  # fmt: skip


def call_module(
    trace: Trace, module: ObjectValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`module(*args, **kwargs)`. Raises Break for hooks of the backward pass, compiled modules."""
    real = module.real
    called: Any = type(real).__call__
    if is_compiled(called) and called.__wrapped__ is torch.nn.Module.__call__:
        _refuse_other_request(real, called)
    elif called is not torch.nn.Module.__call__:
        return _call_special(trace, module, args, kwargs)
    return _call_plain(trace, module, args, kwargs)


@rule(torch.nn.Module._wrapped_call_impl, torch.nn.Module._call_impl)
def _call_by_name(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`module.__call__(…)` written out, or from a class that has a `__call__` of its own around it."""
    module = trace.look(args[0]) if args else None
    if not (isinstance(module, ObjectValue) and isinstance(module.real, torch.nn.Module)):
        raise Break(UNKNOWN_CALL, "Module.__call__ of something else")
    return _call_plain(trace, module, list(args[1:]), kwargs)


def _call_plain(
    trace: Trace, module: ObjectValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    real = module.real
    if isinstance(real, torch.jit.ScriptModule):
        raise Break(COMPILED, "a TorchScript module")
    if real._compiled_call_impl is not None:
        raise Break(COMPILED, "a module with .compile()")
    _refuse_backward_hooks(trace, module)
    args = _pre_hooks(trace, module, args, kwargs)
    forward = trace.look(get_attribute(trace, module, "forward"))
    result = call(trace, forward, args, kwargs)
    return _forward_hooks(trace, module, args, kwargs, result)


def call_new_module(
    trace: Trace, module: Instance, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """The same for a module that the trace made: it has no hooks, or it breaks."""
    if class_lookup(module.cls, "__call__")[0] is not torch.nn.Module.__call__:
        return _call_special(trace, module, args, kwargs)
    for name in (*_FORWARD, *_BACKWARD):
        if truth(trace, module.attributes.get(name, NONE)):
            raise Break(HOOKS, module.cls.__name__)
    _refuse_global_hooks(trace)
    return call(trace, trace.look(get_attribute(trace, module, "forward")), args, kwargs)


def _refuse_other_request(real: torch.nn.Module, called: Any) -> None:
    """A compiled module is followed like its plain twin, if both ask for the same. The class is guarded."""
    if called.__cutaway_compiled__[0] is not active_request():
        raise Break(COMPILED, f"{type(real).__qualname__}, compiled with other options")


def _refuse_backward_hooks(trace: Trace, module: ObjectValue) -> None:
    for name in _BACKWARD:
        if _hooks(trace, module, name):
            raise Break(HOOKS, type(module.real).__name__)
    _refuse_global_hooks(trace)


def _refuse_global_hooks(trace: Trace) -> None:
    from torch.nn.modules import module as internals

    for name in _GLOBAL:
        hooks = getattr(internals, name)
        source = trace.guards.constant(internals, "module_internals").attr(name)
        trace.guard("length", source, hooks, "hooks of all modules run at each call")
        if hooks:
            raise Break(HOOKS, "a hook for all modules")


def _hooks(trace: Trace, module: ObjectValue, name: str) -> dict[Any, Any]:
    """A dict of hooks, guarded to have the hooks it has."""
    hooks: dict[Any, Any] = getattr(module.real, name)
    source = module.source.attr(name) if module.source else None
    if hooks:
        trace.guard("keys", source, list(hooks), "these hooks run at each call")
    else:
        trace.guard("length", source, hooks, "no hook runs when it is called")
    return hooks


def _hook_values(trace: Trace, module: ObjectValue, name: str) -> list[tuple[int, Value]]:
    hooks = _hooks(trace, module, name)
    source = module.source.attr(name) if module.source else None
    return [
        (key, trace.look(Lazy(hook, source=source and source.item(key), trusted=source is None)))
        for key, hook in hooks.items()
    ]


def _pre_hooks(
    trace: Trace, module: ObjectValue, args: list[Value], kwargs: dict[str, Value]
) -> list[Value]:
    for key, hook in _hook_values(trace, module, "_forward_pre_hooks"):
        if key in module.real._forward_pre_hooks_with_kwargs:
            raise Break(HOOKS, "a pre-hook that takes keywords")
        result = trace.look(call(trace, hook, [module, TupleValue(tuple(args))], {}))
        if not is_none(result):
            args = list(result.items) if isinstance(result, TupleValue) else [result]
    return args


def _forward_hooks(
    trace: Trace, module: ObjectValue, args: list[Value], kwargs: dict[str, Value], result: Value
) -> Value:
    for key, hook in _hook_values(trace, module, "_forward_hooks"):
        given: list[Value] = [module, TupleValue(tuple(args))]
        if key in module.real._forward_hooks_with_kwargs:
            given.append(DictValue({k: (Constant(k), v) for k, v in kwargs.items()}))
        changed = trace.look(call(trace, hook, [*given, result], {}))
        if not is_none(changed):
            result = changed
    return result
