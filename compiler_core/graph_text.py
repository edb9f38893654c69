"""FX graphs as text: one line a node, with type, user's line and nothing else.

In: an `fx.GraphModule` whose nodes have `meta["val"]`. Out: lines that read like Python, and the
line number of each node; below, the graphs that a control flow operator names. Printing is deterministic: names come from the graph, sizes from fakes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from compiler_core.control_flow import graph_named
from compiler_core.ir.dtypes import dtype_of

__all__ = ["print_graph", "target_text", "type_text"]

_SYMBOLS: dict[Any, str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.lt: "<", operator.le: "<=",
    operator.gt: ">", operator.ge: ">=", operator.eq: "==", operator.ne: "!=", operator.and_: "&",
    operator.or_: "|", operator.xor: "^",
}  # fmt: skip


def print_graph(graph: fx.GraphModule, name: str) -> tuple[str, dict[str, int]]:
    """The text of a graph as a function called `name`, and the 1-based line of each node."""
    lines: list[str] = []
    at: dict[str, int] = {}
    _write(graph, name, lines, at)
    for inner, inside in _inner_graphs(graph).items():
        lines += ["", ""]
        _write(inside, inner, lines, {})
    return "\n".join(lines) + "\n", at


def _write(graph: fx.GraphModule, name: str, lines: list[str], at: dict[str, int]) -> None:
    lines.append(f"def {name}(")
    for node in graph.graph.find_nodes(op="placeholder"):
        annotation = f": {type_text(node.meta['val'])}" if "val" in node.meta else ""
        lines.append(f"    {node.name}{annotation},")
        at[node.name] = len(lines)
    lines.append("):")
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            continue
        lines.append("    " + _line(node))
        at[node.name] = len(lines)


def _inner_graphs(graph: fx.GraphModule) -> dict[str, fx.GraphModule]:
    """The graphs that operators name in their arguments, and those that are named in these."""
    found: dict[str, fx.GraphModule] = {}
    for node in graph.graph.nodes:
        named = {a: graph_named(a) for a in node.args if isinstance(a, str)}
        for name, inner in named.items():
            if inner is not None and node.op == "call_function":
                found |= {name: inner, **_inner_graphs(inner)}
    return found


def type_text(value: Any) -> str:
    """`f32[8, s0]` for a tensor (fake or real), with the device when it is not the CPU; else the type."""
    if isinstance(value, torch.Tensor):
        row = dtype_of(value.dtype)
        dtype = row.name if row else str(value.dtype).removeprefix("torch.")
        device = "" if value.device.type == "cpu" else f" {value.device}"
        return f"{dtype}[{', '.join(str(s) for s in value.shape)}]{device}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(type_text(v) for v in value)})"
    if isinstance(value, torch.SymInt):
        return f"int {value}"
    return type(value).__name__


def _line(node: fx.Node) -> str:
    if node.op == "output":
        return f"return {_argument(node.args[0])}"
    value = node.meta.get("val")
    annotation = f": {type_text(value)}" if value is not None else ""
    return f"{node.name}{annotation} = {_expression(node)}"


def _expression(node: fx.Node) -> str:
    if node.op == "get_attr":
        return f"self.{node.target}"
    arguments = [_argument(a) for a in node.args]
    if node.target is operator.getitem:
        return f"{arguments[0]}[{_subscript(node.args[1])}]"
    if node.target is operator.setitem:
        return f"setitem({', '.join(arguments)})"
    if node.target in _SYMBOLS and len(arguments) == 2:
        return f"{arguments[0]} {_SYMBOLS[node.target]} {arguments[1]}"
    keywords = [f"{key}={_argument(value)}" for key, value in node.kwargs.items()]
    if node.op == "call_method":
        return f"{arguments[0]}.{node.target}({', '.join(arguments[1:] + keywords)})"
    return f"{target_text(node.target)}({', '.join(arguments + keywords)})"


def target_text(target: Callable[..., Any] | str) -> str:
    """`aten.mul.Tensor`, `torch.sin`, `torch.nn.functional.gelu`: what a reader would type."""
    if isinstance(target, str):
        return target
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(target).removeprefix("torch.ops.")
    name = getattr(target, "__name__", repr(target))
    for module in (torch, torch.nn.functional):
        if getattr(module, name, None) is target:
            return f"{module.__name__}.{name}"
    owner = getattr(target, "__module__", None)
    return f"{owner}.{name}" if owner and owner != "builtins" else name


def _subscript(index: Any) -> str:
    return (
        ", ".join(_argument(i) for i in index)
        if isinstance(index, tuple) and index
        else _argument(index)
    )


def _argument(value: Any) -> str:
    match value:
        case fx.Node():
            return value.name
        case tuple() if len(value) == 1:
            return f"({_argument(value[0])},)"
        case tuple():
            return f"({', '.join(map(_argument, value))})"
        case list():
            return f"[{', '.join(map(_argument, value))}]"
        case dict():
            return "{" + ", ".join(f"{k!r}: {_argument(v)}" for k, v in value.items()) + "}"
        case slice():
            parts = ["" if p is None else _argument(p) for p in (value.start, value.stop)]
            step = "" if value.step is None else f":{_argument(value.step)}"
            return f"{parts[0]}:{parts[1]}{step}"
        case torch.dtype() | torch.device() | torch.layout() | torch.memory_format():
            return str(value)
        case _:
            return "..." if value is Ellipsis else repr(value)
