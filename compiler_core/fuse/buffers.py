"""The buffer plan: which buffers are left, how long each lives, whose memory it takes.

In: the body in execution order. Out: `last_use` and `reuse`, one "reuse" record for each reuse. A temp
takes the memory of a dead temp of the same type and number of elements. Dead means that no item at or
after the one that makes the new buffer reads it: a kernel never reads memory that it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from compiler_core.fuse.accesses import read_buffers, written_buffers
from compiler_core.fuse.linear import product
from compiler_core.fuse.viewed import viewed_buffers
from compiler_core.ir.index import Index
from compiler_core.ir.loop import Buffer, Call, Nest
from compiler_core.options import Context
from compiler_core.provenance import Handle

__all__ = ["last_uses", "live_buffers", "plan_reuse"]

Body = Sequence[Nest | Call]


def live_buffers(buffers: Mapping[str, Buffer], body: Body) -> dict[str, Buffer]:
    """The buffers without temps that nothing writes any more."""
    written = {name for item in body for name in _written(item)}
    return {n: b for n, b in buffers.items() if b.role != "temp" or n in written}


def last_uses(body: Body, kept: Iterable[str]) -> dict[str, int]:
    """The position of the last item that reads or makes each buffer, without those that stay alive."""
    last: dict[str, int] = {}
    for position, item in enumerate(body):
        for name in (*_read(item), *_written(item)):
            last[name] = position
    return {name: position for name, position in last.items() if name not in set(kept)}


def plan_reuse(
    buffers: Mapping[str, Buffer],
    body: Body,
    last_use: Mapping[str, int],
    makers: Mapping[str, Handle],
    context: Context,
) -> dict[str, str]:
    """{buffer: the dead buffer whose memory it takes}. Library calls allocate their results themselves."""
    free: dict[tuple[str, str, Index], list[str]] = {}
    reuse: dict[str, str] = {}
    dying: dict[int, list[str]] = {}
    for name, position in last_use.items():
        if name in buffers and buffers[name].role == "temp" and _is_dense(buffers[name]):
            dying.setdefault(position, []).append(name)
    made: set[str] = set()
    for position, item in enumerate(body):
        new = [name for name in _written(item) if name not in made]
        made.update(new)
        for name in new if isinstance(item, Nest) else ():
            pool = free.get(_memory(buffers[name]), [])
            if name in last_use and pool and _is_dense(buffers[name]):
                reuse[name] = pool.pop()
                _record(context, buffers[name], reuse[name], makers)
        for name in dying.get(position, ()):
            free.setdefault(_memory(buffers[name]), []).append(name)
    return reuse


def _memory(buffer: Buffer) -> tuple[str, str, Index]:
    return buffer.dtype.name, buffer.device, product(buffer.shape)


def _is_dense(buffer: Buffer) -> bool:
    """Whether the elements fill their memory, in whatever order of the dimensions."""
    step = product(())
    dims = [(size, stride) for size, stride in zip(buffer.shape, buffer.strides, strict=True)]
    left = [dim for dim in dims if dim[0].constant != 1]
    while left:
        dim = next((dim for dim in left if dim[1] is step), None)
        if dim is None:
            return False
        left.remove(dim)
        step = step * dim[0]
    return True


def _record(context: Context, buffer: Buffer, dead: str, makers: Mapping[str, Handle]) -> None:
    size = (product(buffer.shape) * buffer.dtype.bytes).constant
    about = {makers[name] for name in (buffer.name, dead) if name in makers}
    reason = f"{buffer.name} takes the memory of {dead}, which nothing reads any more"
    context.recorder.decide("reuse", about, "reused", reason, bytes=size)


def _read(item: Nest | Call) -> tuple[str, ...]:
    if isinstance(item, Nest):
        return read_buffers(item)
    return viewed_buffers((item.args, item.kwargs))


def _written(item: Nest | Call) -> tuple[str, ...]:
    return written_buffers(item) if isinstance(item, Nest) else tuple(b for b in item.outputs if b)
