"""Identifiers of one kernel: each name of the IR gets one, and no two things share one.

In: names of buffers, axes, symbols and statements. Out: identifiers that clash neither with each
other nor with the words that every kernel uses.
"""

from __future__ import annotations

import keyword
import re

__all__ = ["Names"]

_TAKEN = frozenset(
    {"tl", "triton", "libdevice", "xindex", "xmask", "xnumel", "XBLOCK", "float", "range"}
    | {f"{word}{n}" for word in ("rindex", "rmask", "rnumel", "rstart", "RBLOCK") for n in ("", *range(8))}
)  # fmt: skip


class Names:
    """The identifiers given so far in one kernel."""

    def __init__(self) -> None:
        self._taken = set(_TAKEN)

    def fresh(self, wish: str) -> str:
        """The wished name as an identifier; with underscores after it where it is taken."""
        name = re.sub(r"\W", "_", wish)
        if not name or name[0].isdigit():
            name = f"v{name}"
        while name in self._taken or keyword.iskeyword(name):
            name += "_"
        self._taken.add(name)
        return name
