"""Parameters, buffers and submodules read past `nn.Module.__getattr__`, which is a Python function.

In: a source that ends in an attribute of a module. Out: the store that holds it, if one does, so that
a check of hundreds of parameters reads `self._parameters['weight']` and asks once that nothing hides it.
"""

from __future__ import annotations

from typing import Any

import torch

from compiler_core.capture.sources import Source

__all__ = ["store_of"]

_STORES = ("_parameters", "_buffers", "_modules")


def store_of(source: Source, L: dict[str, Any], G: dict[str, Any]) -> str | None:
    """`_parameters`, `_buffers` or `_modules`, if `__getattr__` would find the attribute there."""
    if source.kind != "attr" or source.base is None or source.name in _STORES:
        return None
    try:
        module = source.base.get(L, G)
    except Exception:  # a path of the guards' own objects
        return None
    if not isinstance(module, torch.nn.Module) or type(module).__getattr__ is not _GETATTR:
        return None
    if type(module).__getattribute__ is not object.__getattribute__:
        return None
    own = vars(module)
    if source.name in own or hasattr(type(module), source.name):
        return None
    return next((store for store in _STORES if source.name in own.get(store, ())), None)


_GETATTR = torch.nn.Module.__getattr__
