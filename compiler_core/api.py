"""The public interface: `compile` and its companions. Arguments are checked here, nothing else is done.

In: a function or module and what the user asks for. Out: a callable that compiles the frames it
runs (`interception.py`).
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch

from compiler_core.arguments import check_callable, check_names, check_switch
from compiler_core.compiled_module import compiled_class
from compiler_core.counters import Counters, counters
from compiler_core.errors import (
    ALREADY_RECORDING,
    BAD_VALUE,
    STAYS_FIXED,
    OptionError,
    warning_text,
)
from compiler_core.explanation import Explanation, why_nothing
from compiler_core.frame_memory import forget_frames
from compiler_core.interception import HOOK, SESSION, original_of, watched
from compiler_core.logs import set_logs
from compiler_core.recording import Recorder
from compiler_core.request import Request, checked_request

__all__ = [
    "compile",
    "compile_module",
    "disable",
    "explain",
    "mark_dynamic",
    "mark_static",
    "record",
    "reset",
    "set_logs",
    "stats",
]


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "cutaway",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function or module; the arguments mean what they mean in `torch.compile`.

    model: a function, a bound method, an `nn.Module` (the result shares everything with it: same
        parameters, `state_dict`, train/eval), or None to use this as a decorator.
    fullgraph: raise GraphBreakError at a graph break instead of splitting the function.
    dynamic: None: a size is static until `mark_dynamic` names it or a later call changes it. True:
        every size of an argument, and every int that is passed, is a symbol from the first call on
        (0 and 1 are not, nor are sizes of parameters). False: only `mark_dynamic` makes symbols.
    backend: "cutaway", "eager" (the capture alone) or any `callable(graph_module, example_inputs)`.
    mode: None or "default".
    options: names of `compiler_core.options.Options`, such as `{"strict": True}`.
    disable: return `model` as it is.

    Raises OptionError for a bad value, BackendNotFound, NotSupportedYet. Compiling happens at the
    first call with new guards' values; what fails inside falls back to eager with a recorded reason.
    """
    request = checked_request(fullgraph, dynamic, backend, mode, options)
    check_switch("disable", disable)
    if model is None:
        return lambda later: later if disable else _compiled(later, request)
    return model if disable else _compiled(model, request)


def compile_module(module: torch.nn.Module, **arguments: Any) -> torch.nn.Module:
    """Compile a module in place: calling it compiles from now on. Returns the same object."""
    if not isinstance(module, torch.nn.Module):
        raise OptionError(
            BAD_VALUE, f"compile_module takes an nn.Module, not {type(module).__name__}"
        )
    check_names("compile_module", arguments, _DEFAULTS)
    request = checked_request(**{**_DEFAULTS, **arguments})
    module.__class__ = _class_of(module, request)
    return module


_DEFAULTS: dict[str, Any] = {
    "fullgraph": False, "dynamic": None, "backend": "cutaway", "mode": None, "options": None,
}  # fmt: skip


def _compiled(model: Any, request: Request) -> Any:
    if isinstance(model, torch.nn.Module):
        twin = object.__new__(_class_of(model, request))
        twin.__dict__ = model.__dict__  # the same module, seen through a class whose call compiles
        return twin
    check_callable("compile", model)
    return watched(original_of(model), request)


def _class_of(model: torch.nn.Module, request: Request) -> type[torch.nn.Module]:
    def predicted(*call: Any) -> Any:
        from compiler_core.prediction import predict

        return predict(call[0], request, HOOK.entries, *call[1:])

    return compiled_class(type(model), request, lambda call: watched(call, request), predicted)


