"""Operations that Triton adds for another's sake name the lines of that other too.

In: TTGIR text and the kernel lines of its operations. Out: the lines, in which a change of layout, and
a value computed once more in a second layout, also belong to the kernel lines that read the result: a
`tl.store` that wants the value in another layout is why they exist. Other operations keep their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler_core.stages import ArtifactLine

__all__ = ["with_readers_of_copies"]

_RESULT = re.compile(r'^\s*(%[\w.-]+)(?::\d+)? = "?([a-z]\w*\.[\w.]+)"?')
_OPERAND = re.compile(r"%[\w.-]+")
_LAYOUT = re.compile(r"(#\w+(?:<\{.*?\}>)?)>")


@dataclass(frozen=True, slots=True)
class _Operation:
    number: int  # position of its line
    name: str
    opcode: str
    layouts: tuple[str, ...]
    lines: tuple[int, ...]


def with_readers_of_copies(text: str, lines: Sequence[ArtifactLine]) -> tuple[ArtifactLine, ...]:
    """`lines`, one for each line of `text`, extended as the module says."""
    texts = text.splitlines()
    found = {o.number: o for o in _operations(texts, lines)}
    copies = _copies(list(found.values()))
    if not copies:
        return tuple(lines)
    readers = _readers(texts)
    result = list(lines)
    for number in sorted(
        copies, reverse=True
    ):  # a reader that is itself a copy is complete by then
        own = set(lines[number].kernel_lines)
        own.update(
            *(result[r].kernel_lines for r in readers.get(found[number].name, ()) if r > number)
        )
        result[number] = replace(lines[number], kernel_lines=tuple(sorted(own)))
    return tuple(result)


def _operations(texts: Sequence[str], lines: Sequence[ArtifactLine]) -> list[_Operation]:
    matches = ((n, _RESULT.match(text)) for n, text in enumerate(texts))
    return [
        _Operation(n, m[1], m[2], tuple(_LAYOUT.findall(texts[n])), lines[n].kernel_lines)
        for n, m in matches
        if m is not None
    ]


def _copies(operations: Sequence[_Operation]) -> set[int]:
    """Changes of layout, and operations that stand on one line in several layouts."""
    layouts: dict[tuple[str, tuple[int, ...]], set[tuple[str, ...]]] = {}
    for o in operations:
        layouts.setdefault((o.opcode, o.lines), set()).add(o.layouts)
    return {
        o.number
        for o in operations
        if o.opcode == "ttg.convert_layout" or len(layouts[o.opcode, o.lines]) > 1
    }


def _readers(texts: Sequence[str]) -> dict[str, list[int]]:
    """name → positions of the lines that mention it as an operand."""
    readers: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        match = _RESULT.match(text)
        for name in _OPERAND.findall(text[match.end() :] if match else text):
            readers.setdefault(name, []).append(number)
    return readers
