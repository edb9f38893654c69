"""What a frame is called where people read: by the user's function, and where it goes on after a break.

In: a code object that is about to run. Out: `f` or `Net.forward`; for what goes on behind a break
`f, resumed after line 12 (print)`, or `f, resumed at line 8` where the way to that place is a jump. The names that
such functions have as code (`__resume_at_124_f`) count bytes of the bytecode, which say nothing to a reader.
"""

from __future__ import annotations

import linecache
import re
from types import CodeType

from compiler_core.capture.normalise import Decoded, decode
from compiler_core.capture.resume_points import entry_of
from compiler_core.provenance import Instruction, Span

__all__ = ["title_of"]

_JUMPS = ("JUMP", "POP_JUMP", "RETURN", "RAISE", "RERAISE")
_NAME = re.compile(r"[A-Za-z_.][\w.]*$")


def title_of(code: CodeType) -> str:
    """The frame's title. It holds neither `:` nor `|` nor `/`, which part handles and versions."""
    entry = entry_of(code)
    if entry is None:
        return _function(code)
    decoded = decode(entry.code)
    title = _place(decoded, entry.offset)
    twins = {o for o in _places_like(decoded, entry.offset) if _place(decoded, o) == title}
    span = _span(decoded, entry.offset)
    column = f", column {span.col + 1}" if len(twins) > 1 and span else ""
    return f"{_function(entry.code)}, resumed {title}{column}"


def _function(code: CodeType) -> str:
    """`f`, or `Net.forward` for a method: without the functions that it was defined in."""
    return code.co_qualname.rpartition("<locals>.")[2]


def _place(decoded: Decoded, offset: int) -> str:
    """`after line 12 (print)`, or `at line 8`."""
    before = _before(decoded, offset)
    if before is None or before.span is None or before.op.startswith(_JUMPS):
        here = decoded.instructions[decoded.index_of_offset[offset]].span
        return f"at line {here.line}" if here else f"at offset {offset}"
    name = _name(_text(before.span))
    return f"after line {before.span.end_line}" + (f" ({name})" if name else "")


def _name(text: str) -> str:
    """What is called: `item` of `x.sum().item()`, `print` of `print("a")`; "" where it has no name."""
    callee, depth = text, 0
    for at in range(len(text) - 1 if text.endswith(")") else -1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if not depth:
            callee = text[:at]
            break
    found = _NAME.search(callee)
    return found[0].lstrip(".") if found else ""


def _before(decoded: Decoded, offset: int) -> Instruction | None:
    """The instruction that ran just before the group at an offset."""
    index = decoded.index_of_offset[offset]
    return decoded.instructions[index - 1] if index else None


def _span(decoded: Decoded, offset: int) -> Span | None:
    before = _before(decoded, offset)
    return before.span if before else None


def _places_like(decoded: Decoded, offset: int) -> list[int]:
    """Where else one could resume behind a call on the same line."""
    wanted = _span(decoded, offset)
    return [
        after
        for start, after in decoded.after.items()
        if wanted and decoded.group(start)[-1].op.startswith("CALL")
        if (span := _span(decoded, after)) and span.end_line == wanted.end_line
    ]


def _text(span: Span) -> str:
    """The source of a span, up to its first line's end; columns count bytes."""
    line = linecache.getline(span.file, span.line).encode()
    end = span.end_col if span.end_line == span.line else len(line)
    return line[span.col : end].decode(errors="replace").strip()
