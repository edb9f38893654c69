"""A module whose call compiles, and that is still the module.

The compiled twin is an object of a subclass that shares the module's `__dict__`: parameters,
buffers, submodules, hooks and the training flag are the same objects under the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["compiled_class"]

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def compiled_class(base: type[torch.nn.Module], wrap: Wrap) -> type[torch.nn.Module]:
    """A subclass of `base` whose `__call__` is wrapped. It copies and pickles as `base`."""
    plain = getattr(base, "_cutaway_base", base)

    def reduce(self: torch.nn.Module, protocol: Any) -> Any:
        twin = object.__new__(plain)
        twin.__dict__ = self.__dict__
        return twin.__reduce_ex__(protocol)

    body = {
        "__call__": wrap(plain.__call__),
        "__reduce_ex__": reduce,
        "__module__": plain.__module__,
        "__doc__": plain.__doc__,
        "_cutaway_base": plain,
    }
    return type(plain.__name__, (plain,), body)
