"""What the ATen operators under one torch-level call do: draw random numbers, write to memory.

In: operators, as a dispatch mode above the fake tensors. Out: the storages written to, and how
often random numbers are drawn. One torch call may run many operators, and only they know for sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compiler_core.capture.break_kinds.autograd import STORAGE_SWAP
from compiler_core.capture.break_kinds.tensors import CUSTOM_WRITES, STRIDED_MEMORY
from compiler_core.capture.breaks import DATA_SHAPE, RANDOM, Break
from compiler_core.randomness import draws_numbers

__all__ = ["Watch", "storage_of"]

_REFUSED = {
    "aten::set_": "Tensor.set_", "aten::resize_": "Tensor.resize_", "aten::detach_": "Tensor.detach_",
}  # fmt: skip
_RANDOM_FROM = getattr(torch.ops.aten.random_, "from")
_FILLS = (torch.ops.aten.bernoulli.p,)  # functional twins of what fills in place
_INDEX_PUT = ("aten::index_put", "aten::index_put_", "aten::_index_put_impl_")


def storage_of(tensor: torch.Tensor) -> int:
    """The identity of the memory behind a tensor."""
    return int(tensor.untyped_storage()._cdata)


def _check_layout(func: Any, args: tuple[Any, ...]) -> None:
    """Raises Break for draws that are not functional ones: numbers are drawn in the order of the memory
    that they fill, and a new value fills dense memory in the order of its positions.
    """
    if func is _RANDOM_FROM and args[2] is None:
        raise Break(RANDOM, "random_ up to the largest number of the type")
    filled = args[0] if args and (func._schema.is_mutable or func in _FILLS) else None
    if not isinstance(filled, torch.Tensor) or filled.is_contiguous():
        return
    if not (func is torch.ops.aten.bernoulli_.float and _is_mask(filled)):
        raise Break(RANDOM, f"{func} on a tensor that is not contiguous")


def _is_mask(filled: torch.Tensor) -> bool:
    """Is it what dropout draws into on a CPU, dense as its input? That is a draw of its own."""
    is_dense = torch.empty_like(filled).stride() == filled.stride()
    return is_dense and filled.device.type == "cpu" and filled.dtype != torch.float64


def _gathers_gradient(args: tuple[Any, ...]) -> bool:
    """Does `index_put(self, indices, values)` have a gradient of values whose number depends on data?"""
    masks = [i for i in args[1] if i is not None and i.dtype in (torch.bool, torch.uint8)]
    return bool(masks) and bool(args[2].requires_grad) and torch.is_grad_enabled()


def _is_inside(
    tensor: torch.Tensor, size: Sequence[Any], stride: Sequence[Any], offset: Any = None
) -> bool:
    """Does an `as_strided` stay among the elements of a whole, dense tensor? Fake tensors do not check."""
    start = tensor.storage_offset() if offset is None else offset
    numbers = [*size, *stride, start, *tensor.shape, *tensor.stride(), tensor.storage_offset()]
    if any(isinstance(n, torch.SymInt) for n in numbers):
        return False
    is_whole = tensor.storage_offset() == 0 and tensor.is_contiguous()
    last = start + sum((n - 1) * s for n, s in zip(size, stride))
    return is_whole and (0 in size or last < tensor.numel())


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records `written`, the storages that operators wrote to, and how often one `draws` random numbers."""

    def __init__(self, inputs: frozenset[int] = frozenset()) -> None:
        """inputs: the storages of the graph's inputs."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._inputs = inputs
        self.written: set[int] = set()
        self.draws = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if draws_numbers(func, args, kwargs):
            self.draws += 1
            _check_layout(func, args)
        if func._schema.name in _INDEX_PUT and _gathers_gradient(args):
            raise Break(DATA_SHAPE, "the gradient of values that are put where a mask is true")
        if func._schema.name == "aten::as_strided":
            self._check_reach(*args, **kwargs)
        if func._schema.is_mutable and func.namespace not in ("aten", "prims"):
            raise Break(CUSTOM_WRITES, str(func))
        if func._schema.is_mutable:
            self._note(func, args, kwargs)
        return func(*args, **kwargs)

    def _check_reach(self, tensor: torch.Tensor, *layout: Any, **named: Any) -> None:
        """Where an input begins in its memory, and how large that is, may differ on a later call."""
        if storage_of(tensor) in self._inputs or not _is_inside(tensor, *layout, **named):
            raise Break(STRIDED_MEMORY)

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if func._schema.name in _REFUSED:
            raise Break(STORAGE_SWAP, _REFUSED[func._schema.name])
        for index, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            given = args[index] if index < len(args) else kwargs.get(argument.name)
            for tensor in given if isinstance(given, (list, tuple)) else (given,):
                if isinstance(tensor, torch.Tensor):
                    self.written.add(storage_of(tensor))
