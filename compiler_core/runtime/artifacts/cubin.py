"""What a cubin says about its kernel: registers, stack, code size. Read from the ELF file itself.

In: the bytes. Out: numbers. The sections `.nv.info` and `.nv.info.<kernel>` are lists of attributes; the
numbers of the few that are read here are those that `cuobjdump -res-usage` prints (checked against it).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["CubinFacts", "read_cubin"]

_REGISTERS, _FRAME = 0x2F, 0x11
_SIZED_VALUE = 4


@dataclass(frozen=True, slots=True)
class CubinFacts:
    """`stack_bytes` per thread: above 0 when registers were spilled or arrays indexed."""

    registers: int
    stack_bytes: int
    code_bytes: int


def read_cubin(data: bytes) -> CubinFacts:
    """The facts of the one kernel in a cubin. Raises ValueError for bytes that are no ELF file."""
    if data[:4] != b"\x7fELF":
        raise ValueError("not a cubin: no ELF header")
    registers = stack = code = 0
    for name, start, size in _sections(data):
        if name == ".nv.info":
            for attribute, value in _attributes(data, start, start + size):
                if attribute == _REGISTERS:
                    registers = max(registers, struct.unpack("<II", value)[1])
                elif attribute == _FRAME:
                    stack = max(stack, struct.unpack("<II", value)[1])
        elif name.startswith(".text."):
            code += size
    return CubinFacts(registers, stack, code)


def _sections(data: bytes) -> Iterator[tuple[str, int, int]]:
    """(name, offset, size) of the ELF sections."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    texts = headers[names][4]
    for name, _, _, _, offset, size in headers:
        end = data.index(b"\0", texts + name)
        yield data[texts + name : end].decode(), offset, size


def _attributes(data: bytes, place: int, end: int) -> Iterator[tuple[int, bytes]]:
    while place < end:
        form, attribute = data[place], data[place + 1]
        if form == _SIZED_VALUE:
            (size,) = struct.unpack_from("<H", data, place + 2)
            yield attribute, data[place + 4 : place + 4 + size]
            place += 4 + size
        else:
            yield attribute, data[place + 2 : place + 4]
            place += 4
