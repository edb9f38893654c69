"""Python text for the values of a host program: sizes, shapes, views, arguments of library calls.

In: index expressions, views and whatever a `Call` holds. Out: expressions over the local names of
`call`, and the names that they use.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler_core.ir.index import Index, Sym, index
from compiler_core.ir.loop import Buffer, View

__all__ = ["HostText", "host_name"]

# What a host program's own text means by these words.
_TAKEN = frozenset(
    {
        "torch",
        "aten",
        "ops",
        "empty_strided",
        "as_planned",
        "args",
        "call",
        "min",
        "max",
        "device",
        "failed",
        "c_int64",
        "complex",
        "byref",
        "c_double",
    }
)


def host_name(name: str) -> str:
    """The identifier of a buffer, symbol or kernel in a host program: the same for the same name."""
    text = re.sub(r"\W", "_", name)
    is_taken = (
        text in _TAKEN
        or keyword.iskeyword(text)
        or (hasattr(torch, text) and isinstance(getattr(torch, text), torch.dtype))
    )
    return f"{text}_" if is_taken else text


@dataclass(slots=True)
class HostText:
    """Writes expressions; `used` collects the size symbols in them."""

    buffers: Mapping[str, Buffer]
    used: set[str] = field(default_factory=set)

    def size(self, e: Index) -> str:
        """An index expression; its own text is Python."""
        self.used |= e.names
        return str(e.substitute({name: Sym(host_name(name)) for name in e.names}))

    def tuple(self, parts: Sequence[Index]) -> str:
        """`(s0, 4)`."""
        texts = [self.size(part) for part in parts]
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"

    def view(self, view: View) -> str:
        """A view: the buffer's name, its transpose, or `as_strided`.

        The offset of `as_strided` counts from the start of the storage, where an input need not start.
        """
        buffer, name = self.buffers[view.buffer], host_name(view.buffer)
        layout = tuple(zip(view.shape, view.strides))
        own = tuple(zip(buffer.shape, buffer.strides))
        if view.offset == 0 and layout == own:
            return name
        if view.offset == 0 and len(own) == 2 and layout == own[::-1]:
            return f"{name}.t()"
        place = [self.tuple(view.shape), self.tuple(view.strides)]
        if view.offset != index(0):
            start = f"{name}.storage_offset() + " if buffer.role in ("in", "const") else ""
            place.append(start + self.size(view.offset))
        return f"{name}.as_strided({', '.join(place)})"

    def argument(self, value: Any) -> str:
        """An argument of a library call, or an output. Raises TypeError for what has no text."""
        match value:
            case View():
                return self.view(value)
            case Index():
                return self.size(value)
            case tuple() | list():
                return f"[{', '.join(self.argument(part) for part in value)}]"
            case torch.device():
                return f'torch.device("{value}")'
            case float() if value != value or abs(value) == float("inf"):
                return f'float("{value}")'
            case complex():
                return f'complex("{value}")'
            case torch.dtype() | torch.layout() | torch.memory_format():
                return str(value)
            case None | bool() | int() | float() | str():
                return repr(value)
        raise TypeError(f"a library call cannot be given {type(value).__name__}: {value!r}")
