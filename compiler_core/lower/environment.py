"""What the rules share while one graph is lowered: values of nodes, buffers, names, origins.

In: an FX graph whose nodes carry fake tensors in `meta["val"]`. Out: buffers, nests and calls, in
program order. A rule asks for its node's arguments (`arguments`), for a fresh buffer laid out as
the node's fake tensor (`fresh`), opens a nest (`nest`) and stores into it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate

from compiler_core.ir.dtypes import DType
from compiler_core.ir.index import Index, index
from compiler_core.ir.loop import Buffer, Call, Nest, View
from compiler_core.lower.nest import Names, NestBuilder
from compiler_core.lower.operands import (
    LoweredValue,
    Operand,
    contiguous,
    place_of,
    type_of,
)  # fmt: skip
from compiler_core.lower.scalars import Scalar, cast
from compiler_core.options import Context, Target
from compiler_core.provenance import NOWHERE, Handle, Origins, current, handle, union

__all__ = ["Environment", "is_view"]

# Their results share memory, though their schemas do not say so.
_UNDECLARED_VIEWS = {torch.ops.aten._unsafe_view.default, torch.ops.aten._reshape_alias.default}


class Environment:
    """The lowering of one graph, under construction."""

    def __init__(self, graph: fx.GraphModule, part: str, target: Target, context: Context):
        self.graph, self.part, self.target, self.context = graph, part, target, context
        self.names = Names({node.name for node in graph.graph.nodes})
        self.buffers: dict[str, Buffer] = {}
        self.body: list[Nest | Call] = []
        self.values: dict[fx.Node, LoweredValue] = {}
        self.absorbed: dict[fx.Node, Origins] = {}  # nodes that leave no statement: views, sizes
        self.constants: dict[fx.Node, torch.Tensor] = {}  # get_attr nodes, on the meta device
        self.floats: dict[str, Operand] = {}  # float arguments, by the name of their symbol
        traced = (node.meta.get("val") for node in graph.graph.nodes)
        devices = (val.device for val in traced if isinstance(val, torch.Tensor))
        on_target = next((d for d in devices if d.type == target.device), None)
        self._traced_on_target = on_target is not None
        self.main_device = on_target or torch.device(target.device)  # of numbers from outside

    # -------------------------------------------------------------------------- what rules read

    def arguments(self, node: fx.Node) -> dict[str, Any]:
        """The operator's arguments by schema name, defaults filled in, nodes replaced by values."""
        given: dict[str, Any] = {}
        for number, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
            if number < len(node.args):
                value: Any = node.args[number]
            else:
                value = node.kwargs.get(argument.name, argument.default_value)
            given[argument.name] = self.evaluate(value)
        return given

    def evaluate(self, argument: Any) -> Any:
        """An FX argument with every node replaced by its value."""
        return map_aggregate(argument, lambda x: self.values[x] if isinstance(x, fx.Node) else x)

    def fake(self, node: fx.Node) -> Any:
        """The fake value of a node; tensor constants have none in the graph."""
        return self.constants[node] if node in self.constants else node.meta["val"]

    def handle(self, node: fx.Node) -> Handle:
        return handle(self.part, node.name)

    def readers(self, node: fx.Node, element: int | None = None) -> Origins:
        """Who reads a node's value: its users, users of its views, and the other part's readers."""
        found: set[Handle] = set()
        for user in node.users:
            if user.target is operator.getitem and (element in (None, user.args[1])):
                found |= {self.handle(user)} | self.readers(user)
            elif user.op == "output":
                found |= node.meta.get("readers", NOWHERE)
            elif user.target is not operator.getitem and _reads_elements(user):
                found.add(self.handle(user))
                found |= self.readers(user) if is_view(user) else NOWHERE
        return frozenset(found)

    def is_used(self, node: fx.Node, element: int) -> bool:
        """Whether anything reads one of a node's several results."""
        return any(
            user.target is operator.getitem and user.args[1] == element and user.users
            for user in node.users
        )

    def device_text(self, device: torch.device) -> str:
        """Where a tensor lives on the target: the traced device, unless traced for another target."""
        return str(device) if self._traced_on_target else self.target.device

    def mark(self) -> tuple[int, int]:
        """How much there is now, for `back_to`."""
        return len(self.body), len(self.buffers)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Forget what a rule made before it refused."""
        items, buffers = mark
        del self.body[items:]
        for name in list(self.buffers)[buffers:]:
            del self.buffers[name]

    # -------------------------------------------------------------------------- what rules make

    def fresh(self, node: fx.Node, element: int | None = None) -> Operand:
        """A buffer for a node's value (or one of several), laid out as its fake tensor."""
        fake = node.meta["val"] if element is None else node.meta["val"][element]
        suffix = "" if element is None else f"_{element}"
        name = self.names.fresh(f"buf_{node.name}{suffix}")
        return self.add_buffer(place_of(fake, name, index(0)), type_of(fake), fake.device)

    def temporary(
        self, node: fx.Node, suffix: str, shape: Sequence[Index], dtype: DType, like: Operand
    ) -> Operand:
        """A row-major buffer for an intermediate result of one operator."""
        name = self.names.fresh(f"buf_{node.name}_{suffix}")
        view = View(name, tuple(shape), contiguous(shape), index(0))
        return self.add_buffer(view, dtype, torch.device(like.device))

    def add_buffer(
        self, view: View, dtype: DType, device: torch.device, role: str = "temp"
    ) -> Operand:
        """Declare `view.buffer`, with the origins of the scope's node."""
        text = self.device_text(device)
        self.buffers[view.buffer] = Buffer(
            view.buffer, dtype, view.shape, view.strides, role, text, current()
        )
        return Operand(view, dtype, text)

    @contextmanager
    def nest(
        self, node: fx.Node, shape: Sequence[Index], suffix: str = ""
    ) -> Iterator[NestBuilder]:
        """A nest over `shape`, named after the node; appended to the program at the scope's end."""
        name = self.names.fresh(f"{node.name}_{suffix}") if suffix else node.name
        builder = NestBuilder(self.names, name, shape)
        yield builder
        self.body.append(builder.build(self.origins(node)))

    def store(
        self, nest: NestBuilder, node: fx.Node, value: Scalar, element: int | None = None
    ) -> Operand:
        """Store a nest's result into a fresh buffer, in the type of the node's fake tensor."""
        target = self.fresh(node, element)
        nest.store(target, cast(value, target.dtype), readers=self.readers(node, element))
        return target

    def origins(self, node: fx.Node) -> Origins:
        """A node, with the views and size computations between it and the values that it reads."""
        return union(
            {self.handle(node)}, *(self.absorbed.get(x, NOWHERE) for x in node.all_input_nodes)
        )

    def absorb(self, node: fx.Node) -> Origins:
        """Note that a node leaves no statement: its readers carry its handle."""
        self.absorbed[node] = self.origins(node)
        return self.absorbed[node]


def is_view(node: fx.Node) -> bool:
    """Whether an operator's result aliases its operand (its schema says so)."""
    if node.target in _UNDECLARED_VIEWS:
        return True
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(
        r.alias_info is not None and not r.alias_info.is_write for r in schema.returns
    )


def _reads_elements(node: fx.Node) -> bool:
    """False for operators that look at sizes only."""
    return not isinstance(node.meta.get("val"), (int, torch.SymInt))
