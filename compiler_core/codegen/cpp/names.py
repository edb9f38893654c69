"""C identifiers for the names of one kernel.

In: names of buffers, axes, symbols and statements. Out: identifiers that are neither C words, nor
names of the functions that kernels call, nor used twice.
"""

from __future__ import annotations

import re

__all__ = ["Names", "identifier"]

_WORDS = frozenset(
    """auto bool break case char class const continue default delete do double else enum extern
    float for goto if inline int long namespace new operator private public register
    restrict return short signed sizeof static struct switch template this throw try typedef
    union unsigned using virtual void volatile while true false NULL INFINITY NAN acos acosh
    asin asinh atan atan2 ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax
    fmin fmod fmodf gamma hypot j0 j1 jn lgamma log log10 log1p log2 pow remainder rint
    round sin sinh sqrt tan tanh tgamma trunc y0 y1 yn atan2f main malloc free abs div index
    memcpy select signal time linux unix""".split()  # noqa: SIM905
)


def identifier(wish: str) -> str:
    """The wish as a C identifier: the same text for the same wish."""
    name = re.sub(r"\W", "_", wish)
    if not name or name[0].isdigit():
        name = f"n{name}"
    return f"{name}_" if name in _WORDS or name.startswith("v_") else name


class Names:
    """The identifiers given so far in one kernel, by the IR's names, which lose the prefix `common`."""

    def __init__(self, common: str = "") -> None:
        self._common = common
        self._taken: set[str] = set()
        self._of: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """The identifier of an IR name, given at its first use."""
        if name not in self._of:
            self._of[name] = self.fresh(name.removeprefix(self._common) or name)
        return self._of[name]

    def fresh(self, wish: str) -> str:
        """An identifier for something that is no name of the IR."""
        name = identifier(wish)
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name
