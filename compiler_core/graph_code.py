"""What runs in place of a captured graph: generated code, a backend's callable, or the graph itself.

In: a `Captured` and the request. Out: a callable on the graph's inputs. When the backend fails, the
graph runs in eager and the reason is recorded; `strict`, and mistakes of the user, raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from compiler_core.counters import counters
from compiler_core.devtools.copies import copy_of
from compiler_core.errors import BACKEND_FAILED, BackendFailed
from compiler_core.extra_target import extra_target
from compiler_core.logs import wants
from compiler_core.options import Context, Options, Target
from compiler_core.pipeline import Compilation, compile_captured
from compiler_core.recording import Recorder
from compiler_core.request import Request
from compiler_core.stage_records import captured_records, shared_records, target_records
from compiler_core.stages import Captured

__all__ = ["first_call", "graph_code", "left_to_eager"]

GraphCode = Callable[..., Any]


def graph_code(captured: Captured, request: Request, context: Context) -> GraphCode:
    """The graph's code by the chosen backend; in eager, with the reason recorded, when that fails."""
    if not captured.has_graph:  # the replacement calls nothing
        context.recorder.here.stages.extend(captured_records(captured))
        return captured.graph.forward
    backend = (
        _BACKENDS.get(request.backend, _custom) if isinstance(request.backend, str) else _custom
    )
    try:
        return backend(captured, request, context)
    except Exception as error:
        if request.shows(error):
            raise
        return left_to_eager(captured.graph, captured.name, error, context.recorder)


def first_call(
    call: GraphCode, globals_: dict[str, Any], name: str, recorder: Recorder
) -> GraphCode:
    """What stands under the graph's name at first: runs it, counts it, then leaves `call` in its place."""
    version, has_run = recorder.here.name, False

    def run(*inputs: Any) -> Any:
        nonlocal has_run
        if recorder.keeps_inputs and not has_run:
            recorder.inputs[version] = [copy_of(value) for value in inputs]
        outputs = call(*inputs)
        counters.graphs += not has_run
        has_run = True
        if globals_.get(name) is run:
            globals_[name] = call
        return outputs

    return run


def _generated(captured: Captured, request: Request, context: Context) -> GraphCode:
    recorder = context.recorder
    compilation = compile_captured(captured, _targets(captured, request.options), context)
    if recorder.keeps_text:  # somebody asked to see it; else its values die with the compile
        recorder.compilations[recorder.here.name] = compilation
    _record_stages(compilation, context)
    _count_operators(compilation)
    return compilation.call


def _eager(captured: Captured, request: Request, context: Context) -> GraphCode:
    context.recorder.here.stages.extend(captured_records(captured))
    counters.ops_eager += sum(n.op.startswith("call") for n in captured.graph.graph.nodes)
    return captured.graph.forward


def _custom(captured: Captured, request: Request, context: Context) -> GraphCode:
    """Any `backend(graph_module, example_inputs)` of the ecosystem; the examples are fake tensors."""
    assert not isinstance(request.backend, str)
    context.recorder.here.stages.extend(captured_records(captured))
    name = getattr(request.backend, "__name__", repr(request.backend))
    try:
        call = request.backend(captured.graph, [i.value for i in captured.inputs])
    except Exception as error:
        raise BackendFailed(BACKEND_FAILED, f"{name}: {type(error).__name__}: {error}") from error
    if not callable(call):
        raise BackendFailed(
            BACKEND_FAILED, f"{name} returned {type(call).__name__}, not a callable"
        )
    return call


_BACKENDS = {"cutaway": _generated, "eager": _eager}


def left_to_eager(
    graph: fx.GraphModule, name: str, error: Exception, recorder: Recorder
) -> GraphCode:
    """The graph itself, counted and recorded as a fallback with the error as its reason."""
    counters.fallbacks += 1
    failure = f"{type(error).__name__}: {error}"
    recorder.decide("fallback", {f"capture:{name}"}, "eager", failure)
    return graph.forward


def _targets(captured: Captured, options: Options) -> list[Target]:
    """The target that is called (from the inputs' device unless named), then those to show."""
    named = [Target.parse(t) for t in options.also]
    if options.target != "auto":
        return [Target.parse(options.target), *named]
    devices = [i.value.device for i in captured.inputs if isinstance(i.value, torch.Tensor)]
    cuda = next((d for d in devices if d.type == "cuda"), None)
    if cuda is None:
        return [Target("cpu"), *named]
    major, minor = torch.cuda.get_device_capability(cuda)
    return [Target("cuda", 10 * major + minor), *named]


def _record_stages(compilation: Compilation, context: Context) -> None:
    recorder = context.recorder
    if not recorder.keeps_text and not wants("output_code"):
        return
    stages, (called, *others) = recorder.here.stages, compilation.targets
    with recorder.phase("recording"):
        stages.extend(shared_records(compilation))
        stages.extend(target_records(compilation, called))
        for target in others:
            with extra_target(target, context):
                stages.extend(list(target_records(compilation, target)))  # all of it or nothing


def _count_operators(compilation: Compilation) -> None:
    for code in next(iter(compilation.targets.values())).values():
        calls = sum(type(item).__name__ == "Call" for item in code.lowered.program.body)
        counters.ops_library += calls
        counters.ops_generated += len(code.lowered.program.body) - calls
