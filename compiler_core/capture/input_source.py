"""Our name for an input, in the form in which torch's ShapeEnv takes it.

In: the guard text of a source. Out: a `torch._guards.Source`. Behind this adapter, because the base
class is private: 2.11 calls `name()`, later versions read the property `name`.
"""

from __future__ import annotations

import torch._guards

__all__ = ["InputSource"]


class _Name(str):
    """A string that may also be called, for versions in which `name` is a method."""

    def __call__(self) -> str:
        return str(self)


class InputSource(torch._guards.Source):
    """A source that only has a name; two with one name are equal."""

    text: str

    def __init__(self, text: str):
        object.__setattr__(self, "text", text)

    @property
    def _name_template(self) -> str:
        return _Name(self.text)

    @property
    def name(self) -> str:
        return _Name(self.text)

    def is_ephemeral(self) -> bool:
        return False

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSource) and other.text == self.text