def disable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that always runs in eager, also when compiled code calls it.

    Raises OptionError for what cannot be called.
    """
    if not callable(fn):
        what = f"{type(fn).__name__} ({fn!r})"
        raise OptionError(BAD_VALUE, f"disable takes a function or another callable, not {what}")
    disabled: Callable[..., Any] = HOOK.disable(fn)
    return disabled


def mark_dynamic(tensor: torch.Tensor, *dims: int) -> None:
    """Give dimensions a size symbol at the next capture, so that one version serves all sizes ≥ 2.

    A size of 0 or 1 stays fixed, and a warning says so. Raises OptionError for a dimension that the
    tensor does not have.
    """
    _mark("mark_dynamic", "_cutaway_dynamic", tensor, dims)
    for dim in dims:
        if tensor.shape[dim] < 2:
            what = f"dimension {dim} has size {tensor.shape[dim]}"
            warnings.warn(warning_text(STAYS_FIXED, what), RuntimeWarning, stacklevel=2)


def mark_static(tensor: torch.Tensor, *dims: int) -> None:
    """Keep dimensions (all, if none is named) plain numbers, also when they change or `dynamic=True`.

    Each of their sizes is compiled for. Raises OptionError for a dimension that the tensor does not have.
    """
    every = range(tensor.dim()) if isinstance(tensor, torch.Tensor) else ()
    _mark("mark_static", "_cutaway_static", tensor, dims or tuple(every))


def _mark(function: str, name: str, tensor: torch.Tensor, dims: tuple[int, ...]) -> None:
    if not isinstance(tensor, torch.Tensor) or not (dims or function == "mark_static"):
        what = f"{type(tensor).__name__} and {len(dims)} dimensions"
        raise OptionError(BAD_VALUE, f"{function} takes a tensor and its dimensions, not {what}")
    for dim in dims:
        if not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim():
            raise OptionError(
                BAD_VALUE, f"dimension {dim!r} of a tensor with {tensor.dim()} dimensions"
            )
    known: set[int] = getattr(tensor, name, set())
    setattr(tensor, name, known | {dim % tensor.dim() for dim in dims})


def record(explore: bool = False, inputs: bool = False) -> AbstractContextManager[Recorder]:
    """Collect what the compiles inside leave behind: `with record() as r: …; r.recording.save(path)`.

    Only compiles leave something: what was compiled before runs as it is (`reset()` forgets it).

    explore: also every instruction and every rewrite (about twice the compile time).
    inputs: also copies of each graph's first inputs (`r.inputs`), so that its stages can be run.
    Raises OptionError for other values, and on entry inside another `record()`.
    """
    check_switch("explore", explore)
    check_switch("inputs", inputs)
    return _alone(Recorder(explore, True, inputs))


@contextmanager
def _alone(recorder: Recorder) -> Iterator[Recorder]:
    if SESSION.recorder.keeps_text:
        raise OptionError(ALREADY_RECORDING)
    with SESSION.recording(recorder):
        yield recorder


def explain(fn: Callable[..., Any], *inputs: Any, **arguments: Any) -> Callable[..., Explanation]:
    """`explain(fn)(*args)` compiles and runs `fn` afresh and says what happened, as a value that prints.

    arguments: those of `compile`. An exception of `fn` itself is raised, as by a call.
    Raises OptionError for what cannot be called, for other arguments, and for `explain(fn, *args)`.
    """
    check_callable("explain", fn)
    if inputs:
        what = "explain takes the function alone; pass its arguments behind: explain(fn)(x, y)"
        raise OptionError(BAD_VALUE, what)
    check_names("explain", arguments, _DEFAULTS)
    asked = checked_request(**{**_DEFAULTS, **arguments})

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        before = stats()
        recorder = Recorder(keeps_text=True)
        with SESSION.recording(recorder):
            request = replace(asked)  # a request of its own: no version was compiled for it yet
            _compiled(_afresh(original_of(fn)), request)(*args, **kwargs)
        return Explanation.of(recorder.recording, before, stats(), why_nothing(original_of(fn)))

    explained.__qualname__ = f"explain({getattr(fn, '__name__', type(fn).__name__)})"
    return explained


def _afresh(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function or method under a code object of its own, about which nothing was decided yet."""
    if isinstance(fn, types.MethodType):
        return types.MethodType(_afresh(fn.__func__), fn.__self__)
    if not isinstance(fn, types.FunctionType):
        return fn
    copy = types.FunctionType(
        fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    copy.__kwdefaults__ = fn.__kwdefaults__
    functools.update_wrapper(copy, fn)
    return copy


def stats() -> Counters:
    """The counters of this process, as a copy."""
    return counters.snapshot()


def reset() -> None:
    """Forget every compiled version, the counters and the process's own recording; not that of a `record()`."""
    HOOK.reset()
    counters.clear()
    forget_frames()
    if not SESSION.recorder.keeps_text:
        SESSION.recorder = Recorder()
