"""`torch.compile(model, backend="cutaway")`: torch's capture, our stages after it.

In: a graph module and example inputs, from whatever calls a backend of torch. Out: a callable on the
graph's inputs. What fails inside runs the graph in eager with a recorded reason; `strict` raises.
The entry point `torch_dynamo_backends` of the distribution names `cutaway`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from torch import fx

from compiler_core.capture import captured_elsewhere, first_span, read_before
from compiler_core.graph_code import GraphCode, first_call, graph_code, left_to_eager
from compiler_core.interception import HOOK, SESSION, compiling
from compiler_core.logs import log_version
from compiler_core.options import Context
from compiler_core.recording import FIRST_CALL
from compiler_core.request import Request, checked_request
from compiler_core.stages import Captured

__all__ = ["cutaway"]

_numbers = itertools.count()


def cutaway(
    graph_module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> GraphCode:
    """Code for a graph that torch.compile captured.

    example_inputs: tensors, or integers for symbolic sizes, in the order of the placeholders.
    mode, options: as in `compiler_core.compile`.
    Raises OptionError for what these do not take; under strict also what fails in a stage.
    """
    request = checked_request(False, None, "cutaway", mode, options)
    name = f"torch_graph_{next(_numbers)}"
    with compiling():
        try:
            captured = captured_elsewhere(graph_module, example_inputs, name)
        except Exception as error:
            if request.shows(error):
                raise
            return left_to_eager(graph_module, name, error, SESSION.recorder)
        return _compiled(captured, request)


def _compiled(captured: Captured, request: Request) -> GraphCode:
    recorder, span = SESSION.recorder, first_span(captured)
    file, line = (span.file, span.line) if span else ("", 0)
    with recorder.version(captured.name, file, line, captured.graph.code, FIRST_CALL) as version:
        call = HOOK.opaque(graph_code(captured, request, Context(request.options, recorder)))
        log_version(version)
        first: GraphCode = HOOK.opaque(first_call(call, {}, captured.name, recorder))
        return _reading(first, read_before(captured))


def _reading(call: GraphCode, floats: Sequence[int]) -> GraphCode:
    """`call` on arguments of which some are tensors that hold a Python float."""
    if not floats:
        return call

    def reading(*inputs: Any) -> Any:
        values = list(inputs)
        for number in floats:
            values[number] = values[number].item()
        return call(*values)

    opaque: GraphCode = HOOK.opaque(reading)
    return opaque
