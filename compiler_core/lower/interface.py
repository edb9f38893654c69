"""The edges of a program: arguments, size symbols, tensor constants, results, mutated arguments.

In: placeholders, `get_attr` and the output node. Out: buffers with roles, the order of arguments,
where each size symbol is read, and what is returned.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import sympy
import torch
from torch import fx

from compiler_core.errors import InternalError, register
from compiler_core.ir.dtypes import DTYPES
from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import Program, View
from compiler_core.lower.environment import Environment
from compiler_core.lower.nest import NestBuilder
from compiler_core.lower.operands import (
    LoweredValue,
    Operand,
    contiguous,
    index_of,
    indices_of,
    place_of,
    type_of,
)  # fmt: skip
from compiler_core.lower.scalars import F64, I64, Scalar, apply, where
from compiler_core.lower.sizes import SizeNumber
from compiler_core.provenance import at

__all__ = ["BIG_CONSTANT", "UNKNOWN_SIZE", "Interface"]

UNKNOWN_SIZE = register(
    "CC301",
    "a size is not known when the program starts",
    "Every size is read from an argument's dimensions or is an integer argument; this one depends "
    "on the elements of a tensor, or stands in a stride alone.",
    "Leave the operator that makes it (nonzero, item, unique) outside the compiled region.",
)
BIG_CONSTANT = register(
    "CC303",
    "a tensor constant is too large to write into a program",
    "Programs hold no tensors; small constants become numbers in a nest.",
    "Pass the tensor as an argument, or register it as a buffer of the module.",
)
NO_NUMBER = register(
    "CC304",
    "a scalar argument is neither an integer nor a float",
    "The arguments of a program are tensors, integers and floats; other numbers are part of its text.",
    "Let the capture guard on the number, or pass it as a tensor.",
)

# elements of a tensor constant that becomes a chain of numbers
_CONSTANT_LIMIT = 64


class Interface:
    """Arguments and symbols so far."""

    def __init__(self, env: Environment):
        self.env = env
        self.inputs: list[str] = []
        self.symbols: dict[str, tuple[str, int] | None] = {}

    def placeholder(self, node: fx.Node) -> LoweredValue:
        """Declare an argument. Raises InternalError (CC304) for a number of another kind."""
        fake = node.meta["val"]
        if isinstance(fake, torch.Tensor):
            self.inputs.append(node.name)
            view = place_of(fake, node.name, index(0))
            return self.env.add_buffer(view, type_of(fake), fake.device, role="in")
        if isinstance(fake, (float, torch.SymFloat)):
            return self._float(node, fake)
        if fake is not None and not isinstance(fake, (int, torch.SymInt)):
            raise InternalError(NO_NUMBER, f"{node.name} = {fake!r}")
        return self._integer(node, fake)

    def _integer(self, node: fx.Node, value: int | torch.SymInt | None) -> LoweredValue:
        size = None if value is None else index_of(value)
        name = node.name
        if isinstance(size, Sym) and size.name not in self.symbols:
            name = size.name
        self.symbols[name] = None
        self.inputs.append(name)
        self.env.names.taken.add(name)
        return size

    def _float(self, node: fx.Node, value: float | torch.SymFloat) -> LoweredValue:
        """A Python float: memory of one f64 element, so that a kernel reads it as any other."""
        self.inputs.append(node.name)
        view = View(node.name, (), (), index(0))
        memory = self.env.add_buffer(view, F64, self.env.main_device, role="const")
        expr = value.node.expr if isinstance(value, torch.SymFloat) else None
        symbol = expr if isinstance(expr, sympy.Symbol) else sympy.Symbol(node.name)
        self.env.floats[str(symbol)] = memory
        return SizeNumber(symbol, self.env.floats)

    def constant(self, node: fx.Node) -> Operand:
        """A tensor attribute of the graph as numbers. Raises InternalError (CC303) for a large one."""
        tensor = _attribute(self.env.graph, str(node.target))
        if tensor.numel() > _CONSTANT_LIMIT or type_of(tensor).name not in DTYPES:
            detail = f"{node.target}: {tensor.dtype} {list(tensor.shape)}"
            raise InternalError(BIG_CONSTANT, detail)
        self.env.constants[node] = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
        shape = indices_of(tensor.shape)
        name = self.env.names.fresh(f"buf_{node.name}")
        view = View(name, shape, contiguous(shape), index(0))
        target = self.env.add_buffer(view, type_of(tensor), tensor.device)
        with self.env.nest(node, shape) as nest:
            nest.store(target, _table(nest, tensor), readers=self.env.readers(node))
        return target

    def finish(self, node: fx.Node) -> Program:
        """The program that returns what the output node does."""
        returned = node.args[0]
        values = list(
            self.env.evaluate(returned if isinstance(returned, (tuple, list)) else (returned,))
        )
        nodes = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        mutated = dict(self.env.graph.meta.get("mutated", ()))
        overwritten = {self.inputs[i] for i in mutated}
        for k, value in enumerate(values):
            if isinstance(value, Operand) and self._needs_copy(value, k, mutated, overwritten):
                values[k] = self._copied(nodes[k], value)
        outputs = tuple(self._result(value) for value in values)
        pairs = tuple((self.inputs[i], outputs[k]) for i, k in mutated.items())
        self._check_symbols()
        env = self.env
        return Program(
            env.part, self.symbols, env.buffers, tuple(env.body), tuple(self.inputs), outputs, pairs
        )

    def _needs_copy(
        self, value: Operand, position: int, mutated: dict[int, int], overwritten: set[str]
    ) -> bool:
        """An argument that is written at the end cannot also be returned; its new value is a buffer."""
        buffer = self.env.buffers[value.view.buffer]
        is_part = not _is_whole(value.view, buffer.shape, buffer.strides)
        is_new_value = position in mutated.values()
        return buffer.name in overwritten or (is_new_value and (buffer.role == "in" or is_part))

    def _copied(self, node: Any, value: Operand) -> Operand:
        """A copy with the same strides; a dimension of stride 0 is copied once."""
        view = value.view
        once = tuple(
            index(1) if step.constant == 0 else n for n, step in zip(view.shape, view.strides)
        )
        with at({self.env.handle(node)}):
            name = self.env.names.fresh(f"buf_{node.name}_copy")
            whole = View(name, once, view.strides, index(0))
            target = self.env.add_buffer(whole, value.dtype, torch.device(value.device))
            with self.env.nest(node, once, "copy") as nest:
                nest.store(target, nest.load(value, nest.positions))
        return replace(target, view=replace(whole, shape=view.shape))

    def _result(self, value: LoweredValue) -> Any:
        if isinstance(value, Index):
            return value if value.constant is None else value.constant
        if isinstance(value, SizeNumber) and value.argument is not None:
            return value.argument.view.buffer
        if not isinstance(value, Operand):
            return value
        buffer = self.env.buffers[value.view.buffer]
        if buffer.role == "temp":
            self.env.buffers[buffer.name] = replace(buffer, role="out")
        is_whole = _is_whole(value.view, buffer.shape, buffer.strides)
        return buffer.name if is_whole else value.view

    def _check_symbols(self) -> None:
        """Find where each size is read. Raises InternalError (CC301) for one that no argument tells."""
        buffers = self.env.buffers
        for name in self.inputs:
            for dim, size in enumerate(buffers[name].shape if name in buffers else ()):
                if isinstance(size, Sym):
                    self.symbols.setdefault(size.name, (name, dim))
        missing = set().union(
            *(e.names for b in buffers.values() for e in (*b.shape, *b.strides))
        ) - set(self.symbols)
        if missing:
            raise InternalError(UNKNOWN_SIZE, ", ".join(sorted(missing)))


def _is_whole(view: View, shape: tuple[Index, ...], strides: tuple[Index, ...]) -> bool:
    return (view.shape, view.strides, view.offset) == (shape, strides, index(0))


def _attribute(graph: fx.GraphModule, path: str) -> torch.Tensor:
    tensor: torch.Tensor = operator.attrgetter(path)(graph)
    return tensor


def _table(nest: NestBuilder, tensor: torch.Tensor) -> Scalar:
    """The element at the nest's position, chosen among all."""
    dtype = type_of(tensor)
    elements = [nest.constant(x, dtype) for x in tensor.flatten().tolist()]
    if not elements:
        return nest.constant(0, dtype)
    if len(elements) == 1:
        return elements[0]
    flat = index(0)
    for position, stride in zip(nest.positions, contiguous(indices_of(tensor.shape)), strict=True):
        flat = flat + position * stride
    place, value = nest.position(flat, I64), elements[-1]
    for number, element in reversed(list(enumerate(elements[:-1]))):
        value = where(apply("eq", place, number), element, value)
    return value
