"""The host program: a Python function that allocates, launches, calls the library and frees.

In: a `Fused` and its kernels' sources. Out: a `HostProgram`, the text of a module with one function
`call(args)`. Kernels are globals of that module, put there by the runtime: a C kernel takes pointers
and sizes, a Triton kernel a grid, tensors and sizes. The list `args` is emptied so that the memory of
inputs can be taken back as soon as nothing reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compiler_core.codegen.host_text import HostText, host_name
from compiler_core.codegen.statement_handles import statements_of
from compiler_core.codegen.writer import Writer
from compiler_core.ir.checks import CHECKS
from compiler_core.ir.interpret import numbers_of, operator_of
from compiler_core.ir.loop import Buffer, Call, Nest, Place, View
from compiler_core.provenance import Handle, Origins, handle
from compiler_core.stages import Fused, HostProgram, KernelSource

__all__ = ["host_name", "host_program"]

_AS_PLANNED = '''\
def as_planned(tensor, strides):
    """The library's result; a copy of it where kernels expect another layout."""
    if tensor.stride() == strides:
        return tensor
    planned = empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return planned.copy_(tensor)
'''


def host_program(fused: Fused, kernels: Iterable[KernelSource]) -> HostProgram:
    """The text of `call(args)`. `args`: tensors and numbers in the order of `program.inputs`."""
    host = _Host(fused, {kernel.name: kernel for kernel in kernels})
    for position in range(len(fused.program.body)):
        host.write_item(position)
    host.write_end()
    return HostProgram(*host.framed())


@dataclass(slots=True)
class _Host:
    """The function's body under construction."""

    fused: Fused
    kernels: Mapping[str, KernelSource]
    body: Writer = field(default_factory=Writer)
    makers: dict[str, Handle] = field(default_factory=dict)  # buffer → the item that writes it
    takers: dict[str, str] = field(default_factory=dict)  # dead buffer → who takes its memory
    text: HostText = field(init=False)

    def __post_init__(self) -> None:
        self.text = HostText(self.fused.program.buffers)
        self.takers = {dead: new for new, dead in self.fused.reuse.items()}

    # -------------------------------------------------------------------------- one item

    def write_item(self, position: int) -> None:
        """Allocate what an item writes, run it, free what it was the last to read."""
        item = self.fused.program.body[position]
        origin = self._handle(item)
        if isinstance(item, Nest):
            self._launch(self.kernels[item.name], origin)
        else:
            self._call(item, origin)
        dead = [name for name, last in self.fused.last_use.items() if last == position]
        self._free([name for name in dead if name not in self.takers], {origin})

    def _handle(self, item: Nest | Call) -> Handle:
        return handle("fuse", f"{self.fused.part}/{item.name}")

    def _launch(self, kernel: KernelSource, origin: Handle) -> None:
        for param in kernel.params:
            if param.kind == "out" and self._is_unallocated(param.name):
                self._allocate(self.fused.program.buffers[param.name], origin)
        arguments = [self._kernel_argument(kernel, p.name, p.kind) for p in kernel.params]
        name = host_name(kernel.name)
        if kernel.launch is not None:
            grid = kernel.launch.grid
            constants = dict(kernel.launch.constants)
            constants |= {
                "num_warps": kernel.launch.num_warps,
                "num_stages": kernel.launch.num_stages,
            }
            arguments += [f"{key}={value}" for key, value in constants.items()]
            name += f"[{', '.join(grid)}{',' if len(grid) == 1 else ''}]"
        self.body.line(f"{name}({', '.join(arguments)})", {origin})
        if any(param.kind == "failed" for param in kernel.params):
            self._raise_failed(kernel, origin)

    def _raise_failed(self, kernel: KernelSource, origin: Handle) -> None:
        """Eager's error for the first position that a kernel found out of bounds."""
        nest = next(item for item in self.fused.program.body if item.name == kernel.name)
        assert isinstance(nest, Nest)
        places = [s for s in statements_of(nest.body) if isinstance(s, Place)]
        for number, place in enumerate(places, 1):
            check, size = CHECKS[place.check], self.text.size(place.extent)
            with self.body.block(f"if failed[0] == {number}:", end="", origins={origin}):
                shown = {
                    "value": "{failed[1]}",
                    "dimension": place.dimension,
                    "size": f"{{{size}}}",
                }
                text = check.message.format(**shown)
                quoted = f"f{text!r}" if "{" in text else repr(text)
                self.body.line(f"raise {check.error.__name__}({quoted})", {origin})

    def _kernel_argument(self, kernel: KernelSource, name: str, kind: str) -> str:
        if kind == "failed":
            return "failed"
        if kind == "size":
            self.text.used.add(name)
            return host_name(name)
        if kernel.language != "cpp":
            return host_name(name)
        is_float = self.fused.program.buffers[name].role == "const"
        return (
            f"byref(c_double({host_name(name)}))" if is_float else f"{host_name(name)}.data_ptr()"
        )

    def _is_unallocated(self, name: str) -> bool:
        return name not in self.makers and self.fused.program.buffers[name].role in ("out", "temp")

    def _allocate(self, buffer: Buffer, origin: Handle) -> None:
        self.makers[buffer.name] = origin
        name = host_name(buffer.name)
        shape, strides = self.text.tuple(buffer.shape), self.text.tuple(buffer.strides)
        dead = self.fused.reuse.get(buffer.name)
        if dead is None:
            text = f"{buffer.dtype.torch}".removeprefix("torch.")
            place = f"dtype={text}, device={self._device_text(buffer)}"
            self.body.line(f"{name} = empty_strided({shape}, {strides}, {place})", {origin})
            return
        old = self.fused.program.buffers[dead]
        same = (old.shape, old.strides) == (buffer.shape, buffer.strides)
        view = "" if same else f".as_strided({shape}, {strides})"
        self.body.line(f"{name} = {host_name(dead)}{view}", {origin})
        self._free([dead], {origin})

    def _floats(self) -> list[str]:
        """The arguments that are Python floats."""
        buffers = self.fused.program.buffers
        return [n for n in self.fused.program.inputs if n in buffers and buffers[n].role == "const"]

    def _is_python_float(self, value: object) -> bool:
        """A C kernel takes a float as it is; for a Triton kernel it is put into memory first."""
        is_float = isinstance(value, View) and value.buffer in self._floats()
        return is_float and self.fused.target.language == "cpp"

    def _device_text(self, buffer: Buffer) -> str:
        return "DEVICE" if buffer.device == self._device() else f'"{buffer.device}"'

    def _device(self) -> str:
        """Where most programs allocate everything: the device of the first buffer made here."""
        made = (b for b in self.fused.program.buffers.values() if b.role in ("out", "temp"))
        return next((buffer.device for buffer in made), self.fused.target.device)

    def _call(self, call: Call, origin: Handle) -> None:
        numbers = numbers_of(operator_of(call.target), call)

        def text(key: int | str, value: object) -> str:
            reads = key in numbers and not self._is_python_float(value)
            return self.text.argument(value) + (".item()" if reads else "")

        arguments = [text(position, argument) for position, argument in enumerate(call.args)]
        arguments += [f"{key}={text(key, value)}" for key, value in call.kwargs]
        outputs = [host_name(name) if name else "_" for name in call.outputs]
        only = "," if len(outputs) == 1 and _returns_list(call.target) else ""
        equals = f"{', '.join(outputs)}{only} = " if outputs else ""
        self.body.line(f"{equals}{_callee(call.target)}({', '.join(arguments)})", {origin})
        for name in call.outputs:
            if name is None:
                continue
            self.makers[name] = origin
            strides = self.text.tuple(self.fused.program.buffers[name].strides)
            result = host_name(name)
            self.body.line(f"{result} = as_planned({result}, {strides})", {origin})

    def _free(self, names: list[str], origins: set[Handle]) -> None:
        known = [name for name in names if name in self.makers or name in self.fused.program.inputs]
        if known:
            self.body.line(f"del {', '.join(map(host_name, known))}", origins)

    # -------------------------------------------------------------------------- the end and the frame

    def write_end(self) -> None:
        """Write mutated inputs back, return the outputs."""
        program = self.fused.program
        for target, source in program.mutated:
            text = f"{host_name(target)}.copy_({host_name(source)})"
            self.body.line(text, self._makers_of([source]))
        outputs = [
            host_name(o) if isinstance(o, str) else self.text.argument(o) for o in program.outputs
        ]
        texts = f"({outputs[0]},)" if len(outputs) == 1 else f"({', '.join(outputs)})"
        named = [o.buffer if isinstance(o, View) else o for o in program.outputs]
        self.body.line(f"return {texts}", self._makers_of([n for n in named if isinstance(n, str)]))

    def _makers_of(self, buffers: Iterable[str]) -> Origins:
        """The items that wrote some buffers; every item where none did (an input is returned)."""
        found = {self.makers[name] for name in buffers if name in self.makers}
        return frozenset(found or {self._handle(item) for item in self.fused.program.body})

    def framed(self) -> tuple[str, tuple[Origins, ...]]:
        """The whole module: imports, globals, the function."""
        program = self.fused.program
        everything = {self._handle(item) for item in program.body}
        file = Writer()
        for line in self._prelude():
            file.line(line, everything if line else ())
        with file.block("def call(args):", end=""):
            if program.inputs:
                names = ", ".join(map(host_name, program.inputs))
                file.line(f"{names}{',' if len(program.inputs) == 1 else ''} = args", everything)
            file.line("args.clear()", everything)
            for name in self._floats() if self.fused.target.language == "triton" else ():
                memory = program.buffers[name]
                place = f"dtype=float64, device={self._device_text(memory)}"
                text = host_name(name)
                file.line(f"{text} = torch.full((), {text}, {place})", everything)
            for symbol, source in program.symbols.items():
                if source is not None and symbol in self.text.used:
                    buffer, dimension = source
                    text = f"{host_name(symbol)} = {host_name(buffer)}.size({dimension})"
                    file.line(text, everything)
            if self._notes_failures():
                file.line("failed = (c_int64 * 2)()", everything)
            file.extend(self.body.lines)
        return file.result()

    def _notes_failures(self) -> bool:
        return any(p.kind == "failed" for kernel in self.kernels.values() for p in kernel.params)

    def _prelude(self) -> list[str]:
        program = self.fused.program
        body = self.body.source
        types = {f"{b.dtype.torch}".removeprefix("torch.") for b in program.buffers.values()}
        names = sorted(t for t in types if f"dtype={t}," in body)
        calls = any(isinstance(item, Call) for item in program.body)
        words = ["byref", "c_double"] if "byref(c_double(" in body else []
        words += ["c_int64"] if self._notes_failures() else []
        lines = [f"from ctypes import {', '.join(words)}", ""] if words else []
        lines.append("import torch")
        if self._floats() and self.fused.target.language == "triton":
            names = sorted({*names, "float64"})
        if names or calls:
            lines.append(f"from torch import {', '.join(['empty_strided', *names])}")
        lines += [
            "",
            *(["aten = torch.ops.aten"] if calls else []),
            f'DEVICE = torch.device("{self._device()}")',
        ]
        if calls:
            lines += ["", "", *_AS_PLANNED.splitlines()]
        return [*lines, "", ""]


def _returns_list(target: str) -> bool:
    """Whether an operator's results come in a list, also where there is only one."""
    returns = operator_of(target)._schema.returns
    return len(returns) == 1 and str(returns[0].type) == "List[Tensor]"


def _callee(target: str) -> str:
    """An operator in the text; one of a library of the user's is named in full."""
    return target if target.startswith("aten.") else f"torch.ops.{target}"
