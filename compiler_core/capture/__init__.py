"""From a running frame to a graph of torch calls: interception, interpretation, guards, replacement.

In: a `FrameView`. Out: a `Captured`, and the code object that runs in place of the frame.
Names are loaded at first use, so that the bytecode half works where torch is not installed.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = [
    "CannotCapture",
    "TorchHook",
    "assemble",
    "capture_frame",
    "captured_elsewhere",
    "compile_guards",
    "first_span",
    "read_before",
]

_WHERE = {
    "TorchHook": "compiler_core.capture.torch_hook",
    "capture_frame": "compiler_core.capture.frame_capture",
    "captured_elsewhere": "compiler_core.capture.from_graph",
    "first_span": "compiler_core.capture.from_graph",
    "read_before": "compiler_core.capture.from_graph",
    "assemble": "compiler_core.capture.replacement",
    "compile_guards": "compiler_core.capture.replacement",
    "CannotCapture": "compiler_core.capture.breaks",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)
