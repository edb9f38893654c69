"""Kernels that the user replaces: `options={"replace": {"kernels/<name>": path}}`.

In: the generated kernels and the option. Out: the kernels with the files' texts. A line that is as
before keeps its origins; lines that differ take the union of those that they stand in for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from compiler_core.errors import BAD_VALUE, OptionError, closest
from compiler_core.options import Context
from compiler_core.provenance import Origins, handle, union
from compiler_core.stages import KernelSource

__all__ = ["apply_replacements", "matched_origins"]


def apply_replacements(
    kernels: Sequence[KernelSource], part: str, context: Context
) -> tuple[KernelSource, ...]:
    """The kernels, with the sources that the option names; a "replace" decision for each.

    `kernels/<name>` is a kernel of the forward graph, `kernels/backward/<name>` one of the backward graph.
    A file that ends in `.py` replaces a Triton kernel, any other a C kernel.
    Raises OptionError for a key that names no kernel and for a file that cannot be read.
    """
    keys = {_key(part, kernel.name): kernel for kernel in kernels}
    given = context.options.replace.items()
    paths = {k: path for k, path in given if _is_of(part, k) and _is_in_language(path, kernels)}
    for key in paths:
        if key not in keys:
            raise OptionError(BAD_VALUE, f"option 'replace' names {key!r}{closest(key, keys)}")
    return tuple(
        _replaced(kernel, key, paths[key], part, context) if key in paths else kernel
        for key, kernel in keys.items()
    )


def _key(part: str, name: str) -> str:
    return f"kernels/{name}" if part == "forward" else f"kernels/{part}/{name}"


def _is_of(part: str, key: str) -> bool:
    """Does a key of the option speak of a kernel of this graph?"""
    if part == "forward":
        return key.startswith("kernels/") and not key.startswith("kernels/backward/")
    return key.startswith(f"kernels/{part}/")


def _is_in_language(path: str, kernels: Sequence[KernelSource]) -> bool:
    """Where several targets are compiled for, a `.py` file is for Triton's kernels, others are C."""
    languages = {kernel.language for kernel in kernels}
    return ("triton" in languages) == path.endswith(".py")


def _replaced(
    kernel: KernelSource, key: str, path: str, part: str, context: Context
) -> KernelSource:
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        what = f"option 'replace' gives {path!r} for {key!r}: {error}"
        raise OptionError(BAD_VALUE, what) from error
    origins = matched_origins(kernel.source, kernel.line_origins, text)
    about = {handle("fuse", f"{part}/{kernel.name}")}
    context.recorder.decide("replace", about, "replaced", f"its text is that of {path}")
    return replace(kernel, source=text, line_origins=origins)


def matched_origins(old: str, origins: Sequence[Origins], new: str) -> tuple[Origins, ...]:
    """Origins for the lines of `new`, an edited `old` whose lines have `origins`.

    >>> a, b = frozenset({"fuse:forward/k.a"}), frozenset({"fuse:forward/k.b"})
    >>> matched_origins("1\\n2\\n", (a, b), "1\\n3\\n4\\n") == (a, b, b)
    True
    """
    before, after = old.splitlines(), new.splitlines()
    found: list[Origins] = []
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            found += origins[i:j]
        elif tag == "insert":  # stands between two lines: serves what they serve
            found += [union(*origins[max(i - 1, 0) : i + 1])] * (m - k)
        elif tag == "replace":
            found += [union(*origins[i:j])] * (m - k)
    return tuple(found)
