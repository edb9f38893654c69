"""Functions of torch that are not operations: questions about state, grad modes, what must break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.compiler
import torch.overrides
from torch.utils import _python_dispatch as python_dispatch

from compiler_core.capture.break_kinds.autograd import CUSTOM_FUNCTION, INFERENCE
from compiler_core.capture.break_kinds.calls import CHECKS
from compiler_core.capture.break_kinds.output import SAVES
from compiler_core.capture.breaks import AUTOGRAD, GLOBAL_STATE, UNKNOWN_CALL, Break
from compiler_core.capture.comparisons import truth
from compiler_core.capture.folding import NotConstant, payload
from compiler_core.capture.iteration import items_of
from compiler_core.capture.managers import GRAD_MODES, exit_grad_mode, set_grad_mode
from compiler_core.capture.rules import RULES, breaks, folds, rule, simple
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import ListValue, TupleValue
from compiler_core.capture.values.functions import GradMode
from compiler_core.capture.values.tensor import TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

# torch 2.11 to 2.13: a class method in Python; 2.14: one in C, found by what the class stores
_APPLY: Any = vars(torch.autograd.Function)["apply"]
_APPLY = getattr(_APPLY, "__func__", _APPLY)
_JIT: Any = torch.jit

folds(torch.finfo, torch.iinfo, torch.device, torch.promote_types, torch.can_cast)
folds(torch.is_autocast_enabled, torch.get_autocast_dtype)  # guarded for every frame
breaks(AUTOGRAD, torch.autograd.grad, torch.autograd.backward)
breaks(INFERENCE, torch.inference_mode)
breaks(SAVES, torch.save, torch.load)
breaks(
    GLOBAL_STATE, torch.set_default_dtype, torch.set_default_device, torch.use_deterministic_algorithms,
    torch.manual_seed, torch.seed, torch.set_num_threads, torch.set_float32_matmul_precision, torch.autocast,
    torch.get_rng_state, torch.set_rng_state, torch.set_printoptions, torch.set_flush_denormal,
)  # fmt: skip


@rule(_APPLY)
def _apply(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise Break(CUSTOM_FUNCTION, "Function.apply")


def _states(value: Any, *functions: Any) -> None:
    """Functions without arguments whose answer is fixed, or guarded for every frame."""
    for function in functions:

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            return Constant(value if value is not None else f())

        RULES[function] = called


_states(True, torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling)
_states(
    False, _JIT.is_scripting, _JIT.is_tracing, torch.compiler.is_exporting,
    torch._C._get_tracing_state, torch.onnx.is_in_onnx_export,
)  # fmt: skip
RULES[torch._C._get_tracing_state] = lambda trace, args, kwargs: NONE
RULES[torch._C._log_api_usage_once] = lambda trace, args, kwargs: NONE  # telemetry, off by default
_states(
    None, torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.get_default_dtype,
    torch.are_deterministic_algorithms_enabled, torch.is_deterministic_algorithms_warn_only_enabled,
    torch.cuda.is_available, torch.get_float32_matmul_precision,
    torch.backends.mha.get_fastpath_enabled, torch.is_autocast_cache_enabled,
    torch._C._is_any_autocast_enabled,
)  # fmt: skip


@rule(python_dispatch._get_current_dispatch_mode_stack)
def _no_dispatch_modes(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A frame under a dispatch mode is not captured."""
    return ListValue([])


@simple(torch.is_tensor)
def _is_tensor(trace: Trace, value: Value) -> Value:
    return Constant(isinstance(value, TensorValue))


@rule(
    torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary,
    torch.overrides.has_torch_function_variadic, torch._C._has_torch_function,
    torch._C._has_torch_function_unary, torch._C._has_torch_function_variadic,
)  # fmt: skip
def _has_torch_function(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Subclasses break when they are looked at, so no argument here has one."""
    return Constant(False)


@rule(torch.Size)
def _size(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return TupleValue(tuple(items_of(trace, args[0])) if args else (), torch.Size)


# ------------------------------------------------------------------------------ grad modes


def _grad_mode_rule(cls: type, mode: bool) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args:
            raise Break(UNKNOWN_CALL, f"{cls.__name__} used as a decorator inside")
        trace.touch()
        return GradMode(cls, mode)

    RULES[cls] = called


for _cls, _mode in GRAD_MODES.items():
    if _mode is not None:
        _grad_mode_rule(_cls, _mode)


@simple(torch.set_grad_enabled)
def _set_grad_enabled(trace: Trace, mode: Value) -> Value:
    """It acts when it is made; as a context manager it goes back at the end."""
    previous, wanted = torch.is_grad_enabled(), truth(trace, mode)
    set_grad_mode(trace, wanted)
    trace.touch()
    return GradMode(torch.set_grad_enabled, wanted, previous)


@simple(torch._C._set_grad_enabled)
def _set_grad_enabled_now(trace: Trace, mode: Value) -> Value:
    set_grad_mode(trace, truth(trace, mode))
    return NONE


@rule(torch.no_grad.__exit__, torch.enable_grad.__exit__, torch.set_grad_enabled.__exit__)
def _exit(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`__exit__` of a mode that was entered before this graph began."""
    exit_grad_mode(trace, trace.look(args[0]))
    return NONE


# ------------------------------------------------------------------------------ the rest


@rule(torch._assert)
def _assert(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.breaks import raise_real

    if isinstance(trace.look(args[0]), TensorValue):
        raise Break(CHECKS, "torch._assert")
    if truth(trace, args[0]):
        return NONE
    try:
        raise raise_real(AssertionError(payload(trace, args[1])))
    except NotConstant:
        raise raise_real(AssertionError()) from None


@rule(torch._check)
def _check(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if isinstance(trace.look(args[0]), TensorValue):
        raise Break(CHECKS, "torch._check")
    if not truth(trace, args[0]):
        raise Break(CHECKS, "torch._check of a condition that does not hold")
    return NONE
