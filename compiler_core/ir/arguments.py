"""The arguments of a program, checked against what it declares.

In: a `Program` and the values it is called with. Out: the sizes that they bind; or an error that names
the argument. The interpreter and `Built.run` use it; a compiled frame's guards have checked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler_core.ir.loop import Buffer, Program

__all__ = ["bind_sizes", "check_arguments", "check_tensor"]


def check_arguments(program: Program, values: Sequence[Any]) -> dict[str, int]:
    """The sizes that the values bind. Raises TypeError or ValueError for one that is not as declared."""
    if len(values) != len(program.inputs):
        takes = f"{len(program.inputs)} arguments ({', '.join(program.inputs)})"
        raise TypeError(f"program {program.name} takes {takes}, got {len(values)}")
    arguments = dict(zip(program.inputs, values))
    sizes = bind_sizes(program, arguments)
    for name, value in arguments.items():
        if name in program.buffers and not _is_float(program.buffers[name], value):
            check_tensor(program.buffers[name], value, sizes)
    return sizes


def _is_float(buffer: Buffer, value: Any) -> bool:
    """A Python float where the program takes one; the element itself is as good."""
    return buffer.role == "const" and isinstance(value, float)


def bind_sizes(program: Program, arguments: dict[str, Any]) -> dict[str, int]:
    """Size symbol → number, from the tensors' sizes and the integer arguments."""
    sizes: dict[str, int] = {}
    for name, source in program.symbols.items():
        if source is not None:
            sizes[name] = arguments[source[0]].shape[source[1]]
        elif arguments[name] is not None:
            sizes[name] = int(arguments[name])
    return sizes


def check_tensor(buffer: Buffer, value: Any, sizes: dict[str, int]) -> None:
    """Raises TypeError for another type, ValueError for other sizes or strides than the buffer's."""
    if not isinstance(value, torch.Tensor) or value.dtype != buffer.dtype.torch:
        got = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
        raise TypeError(f"argument {buffer.name} is {buffer.dtype.torch}, got {got}")
    shape = tuple(part.evaluate(sizes) for part in buffer.shape)
    strides = tuple(part.evaluate(sizes) for part in buffer.strides)
    if tuple(value.shape) != shape or not _has_strides(value, strides):
        raise ValueError(
            f"argument {buffer.name} has sizes {shape} and strides {strides}, "
            f"got {tuple(value.shape)} and {value.stride()}"
        )


def _has_strides(value: torch.Tensor, strides: Sequence[int]) -> bool:
    """Strides agree where they matter: in dimensions of more than one element."""
    if value.numel() == 0:
        return True
    return all(
        have == want for size, have, want in zip(value.shape, value.stride(), strides) if size > 1
    )
