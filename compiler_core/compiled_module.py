"""A module whose call compiles, and that is still the module.

The compiled twin is an object of a subclass that shares the module's `__dict__`: parameters,
buffers, submodules, hooks and the training flag are the same objects under the same names.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import torch

from compiler_core.request import Request

__all__ = ["compiled_class", "plain_class"]

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
Classes = WeakValueDictionary[int, type[torch.nn.Module]]  # by id of the request, which lives on

_made: WeakKeyDictionary[type, Classes] = WeakKeyDictionary()


Predict = Callable[..., Any]


def compiled_class(
    base: type[torch.nn.Module], request: Request, wrap: Wrap, predict: Predict
) -> type[torch.nn.Module]:
    """The subclass of `base` whose `__call__` is wrapped. It copies and pickles as `base`.

    There is one for each request: versions guard the class, and instances share versions.
    """
    plain = plain_class(base)
    classes = _made.setdefault(plain, WeakValueDictionary())
    known = classes.get(id(request))
    if known is None:
        classes[id(request)] = known = _new_class(plain, wrap, predict)
    return known


def plain_class(base: type[torch.nn.Module]) -> type[torch.nn.Module]:
    """The user's class behind a compiled one; any other class itself."""
    plain: type[torch.nn.Module] = base.__dict__.get("_cutaway_base", base)
    return plain


def _new_class(plain: type[torch.nn.Module], wrap: Wrap, predict: Predict) -> type[torch.nn.Module]:
    def would_recompile(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        """Would a call with these arguments compile `forward`? Nothing is compiled or run."""
        return predict(self.forward, args, kwargs)

    def reduce(self: torch.nn.Module, protocol: Any) -> Any:
        twin = object.__new__(plain)
        twin.__dict__ = self.__dict__
        reduced: Any = twin.__reduce_ex__(protocol)
        if reduced[0] is not copyreg.__newobj__:  # type: ignore[attr-defined]
            return reduced
        # pickle refuses `__newobj__` for an object of another class than the one that it makes
        return (copyreg._reconstructor, (plain, object, None), *reduced[2:])  # type: ignore[attr-defined]

    body = {
        "__call__": wrap(plain.__call__),
        "__reduce_ex__": reduce,
        "would_recompile": would_recompile,
        "__module__": plain.__module__,
        "__qualname__": plain.__qualname__,
        "__doc__": plain.__doc__,
        "_cutaway_base": plain,
    }
    return type(plain.__name__, (plain,), body)
