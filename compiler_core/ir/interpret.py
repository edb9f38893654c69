"""The reference interpreter: what a program of the loop IR means, on real tensors.

In: a `Program` and its arguments. Out: the tuple it returns. Every stage after `lower` is compared with
this, so it is written to be checked by eye: nests run in order (`interpret_nest.py`), library calls
are the ATen operators themselves, memory is one flat tensor per buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from compiler_core.ir.arguments import check_arguments
from compiler_core.ir.index import Index
from compiler_core.ir.interpret_nest import Trace, run_nest
from compiler_core.ir.loop import Block, Buffer, Call, Loop, Nest, Program, Reduce, Store, View

__all__ = ["Trace", "numbers_of", "operator_of", "run_program"]


@torch.no_grad()
def run_program(
    program: Program, inputs: Sequence[Any], trace: Trace | None = None
) -> tuple[Any, ...]:
    """Run a program on its arguments (tensors and integers, in the order of `program.inputs`).

    The program runs where the tensors are, whatever device its text names. `trace` is called with
    (nest, statement, its value at every position of the axes around it). Raises TypeError or
    ValueError for an argument that is not as declared, IndexError for an offset outside a buffer.
    """
    machine = _Machine.start(program, inputs)
    for item in program.body:
        if isinstance(item, Nest):
            run_nest(item, machine.memory, machine.sizes, machine.device_of(item), trace)
        else:
            machine.call(item)
    results = tuple(machine.result(output) for output in program.outputs)
    for target, source in program.mutated:
        machine.arguments[target].copy_(machine.result(source))
    return results


def operator_of(target: str) -> Any:
    """The operator of a call's target: 'aten.mm.default'. Raises AttributeError if there is none."""
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found


def numbers_of(operator: Any, call: Call) -> set[int | str]:
    """Arguments of a call, by position or name, that hold memory where a number is asked for."""
    given: list[tuple[int | str, Any]] = [*enumerate(call.args), *call.kwargs]
    memory = {key for key, value in given if isinstance(value, View)}
    wanted = operator._schema.arguments
    tensors: set[int | str] = {
        key for k, a in enumerate(wanted) if "Tensor" in str(a.type) for key in (k, a.name)
    }
    return memory - tensors


@dataclass(frozen=True, slots=True)
class _Machine:
    """Memory and sizes of one run."""

    program: Program
    sizes: dict[str, int]
    arguments: dict[str, Any]  # as they were passed
    memory: dict[str, torch.Tensor]  # of each buffer, from its first element, one dimension
    devices: dict[str, torch.device]  # that of the program's text → that of this run

    @classmethod
    def start(cls, program: Program, inputs: Sequence[Any]) -> _Machine:
        """Bind arguments and sizes, allocate the rest."""
        sizes = check_arguments(program, inputs)
        arguments = dict(zip(program.inputs, inputs))
        machine = cls(program, sizes, arguments, {}, {})
        for name, value in arguments.items():
            if name in program.buffers:
                machine._bind(program.buffers[name], value)
        for name, buffer in program.buffers.items():
            if name not in machine.memory:
                machine.memory[name] = _garbage(
                    machine.span(buffer), buffer.dtype.torch, machine.device(buffer.device)
                )
        return machine

    def _bind(self, buffer: Buffer, value: Any) -> None:
        """An argument, checked before, as memory."""
        if isinstance(value, float):
            value = torch.tensor(value, dtype=torch.float64)
        self.devices.setdefault(buffer.device, value.device)
        flat = value.detach().as_strided((self.span(buffer),), (1,), value.storage_offset())
        self.memory[buffer.name] = flat

    def device(self, text: str) -> torch.device:
        """Where a device of the program's text is in this run."""
        if text not in self.devices:
            present = torch.device(text).type != "cuda" or torch.cuda.is_available()
            self.devices[text] = torch.device(text if present else "cpu")
        return self.devices[text]

    def device_of(self, nest: Nest) -> torch.device:
        return next((self.memory[name].device for name in _stored(nest.body)), torch.device("cpu"))

    def numbers(self, parts: Sequence[Index]) -> tuple[int, ...]:
        return tuple(part.evaluate(self.sizes) for part in parts)

    def span(self, layout: Buffer | View) -> int:
        """The number of elements from the first to the last of a layout."""
        shape, strides = self.numbers(layout.shape), self.numbers(layout.strides)
        if 0 in shape:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))

    def tensor(self, view: Buffer | View) -> torch.Tensor:
        """A buffer, or a view of one, as a tensor over its memory."""
        name = view.buffer if isinstance(view, View) else view.name
        offset = view.offset.evaluate(self.sizes) if isinstance(view, View) else 0
        flat = self.memory[name]
        if offset < 0 or ((span := self.span(view)) and offset + span > len(flat)):
            raise IndexError(f"{view} reaches outside {name}, which has {len(flat)} elements")
        shape, strides = self.numbers(view.shape), self.numbers(view.strides)
        return flat.as_strided(shape, strides, flat.storage_offset() + offset)

    def call(self, call: Call) -> None:
        """Run a library kernel and bind what it returns, laid out as declared."""
        target, kwargs = operator_of(call.target), dict(call.kwargs)
        numbers = numbers_of(target, call)
        args = [self.argument(value, k in numbers) for k, value in enumerate(call.args)]
        found = target(*args, **{k: self.argument(v, k in numbers) for k, v in kwargs.items()})
        results = found if isinstance(found, tuple | list) else (found,)
        for name, result in zip(call.outputs, results):
            if name is not None:
                self._bind_result(call, self.program.buffers[name], result)

    def _bind_result(self, call: Call, buffer: Buffer, result: torch.Tensor) -> None:
        shape, strides = self.numbers(buffer.shape), self.numbers(buffer.strides)
        if result.dtype != buffer.dtype.torch or tuple(result.shape) != shape:
            raise TypeError(
                f"call {call.name}: {buffer.name} is {buffer.dtype.torch} of sizes {shape}, the "
                f"operator gave {result.dtype} of {tuple(result.shape)}"
            )
        place = torch.empty(self.span(buffer), dtype=result.dtype, device=result.device)
        place.as_strided(shape, strides).copy_(result)
        self.memory[buffer.name] = place

    def argument(self, value: Any, is_number: bool = False) -> Any:
        match value:
            case View():
                return self.tensor(value).item() if is_number else self.tensor(value)
            case Index():
                return value.evaluate(self.sizes)
            case torch.device():
                return self.device(str(value))
            case tuple() | list():
                return [self.argument(part) for part in value]
        return value

    def result(self, output: Any) -> Any:
        """What the program returns for one output."""
        if isinstance(output, str) and output in self.arguments:
            return self.arguments[output]
        if isinstance(output, str):
            return self.tensor(self.program.buffers[output])
        return self.argument(output)


def _garbage(length: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Memory that makes a read before the first write show: NaN, or the largest integer."""
    memory = torch.empty(length, dtype=dtype, device=device)
    if dtype.is_floating_point or dtype.is_complex:
        return memory.fill_(float("nan"))
    return memory.fill_(True if dtype is torch.bool else torch.iinfo(dtype).max)


def _stored(block: Block) -> Iterator[str]:
    """Names of the buffers that a block stores to."""
    for statement in block:
        if isinstance(statement, Store):
            yield statement.buffer
        elif isinstance(statement, Loop | Reduce):
            yield from _stored(statement.body)
