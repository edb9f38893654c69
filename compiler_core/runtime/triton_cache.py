"""Compiled forms on disk: one file a kernel, target and alignment, named by what it was made from.

In: a `KernelSource`, target, alignment. Out: its `CompiledForms`, read or made. The file is complete or
absent; one that cannot be read is made again. Nothing of torch is in the key: the forms depend on the
text, the options and Triton's version alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import suppress
from pathlib import Path

from compiler_core.errors import NO_TOOL, ToolMissing
from compiler_core.options import Target
from compiler_core.recording import write_atomically
from compiler_core.runtime.triton_stages import (
    CompiledForms,
    compile_forms,
    pseudo_path,
    triton_options,
)
from compiler_core.stages import KernelSource

__all__ = ["cached_forms", "forms_key"]

_FORMAT = 1


def cached_forms(
    kernel: KernelSource, target: Target, is_aligned: bool, folder: Path
) -> CompiledForms:
    """All forms of a kernel down to the cubin. `seconds` is empty when they came from the disk.

    Raises what `compile_forms` raises. A folder that cannot be written only costs time.
    """
    path = folder / f"{forms_key(kernel, target, is_aligned)}.json"
    known = _read(path)
    if known is not None:
        return known
    forms = compile_forms(kernel, target, is_aligned=is_aligned)
    text = {
        "texts": forms.texts,
        "binary": base64.b64encode(forms.binary).decode(),
        "metadata": forms.metadata,
    }
    with suppress(OSError):  # read-only or full disk: the forms in hand are as good
        write_atomically(path, json.dumps(text).encode())
    return forms


def forms_key(kernel: KernelSource, target: Target, is_aligned: bool) -> str:
    """The name of the file."""
    try:
        from triton import __version__
    except ImportError as error:
        raise ToolMissing(NO_TOOL, "triton is not installed") from error
    launch = kernel.launch
    parts = [
        _FORMAT, __version__, str(target), is_aligned, pseudo_path(kernel), kernel.source,
        [(p.kind, p.dtype) for p in kernel.params], sorted(launch.constants.items()) if launch else [],
        sorted(triton_options(kernel).items()),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _read(path: Path) -> CompiledForms | None:
    try:
        found = json.loads(path.read_bytes())
        return CompiledForms(found["texts"], base64.b64decode(found["binary"]), found["metadata"])
    except (OSError, ValueError, KeyError):
        return None
