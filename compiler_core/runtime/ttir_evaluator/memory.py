"""The memory of a launch, and the rules that every access must keep.

In: the kernel's tensor arguments. The rules: an offset lies within its tensor; two programs never store to
the same element; no program reads what another stores (programs run in any order, so the result would be
luck). Atomic additions may meet each other, and nothing else. Broken rules raise InternalError with the TTIR line.
"""

from __future__ import annotations

import torch
from torch import Tensor

from compiler_core.errors import InternalError, register
from compiler_core.runtime.ttir_evaluator.values import TYPES, Pointer, poison, together

__all__ = ["BAD_ACCESS", "RACE", "Memory"]

BAD_ACCESS = register(
    "CC621",
    "a kernel accessed memory outside a tensor",
    "An offset that no mask switches off lies outside the argument it belongs to.",
    "If you edited the kernel, check its masks; otherwise report it.",
)
RACE = register(
    "CC622",
    "programs of a kernel race for an element of memory",
    "Programs run in any order. One stores to an element that another stores to or reads, so the result "
    "would depend on the order.",
    "If you edited the kernel, check that each program stores to its own elements; otherwise report it.",
)

_NOBODY, _SEVERAL, _ATOMIC = -1, -2, -3


class Memory:
    """The tensors by argument name, flat; who stored and who read each element."""

    def __init__(self, tensors: dict[str, Tensor], stored: set[str]):
        self._flat = {name: _flat(tensor) for name, tensor in tensors.items()}
        # arguments may share storage: an element is known by its place in the storage
        self._place = {name: _place(tensor) for name, tensor in tensors.items()}
        self._watched = {self._place[name][0] for name in stored}
        self._writers: dict[tuple[int, int], Tensor] = {}
        self._readers: dict[tuple[int, int], Tensor] = {}

    def load(self, line: int, pointer: Pointer, mask: Tensor | None, programs: Tensor) -> Tensor:
        """The elements at a pointer; where the mask is off, poison."""
        flat, dtype = self._view(pointer), TYPES[pointer.element]
        offset, mask = _together(pointer.offset, mask)
        self._check_bounds(line, pointer, offset, mask)
        key, shift = self._place[pointer.base]
        if key in self._watched:
            self._note_read(line, pointer, key, offset + shift, mask, programs)
        if mask is None:
            return flat[offset].view(dtype)
        nothing = poison(dtype).view(flat.dtype)
        if flat.numel() == 0:
            return nothing.expand(offset.shape).view(dtype)
        values = flat[offset.clamp(0, flat.numel() - 1)]
        return torch.where(mask, values, nothing).view(dtype)

    def store(
        self, line: int, pointer: Pointer, value: Tensor, mask: Tensor | None, programs: Tensor
    ) -> None:
        """Write elements; all operands are expanded to one shape."""
        flat = self._view(pointer)
        value = value.contiguous().view(flat.dtype)
        self._check_bounds(line, pointer, pointer.offset, mask)
        who = programs.reshape(-1, *([1] * (value.dim() - 1))).expand(value.shape)
        if mask is None:
            offset, value, who = pointer.offset.reshape(-1), value.reshape(-1), who.reshape(-1)
        else:
            offset, value, who = pointer.offset[mask], value[mask], who[mask]
        if offset.numel() == 0:
            return
        key, shift = self._place[pointer.base]
        self._note_write(line, pointer, key, offset + shift, who)
        flat[offset] = value
        kept = flat[offset]
        if not bool(((kept == value) | ((kept != kept) & (value != value))).all()):
            raise InternalError(
                RACE,
                f"TTIR line {line}: two lanes store different values to one element of {pointer.base}",
            )

    def add(self, line: int, pointer: Pointer, value: Tensor, mask: Tensor | None) -> None:
        """Add to elements, in any order; all operands are expanded to one shape."""
        flat = self._view(pointer)
        self._check_bounds(line, pointer, pointer.offset, mask)
        chosen = slice(None) if mask is None else mask
        offset, value = pointer.offset[chosen].reshape(-1), value[chosen].reshape(-1)
        key, shift = self._place[pointer.base]
        place = offset + shift
        writers = self._map(self._writers, key, self._size(pointer))
        readers = self._map(self._readers, key, self._size(pointer))
        before = writers[place]
        self._refuse(line, pointer, place, (before != _NOBODY) & (before != _ATOMIC), "stores")
        self._refuse(line, pointer, place, readers[place] != _NOBODY, "loads")
        writers[place] = _ATOMIC
        flat.index_add_(0, offset, value)

    def _view(self, pointer: Pointer) -> Tensor:
        """The elements as the pointer's type; fp8, for which torch has no indexing, as bytes."""
        dtype = TYPES[pointer.element]
        return self._flat[pointer.base].view(
            torch.int8 if pointer.element.startswith("f8") else dtype
        )

    def _check_bounds(
        self, line: int, pointer: Pointer, offset: Tensor, mask: Tensor | None
    ) -> None:
        size = self._flat[pointer.base].numel()
        bad = (offset < 0) | (offset >= size)
        if mask is not None:
            bad = bad & mask
        if bool(bad.any()):
            first = int(offset.expand(bad.shape)[bad][0])
            raise InternalError(
                BAD_ACCESS,
                f"TTIR line {line}: offset {first} of {pointer.base} is not in [0, {size})",
            )

    # ------------------------------------------------------------------------------ who did what

    def _map(self, maps: dict[tuple[int, int], Tensor], key: tuple[int, int], size: int) -> Tensor:
        known = maps.get(key)
        if known is None or known.numel() < size:
            grown = torch.full((size,), _NOBODY, dtype=torch.int64)
            if known is not None:
                grown[: known.numel()] = known
            maps[key] = known = grown
        return known

    def _size(self, pointer: Pointer) -> int:
        return self._flat[pointer.base].numel() + self._place[pointer.base][1]

    def _note_write(
        self, line: int, pointer: Pointer, key: tuple[int, int], offset: Tensor, who: Tensor
    ) -> None:
        writers = self._map(self._writers, key, self._size(pointer))
        readers = self._map(self._readers, key, self._size(pointer))
        before, read = writers[offset], readers[offset]
        self._refuse(line, pointer, offset, (before != _NOBODY) & (before != who), "stores")
        self._refuse(line, pointer, offset, (read != _NOBODY) & (read != who), "loads")
        writers[offset] = who
        self._refuse(line, pointer, offset, writers[offset] != who, "stores")

    def _note_read(
        self,
        line: int,
        pointer: Pointer,
        key: tuple[int, int],
        offset: Tensor,
        mask: Tensor | None,
        programs: Tensor,
    ) -> None:
        who = programs.reshape(-1, *([1] * (offset.dim() - 1)))
        offset, who = together(offset, who)
        if mask is not None:
            mask = mask.expand(offset.shape)
            offset, who = offset[mask], who[mask]
        offset, who = offset.reshape(-1), who.reshape(-1)
        writers = self._map(self._writers, key, self._size(pointer))
        readers = self._map(self._readers, key, self._size(pointer))
        writer, before = writers[offset], readers[offset]
        self._refuse(line, pointer, offset, (writer != _NOBODY) & (writer != who), "stores")
        readers[offset] = torch.where((before == _NOBODY) | (before == who), who, _SEVERAL)
        others = readers[offset] != who
        readers[offset[others]] = _SEVERAL

    def _refuse(self, line: int, pointer: Pointer, offset: Tensor, bad: Tensor, verb: str) -> None:
        if bool(bad.any()):
            element = int(offset[bad][0]) - self._place[pointer.base][1]
            raise InternalError(
                RACE,
                f"TTIR line {line}: element {element} of {pointer.base}: another program {verb} it",
            )


def _flat(tensor: Tensor) -> Tensor:
    """The elements from the first to the last that the tensor reaches, in memory order."""
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return torch.as_strided(tensor.detach(), (reach if tensor.numel() else 0,), (1,))


def _place(tensor: Tensor) -> tuple[tuple[int, int], int]:
    """((storage, element size), offset of the first element)."""
    storage = tensor.untyped_storage().data_ptr()
    return (storage, tensor.element_size()), int(tensor.storage_offset())


def _together(offset: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    if mask is None:
        return offset, None
    wide = together(offset, mask)
    return wide[0], wide[1]
