"""Generators made in the trace: suspended frames, resumed by next(), send() and throw()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler_core.capture.breaks import ITERATION, Break, Raised, raise_real
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, is_none
from compiler_core.capture.values.iterators import (
    GeneratorValue,
)
from compiler_core.capture.values.objects import Instance

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

from compiler_core.capture.iteration import next_item, stop

__all__ = ["closes_silently", "resume", "send"]


def send(trace: Trace, generator: Value, value: Value) -> Value:
    """`generator.send(value)`, or next() of another iterator. Raises Raised(StopIteration)."""
    if isinstance(generator, GeneratorValue):
        return resume(trace, generator, value)
    if not is_none(value):
        raise Break(ITERATION, "send() to an iterator that is no generator")
    return next_item(trace, generator)


def closes_silently(trace: Trace, generator: GeneratorValue) -> bool:
    """Close a suspended generator: does it end without having called or changed anything?"""
    before = trace.changes + 1, len(trace.builder.graph.nodes), len(trace.ledger.entries)
    try:
        resume(trace, generator, NONE, Instance(GeneratorExit, args=()))
    except Raised as raised:
        ended = issubclass(raised.value.cls, (GeneratorExit, StopIteration))
    except Break:
        return False
    else:
        return False
    now = trace.changes, len(trace.builder.graph.nodes), len(trace.ledger.entries)
    return ended and now == before


def resume(
    trace: Trace, generator: GeneratorValue, value: Value, thrown: Instance | None = None
) -> Value:
    """Run the frame to its next yield."""
    from compiler_core.capture.interpreter import run, throw_into

    frame = generator.frame
    if generator.state == "running":
        raise raise_real(ValueError("generator already executing"))
    if generator.state == "closed" or (thrown is not None and generator.state == "created"):
        generator.state = "closed"
        raise Raised(thrown) if thrown is not None else stop()
    if generator.state == "suspended" and thrown is None:
        frame.push(value)
    generator.state = "running"
    try:
        result = throw_into(frame, thrown) if thrown is not None else run(frame)
    except Raised as raised:
        generator.state = "closed"
        if issubclass(raised.value.cls, StopIteration):
            error = raise_real(RuntimeError("generator raised StopIteration"))
            error.value.attributes["__cause__"] = raised.value
            raise error from None
        raise
    if frame.yielded:
        generator.state = "suspended"
        return result
    generator.state = "closed"
    raise stop(None if is_none(result) else result)
