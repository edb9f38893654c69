"""Triton kernels and their host program, built.

In: a `Generated` for a GPU. Out: a `Built`. On a machine with that GPU the kernels are compiled (several at
once) and launched; on any other, the host program runs on CPU tensors with the kernels' compiled TTIR
evaluated, and what lies below TTIR is compiled when somebody asks to see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from compiler_core.errors import closest
from compiler_core.options import Context, Target
from compiler_core.provenance import handle
from compiler_core.recording import Timing
from compiler_core.runtime.artifacts import (
    KernelFacts,
    artifacts_of,
    facts_of,
    instruction_names,
    sass_artifact,
)
from compiler_core.runtime.launch_triton import EvaluatedKernel, LaunchedKernel
from compiler_core.runtime.triton_cache import cached_forms
from compiler_core.runtime.triton_stages import CompiledForms, compile_forms, pseudo_path
from compiler_core.stages import Artifact, Built, Generated, KernelSource

__all__ = ["TritonBuild", "build_triton", "has_gpu", "kernel_facts"]

_WORKERS = 8


def build_triton(generated: Generated, context: Context) -> Built:
    """Build for `generated.target`.

    Raises ToolMissing without triton, InternalError (CC611) where Triton refuses a kernel.
    """
    build = TritonBuild(generated, context)
    build.compile()
    return Built(generated, build.program(), build.artifacts, not build.launches)


def has_gpu(target: Target) -> bool:
    """Is the current GPU of the kind that the target names?"""
    if not torch.cuda.is_available():
        return False
    major, minor = torch.cuda.get_device_capability()
    return target.arch == major * 10 + minor


def kernel_facts(
    kernel: KernelSource, target: Target, context: Context, with_sass: bool = False
) -> KernelFacts:
    """Registers, shared memory, occupancy; spills and instruction mix if the SASS is made."""
    forms = cached_forms(kernel, target, True, _folder(context))
    names = None
    if with_sass:
        ptx = artifacts_of(forms.texts, pseudo_path(kernel))[-1]
        names = instruction_names(sass_artifact(forms.binary, ptx))
    return facts_of(forms.binary, forms.metadata, target.arch, names)


class TritonBuild:
    """The kernels of one `Generated`, and what was compiled of them so far."""

    def __init__(self, generated: Generated, context: Context):
        self._generated, self._context = generated, context
        self._kernels = {kernel.name: kernel for kernel in generated.kernels}
        self._forms: dict[tuple[str, bool], CompiledForms] = {}
        self._ttirs: dict[tuple[str, bool], str] = {}
        self._artifacts: dict[str, tuple[Artifact, ...]] = {}
        self.launches = has_gpu(generated.target)

    def compile(self) -> None:
        """What a first call needs: cubins for the GPU, TTIR for the evaluator."""
        if not self.launches:
            for kernel in self._generated.kernels:
                self._ttir(kernel, True)
            return
        workers = max(1, min(_WORKERS, len(self._kernels)))
        with ThreadPoolExecutor(workers) as pool:
            made = list(
                pool.map(lambda kernel: self._read_or_make(kernel, True), self._kernels.values())
            )
        for kernel, forms in zip(self._kernels.values(), made):
            self._keep(kernel, True, forms)

    def program(self) -> Callable[[list[Any]], Sequence[Any]]:
        """The host program's `call`, with the kernels among its globals."""
        host = self._generated.host
        namespace: dict[str, Any] = {"__name__": f"cutaway.{self._generated.part}"}
        exec(compile(host.source, f"<cutaway {self._generated.part} host>", "exec"), namespace)
        callables = {re.sub(r"\W", "_", n): self._callable(k) for n, k in self._kernels.items()}
        for suffix in ("", "_"):  # the host adds an underscore to names that its own text uses
            for name, kernel in callables.items():
                namespace.setdefault(name + suffix, kernel)
        if not self.launches:
            namespace["DEVICE"] = torch.device("cpu")
        call: Callable[[list[Any]], Sequence[Any]] = namespace["call"]
        return call

    def artifacts(self, name: str, lazy: bool = False) -> tuple[Artifact, ...]:
        """ttir, ttgir, llir and ptx of a kernel; with `lazy`, sass too. Raises KeyError for a name that is not there."""
        if name not in self._kernels:
            raise KeyError(f"no kernel {name!r}{closest(name, self._kernels)}")
        kernel = self._kernels[name]
        forms = self._compiled(kernel, True)
        made = self._artifacts.get(name) or artifacts_of(forms.texts, pseudo_path(kernel))
        if lazy and made[-1].stage != "sass":
            with self._context.recorder.phase(f"disassemble {name}"):
                made = (*made, sass_artifact(forms.binary, made[-1]))
        self._artifacts[name] = made
        return made if lazy else tuple(a for a in made if a.stage != "sass")

    def _callable(self, kernel: KernelSource) -> EvaluatedKernel | LaunchedKernel:
        if self.launches:
            return LaunchedKernel(kernel, lambda aligned: self._compiled(kernel, aligned))
        return EvaluatedKernel(kernel, lambda aligned: self._ttir(kernel, aligned))

    def _ttir(self, kernel: KernelSource, aligned: bool) -> str:
        """The TTIR of a variant; a kernel that was compiled further is not compiled again."""
        key = (kernel.name, aligned)
        if key not in self._forms and key not in self._ttirs:
            target = self._generated.target
            forms = compile_forms(kernel, target, is_aligned=aligned, until="ttir")
            self._note(kernel, forms)
            self._ttirs[key] = forms.texts["ttir"]
        return self._ttirs.get(key) or self._forms[key].texts["ttir"]

    def _compiled(self, kernel: KernelSource, aligned: bool) -> CompiledForms:
        """All forms of a variant."""
        if (kernel.name, aligned) not in self._forms:
            self._keep(kernel, aligned, self._read_or_make(kernel, aligned))
        return self._forms[kernel.name, aligned]

    def _read_or_make(self, kernel: KernelSource, aligned: bool) -> CompiledForms:
        return cached_forms(kernel, self._generated.target, aligned, _folder(self._context))

    def _keep(self, kernel: KernelSource, aligned: bool, forms: CompiledForms) -> None:
        """Remember the forms; say whether they came from the disk, and how long each stage took."""
        self._forms[kernel.name, aligned] = forms
        about = [handle("kernels", f"{self._generated.part}/{kernel.name}")]
        outcome, reason = ("miss", "no file for this text, target and alignment")
        if not forms.seconds:
            outcome, reason = ("hit", "the text, target, options and Triton's version are equal")
        self._context.recorder.decide("cache", about, outcome, reason)
        self._note(kernel, forms)

    def _note(self, kernel: KernelSource, forms: CompiledForms) -> None:
        """Seconds of each stage, as phases."""
        timings = self._context.recorder.here.timings
        timings += [
            Timing(f"triton/{kernel.name}/{stage}", s) for stage, s in forms.seconds.items()
        ]


def _folder(context: Context) -> Path:
    return context.options.cache_path() / "triton"
