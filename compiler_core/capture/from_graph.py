"""A graph that somebody else captured, as a `Captured`: torch.compile's capture with the stages after it.

In: a graph module of torch calls, as `torch.compile` gives it to a backend, and example inputs. Out:
a `Captured` without guards, effects or replacement, since the other side keeps those. Values and
symbols are those of the other capture's fake mode, so that guards which the stages add are its own.
The one instruction that a node comes from is read from its stack trace: a line of each frame.

torch passes a float that changes as a tensor and reads it in the graph; here it is an argument itself.
"""

from __future__ import annotations

import copy
import linecache
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from compiler_core.capture.wrapped_floats import take_floats
from compiler_core.errors import InternalError, register
from compiler_core.provenance import Handle, Instruction, Span
from compiler_core.stages import Captured, GraphInput

__all__ = ["captured_elsewhere", "first_span", "read_before"]

UNKNOWN_GRAPH = register(
    "CC190",
    "a graph of another capture has a form that is not compiled",
    "Cutaway compiles graphs whose tensors are all inputs and whose values are known as fake tensors.",
    "Compile the function with compiler_core.compile, which captures it itself.",
    "Pass modules' parameters and constants as inputs of the graph, as torch.compile does.",
)

_FRAME = re.compile(
    r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in [^\n]*\n'
    r"(?:    (?P<text>\S[^\n]*)\n?)?(?:    (?P<marks>[ ~^]*[~^])[ ]*(?:\n|$))?",
    re.MULTILINE,
)


def captured_elsewhere(graph: fx.GraphModule, examples: Sequence[Any], name: str) -> Captured:
    """The graph with our metadata on its nodes; `graph` itself stays as it is.

    A float that torch.compile wrapped in a tensor is a float in it (`wrapped_floats.py`).

    examples: one per placeholder; tensors tell what requires grad and is a leaf at entry.
    Raises InternalError (CC190) for a graph that holds modules or tensors itself, or no fake values.
    """
    for node in graph.graph.nodes:
        _check(node)
    ours = fx.GraphModule({}, copy.deepcopy(graph.graph))
    take_floats(ours.graph)
    instructions: dict[Handle, Instruction] = {}
    placeholders = ours.graph.find_nodes(op="placeholder")
    for node, example in zip(placeholders, examples, strict=True):
        if isinstance(node.meta["example_value"], torch.Tensor):
            node.meta["requires_grad"] = example.requires_grad
            node.meta["is_leaf"] = example.is_leaf
    for number, node in enumerate(ours.graph.nodes):
        node.meta["val"] = _value(node)
        made = dict(_instructions(node, number))
        node.meta["origins"] = frozenset(made)
        instructions |= made
    return Captured(
        name=name, graph=ours, inputs=tuple(map(_input, placeholders)), guards=(), effects=(),
        break_=None, replacement="", graph_name=name, instructions=instructions,
        grad_enabled=torch.is_grad_enabled(), inference=torch.is_inference_mode_enabled(),
    )  # fmt: skip


def read_before(captured: Captured) -> tuple[int, ...]:
    """Positions of the inputs that come as tensors of one element and are taken as Python floats."""
    values = enumerate(i.value for i in captured.inputs)
    return tuple(n for n, value in values if isinstance(value, torch.SymFloat))


def first_span(captured: Captured) -> Span | None:
    """Where the user's program first calls something of the graph."""
    spans = (i.span for i in captured.instructions.values() if i.span is not None)
    return next(spans, None)


def _check(node: fx.Node) -> None:
    if node.op in ("get_attr", "call_module"):
        raise InternalError(UNKNOWN_GRAPH, f"{node.name} is a {node.op} of {node.target!r}")
    if node.op == "placeholder" and "example_value" not in node.meta:
        raise InternalError(UNKNOWN_GRAPH, f"{node.name} has no fake value")


def _value(node: fx.Node) -> Any:
    if node.op != "output":
        return node.meta.get("example_value")
    return fx.map_arg(node.args[0], lambda made: made.meta.get("val"))


def _input(node: fx.Node) -> GraphInput:
    value = node.meta["val"]
    is_parameter = isinstance(value, torch.nn.Parameter)
    sizes = enumerate(value.shape) if isinstance(value, torch.Tensor) else ()
    dynamic = tuple(d for d, size in sizes if isinstance(size, torch.SymInt))
    return GraphInput(node.name, node.name, value, is_parameter, dynamic)


# ---------------------------------------------------------------------------------- where it is from


def _instructions(node: fx.Node, number: int) -> Iterator[tuple[Handle, Instruction]]:
    """One per frame of the stack trace, the user's outermost function first."""
    trace = node.meta.get("stack_trace") or ""
    for depth, found in enumerate(_FRAME.finditer(trace)):
        frame = "f0" + ".0" * depth
        span = _span(found)
        operation = "CALL" if node.op.startswith("call") else "LOAD"
        instruction = Instruction(operation, node.name, number, None, span)
        yield f"instr:{frame}:{number}", instruction


def _span(found: re.Match[str]) -> Span:
    """The marked columns of a line, or the whole line where nothing is marked."""
    file, line = found["file"], int(found["line"])
    text, marks = found["text"] or "", found["marks"] or ""
    indent = max(0, linecache.getline(file, line).find(text))
    start = len(marks) - len(marks.lstrip()) if marks.strip() else 0
    end = len(marks) if marks.strip() else len(text)
    return Span(file, line, line, indent + start, indent + end)
