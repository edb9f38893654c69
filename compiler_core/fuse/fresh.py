"""Names for copies of statements, and the way back to the names that a reader knows.

In: the names of the lowered program. Out: names that are taken nowhere. Each remembers the name that
it is a copy of, so that at the end a copy that is alone again gets its old name back.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Names"]


class Names:
    """Gives out names; none twice in a program."""

    def __init__(self, taken: Iterable[str]):
        self._taken = set(taken)
        self._native = frozenset(self._taken)
        self._root: dict[str, str] = {}
        self._count: dict[str, int] = {}

    def fresh(self, name: str) -> str:
        """A new name for a copy of `name`."""
        root = self.root(name)
        copy = self._numbered(root)
        self._root[copy] = root
        return copy

    def new(self, name: str) -> str:
        """A name for what has no original: the one given, or a numbered one where that is taken."""
        if name in self._taken:
            return self.fresh(name)
        self._taken.add(name)
        return name

    def root(self, name: str) -> str:
        """The name in the lowered program that this is a copy of."""
        return self._root.get(name, name)

    def restored(self, used: Iterable[str]) -> dict[str, str]:
        """The final name of each name: the root for its first copy, then `root_1`, `root_2` …"""
        final: dict[str, str] = {}
        taken = set(self._native)
        seen: set[str] = set()
        for name in used:
            root = self.root(name)
            final[name] = root if root not in seen else _next_free(root, taken)
            seen.add(root)
            taken.add(final[name])
        return final

    def _numbered(self, root: str) -> str:
        number = self._count.get(root, 0)
        while True:
            number += 1
            name = f"{root}_{number}"
            if name not in self._taken:
                break
        self._count[root] = number
        self._taken.add(name)
        return name


def _next_free(root: str, taken: set[str]) -> str:
    number = 1
    while f"{root}_{number}" in taken:
        number += 1
    return f"{root}_{number}"
