"""A kernel's text through Triton's compiler, stage by stage, for any target, with or without a GPU.

In: a `KernelSource`, a target, what is known about the pointers. Out: a `CompiledForms`: the text of
every stage, the binary, metadata and seconds. The one idea: we call the backend's stages ourselves, so
each is timed, none prints, and between `ttgir` and `llir` a *location snapshot* is taken: from there on
locations are lines of the TTGIR text, which itself holds the lines of the kernel. One compile, two exact
maps, and machine code is the same as without (checked byte by byte).

Contraction of a*b + c to one rounding (`enable_fp_fusion`) is off: results must equal the reference,
which rounds at each operation.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler_core.errors import NO_TOOL, InternalError, ToolMissing, register
from compiler_core.options import Target
from compiler_core.stages import KernelSource

__all__ = [
    "REFUSED", "CompiledForms", "compile_forms", "jit_function", "pseudo_path", "triton_options", "triton_source",
]  # fmt: skip

REFUSED = register(
    "CC611",
    "Triton refused a kernel",
    "Triton's compiler raised an error for generated or edited kernel text.",
    "If you edited the kernel, the message above names the line; otherwise report it.",
)

_FOLDER = "<cutaway>"

_TYPES = {
    "f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "f8e4m3": "fp8e4nv", "f8e5m2": "fp8e5",
    "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8", "u8": "u8", "bool": "i1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CompiledForms:
    """`texts`: "ttir", "ttgir", "llir", "ptx". `binary` is the cubin, empty if the stages stopped before."""

    texts: dict[str, str]
    binary: bytes
    metadata: dict[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)


def pseudo_path(kernel: KernelSource) -> str:
    """The file name under which Triton knows the text: its content's hash, so it never lies."""
    return f"<cutaway>/{kernel.name}_{hashlib.sha256(kernel.source.encode()).hexdigest()[:12]}.py"


def jit_function(kernel: KernelSource) -> Any:
    """The kernel as Triton's `JITFunction`. The text lives in `linecache`, not in a file.

    Raises ToolMissing without triton, InternalError where the text does not run.
    """
    _require_triton()
    path = pseudo_path(kernel)
    source = kernel.source
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    namespace: dict[str, Any] = {"__name__": f"cutaway.{kernel.name}"}
    try:
        exec(compile(source, path, "exec"), namespace)
    except Exception as error:  # the text may be a user's: whatever it raises is about the text
        raise InternalError(REFUSED, f"{kernel.name}: {type(error).__name__}: {error}") from error
    functions = [value for value in namespace.values() if hasattr(value, "arg_names")]
    if not functions:
        raise InternalError(REFUSED, f"{kernel.name}: the text defines no @triton.jit function")
    return functions[-1]  # helpers stand before the kernel


def _signature(kernel: KernelSource, function: Any) -> dict[str, str]:
    """Parameter name → Triton type; block constants are `constexpr`."""
    types = [_TYPES[p.dtype] if p.kind == "size" else f"*{_TYPES[p.dtype]}" for p in kernel.params]
    constants = kernel.launch.constants if kernel.launch else {}
    return dict(zip(function.arg_names, [*types, *("constexpr" for _ in constants)]))


def triton_source(kernel: KernelSource, is_aligned: bool) -> Any:
    """The `ASTSource`. Pointers are multiples of 16 bytes if `is_aligned`; nothing is known of sizes."""
    from triton.compiler import ASTSource

    attributes = {
        (i,): [["tt.divisibility", 16]]
        for i, param in enumerate(kernel.params)
        if is_aligned and param.kind != "size"
    }
    constants = dict(kernel.launch.constants) if kernel.launch else {}
    function = jit_function(kernel)
    return ASTSource(function, _signature(kernel, function), constants, attributes)


def triton_options(kernel: KernelSource) -> dict[str, Any]:
    launch = kernel.launch
    assert launch is not None
    return {
        "num_warps": launch.num_warps,
        "num_stages": launch.num_stages,
        "enable_fp_fusion": False,
        "enable_reflect_ftz": False,  # libdevice keeps subnormal numbers, as eager does
        "debug": "tl.device_assert(" in kernel.source,  # else assertions leave no code
        "sanitize_overflow": False,  # integers wrap, as in eager
    }


def compile_forms(
    kernel: KernelSource, target: Target, *, is_aligned: bool = True, until: str = "cubin"
) -> CompiledForms:
    """Run the stages up to `until` ("ttir", "ttgir", "llir", "ptx" or "cubin").

    Raises ToolMissing without triton, InternalError (CC611) where a stage refuses the kernel.
    """
    _require_triton()
    try:
        return _run_stages(kernel, target, is_aligned, until)
    except InternalError:
        raise
    except Exception as error:  # Triton raises many kinds; each is about the text it was given
        raise InternalError(REFUSED, f"{kernel.name}: {type(error).__name__}: {error}") from error


def _run_stages(
    kernel: KernelSource, target: Target, is_aligned: bool, until: str
) -> CompiledForms:
    from triton import __version__
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    gpu = GPUTarget("cuda", target.arch, 32)
    backend = make_backend(gpu)
    options = backend.parse_options(triton_options(kernel))
    source = triton_source(kernel, is_aligned)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    metadata = {"hash": "", "target": gpu, **options.__dict__, "triton_version": __version__}
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    module = source.make_ir(
        gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    seconds["frontend"] = time.perf_counter() - start
    forms: dict[str, Any] = {}
    folder = ""
    for name, run in stages.items():
        start = time.perf_counter()
        module = run(module, metadata)
        forms[name] = module if isinstance(module, bytes) else str(module)
        if name == "ttgir":
            folder = _snapshot(module)
        if (
            name == "llir"
        ):  # the snapshot's folder is a random name; texts do not change from run to run
            forms[name] = module = _without_folder(forms[name], folder)
        seconds[name] = time.perf_counter() - start
        if name == until:
            break
    binary = forms.pop("cubin", b"")
    return CompiledForms(forms, binary, _plain(metadata), seconds)


def _without_folder(text: str, folder: str) -> str:
    """LLVM IR with a constant name for a folder; strings that hold the name (of assertions) say their length."""

    def shorter(match: re.Match[str]) -> str:
        length = int(match[1]) + len(match[2].replace(folder, _FOLDER)) - len(match[2])
        return f'[{length} x i8] c"{match[2].replace(folder, _FOLDER)}"'

    return re.sub(r'\[(\d+) x i8\] c"([^"]*)"', shorter, text).replace(folder, _FOLDER)


def _snapshot(module: Any) -> str:
    """From here on, locations are lines of the TTGIR text. Returns the folder that they name."""
    with tempfile.TemporaryDirectory() as folder:
        module.create_location_snapshot(str(Path(folder) / "kernel.ttgir"))
        return folder


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata as JSON holds it."""
    return dict(json.loads(json.dumps(metadata, default=vars)))


def _require_triton() -> None:
    try:
        import triton  # noqa: F401
    except ImportError as error:
        raise ToolMissing(NO_TOOL, "triton is not installed") from error
