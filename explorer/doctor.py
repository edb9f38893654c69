"""What this machine can do: versions, compilers, GPU, cache folder; and what to do about a no."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec

__all__ = ["Check", "checks"]


@dataclass(frozen=True, slots=True)
class Check:
    """One ability: what, whether it is there, the facts or what to do."""

    what: str
    ok: bool
    detail: str


def checks() -> list[Check]:
    """All abilities, in the order in which a compile needs them."""
    return [check() for check in _CHECKS]


def _python() -> Check:
    return Check("Python 3.11 or newer", True, platform.python_version())


def _torch() -> Check:
    import torch

    return Check("torch 2.11 or newer", True, str(torch.__version__))


def _cxx() -> Check:
    for name in ("g++", "c++", "clang++"):
        if path := shutil.which(name):
            first = subprocess.run(
                [path, "--version"], capture_output=True, text=True
            ).stdout.splitlines()
            return Check("CPU kernels (a C++ compiler)", True, first[0] if first else path)
    return Check("CPU kernels (a C++ compiler)", False, "none found; Debian: apt-get install g++")


def _triton() -> Check:
    if find_spec("triton") is None:
        return Check(
            "GPU kernels as text (triton)", False, "not installed; Linux: pip install triton"
        )
    return Check("GPU kernels as text (triton)", True, metadata.version("triton"))


def _gpu() -> Check:
    import torch

    if not torch.cuda.is_available():
        return Check(
            "GPU kernels for real",
            False,
            "no CUDA device; kernels are compiled and evaluated on the CPU",
        )
    return Check("GPU kernels for real", True, torch.cuda.get_device_name())


def _cache() -> Check:
    from compiler_core.options import Options

    folder = Options.of().cache_path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return Check(
            "cache folder", False, f"{error}; set CUTAWAY_CACHE_DIR to a folder that can be written"
        )
    return Check("cache folder", True, str(folder))


def _notebook() -> Check:
    missing = [name for name in ("anywidget", "jupyterlab") if find_spec(name) is None]
    if missing:
        detail = f"{' and '.join(missing)} not installed: pip install cutaway[lab]"
        return Check("linked panes in a notebook", False, detail)
    return Check("linked panes in a notebook", True, f"anywidget {metadata.version('anywidget')}")


_CHECKS: tuple[Callable[[], Check], ...] = (_python, _torch, _cxx, _triton, _gpu, _cache, _notebook)
