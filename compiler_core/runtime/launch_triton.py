"""Kernels as the host program calls them: `add_0[grid](x, out, s0, XBLOCK=1024, num_warps=4)`.

Two kinds with one interface. `EvaluatedKernel` runs the compiled TTIR on CPU tensors. `LaunchedKernel` runs
the cubin on the GPU by the short way: Triton's launcher is looked up once per device and called directly
(about half a microsecond, against 15 for `JITFunction.__getitem__`). The price is that nothing is
specialised behind our back, so it is done here, safely:

    alignment    two variants, compiled when needed: all pointers multiples of 16 bytes, or nothing known
    sizes        64-bit integers, of which nothing is assumed (Triton would specialise 1 and multiples of 16)
    dtypes       fixed by the version of the frame that the kernel belongs to

Keyword arguments are what the text was made with; they are constants of the compiled kernel, not looked at.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from compiler_core.errors import CutawayError, register
from compiler_core.runtime.triton_stages import CompiledForms, triton_source
from compiler_core.runtime.ttir_evaluator import Function, evaluate, parse
from compiler_core.stages import KernelSource

__all__ = ["EvaluatedKernel", "LaunchedKernel", "is_aligned"]

OTHER_DEVICE = register(
    "CC612",
    "kernels were built for a GPU that this machine does not have",
    "They are evaluated on the CPU instead, and the evaluator takes CPU tensors.",
    "Pass CPU tensors, or compile for the GPU that is there (options={'target': 'auto'}).",
)

Forms = Callable[[bool], CompiledForms]  # is_aligned -> the forms
_ALIGNMENT = 16
_current_device = torch.accelerator.current_device_index  # does not ask whether CUDA is initialised


def is_aligned(arguments: Sequence[Any]) -> bool:
    """Is every tensor's first element at a multiple of 16 bytes?"""
    bits = 0
    for argument in arguments:
        if _is_pointer(argument):
            bits |= argument.data_ptr()
    return bits % _ALIGNMENT == 0


def _is_pointer(argument: Any) -> bool:
    return isinstance(argument, torch.Tensor)


class EvaluatedKernel:
    """A kernel that runs in the TTIR evaluator. `ttir(is_aligned)` gives the text of a variant."""

    def __init__(self, kernel: KernelSource, ttir: Callable[[bool], str]):
        self._kernel, self._ttir = kernel, ttir
        self._functions: dict[bool, Function] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def run(*arguments: Any, **constants: Any) -> None:
            self._run(grid, arguments)

        return run

    def _run(self, grid: tuple[int, ...], arguments: Sequence[Any]) -> None:
        if any(isinstance(a, torch.Tensor) and a.device.type != "cpu" for a in arguments):
            raise CutawayError(OTHER_DEVICE, self._kernel.name)
        if 0 in grid:
            return
        evaluate(self.function(is_aligned(arguments)), arguments, grid)

    def function(self, aligned: bool = True) -> Function:
        """The parsed TTIR of a variant."""
        if aligned not in self._functions:
            self._functions[aligned] = parse(self._ttir(aligned))
        return self._functions[aligned]


class LaunchedKernel:
    """A kernel that runs on the GPU of its tensors."""

    def __init__(self, kernel: KernelSource, forms: Forms):
        self._kernel, self._forms = kernel, forms
        self._pointers = [n for n, param in enumerate(kernel.params) if param.kind != "size"]
        self._constants = tuple(kernel.launch.constants.values()) if kernel.launch else ()
        self._loaded: dict[tuple[int, bool], tuple[Any, ...]] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        x, y, z = (*grid, 1, 1)[:3]

        def launch(*arguments: Any, **constants: Any) -> None:
            if x and y and z:
                self._launch(x, y, z, arguments)

        return launch

    def _launch(self, x: int, y: int, z: int, arguments: Sequence[Any]) -> None:
        device, bits = arguments[self._pointers[0]].get_device(), 0
        if device != _current_device():
            with torch.cuda.device(device):
                return self._launch(x, y, z, arguments)
        for number in self._pointers:
            bits |= arguments[number].data_ptr()
        key = (device, bits % _ALIGNMENT == 0)
        run, function, packed, stream_of = self._loaded.get(key) or self._load(key)
        run(
            x, y, z, stream_of(device), function, packed, None, None, None, *arguments, *self._constants
        )  # fmt: skip

    def _load(self, key: tuple[int, bool]) -> tuple[Any, ...]:
        """Put the cubin on the device that is current, and keep what a launch needs."""
        from triton.runtime.driver import driver

        compiled = _compiled_kernel(self._kernel, self._forms(key[1]), key[1])
        run = compiled.run  # loads the module: `function` exists only after this
        stream_of = driver.active.get_current_stream
        self._loaded[key] = (run, compiled.function, compiled.packed_metadata, stream_of)
        return self._loaded[key]


def _compiled_kernel(kernel: KernelSource, forms: CompiledForms, aligned: bool) -> Any:
    """Triton's own object for a cubin. It reads files, so they exist for a moment."""
    from triton.compiler.compiler import CompiledKernel

    with tempfile.TemporaryDirectory() as folder:
        metadata, binary = Path(folder) / "kernel.json", Path(folder) / "kernel.cubin"
        metadata.write_text(json.dumps(forms.metadata))
        binary.write_bytes(forms.binary)
        files = {"kernel.json": str(metadata), "kernel.cubin": str(binary)}
        return CompiledKernel(triton_source(kernel, aligned), files, forms.metadata["hash"])
