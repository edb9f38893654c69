"""Calls that leave text behind, and functions that `functools.lru_cache` wraps.

A log record with constant arguments is an effect: it is made after the graph, in its place among the
other effects. A cached function is followed; if all it does is log, the call of the cached function
itself becomes the effect, so that its cache decides whether there is a record. One that cannot be
followed is called while tracing, when its cache keeps what it gives for good.
"""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler_core.capture.break_kinds.output import LOGS
from compiler_core.capture.breaks import SIDE_EFFECT, UNKNOWN_CALL, Again, Break, raise_real
from compiler_core.capture.folding import NotConstant, boxed, payload
from compiler_core.capture.resolve import constant_value
from compiler_core.capture.rules import RULES
from compiler_core.capture.torch_frames import hide
from compiler_core.capture.trace import user_name
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import NONE, is_none
from compiler_core.capture.values.objects import ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["call_cached"]

_LEVELS = ("debug", "info", "warning", "error", "critical")


def _log_rule(function: Any) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if kwargs:
            raise Break(LOGS, f"Logger.{function.__name__} with keywords")
        place = trace.frame.code.co_filename, trace.frame.line, user_name(trace.frame.code)
        trace.ledger.call(_record_from(function.__name__.upper(), *place), _constants(trace, args))
        return NONE

    RULES[function] = called


for _level in _LEVELS:
    _log_rule(getattr(logging.Logger, _level))


@functools.cache
def _record_from(level: str, file: str, line: int, name: str) -> Callable[..., Any]:
    """What logs at a level as if it were called from that line: loggers look at the stack."""
    number: int = getattr(logging, level)

    def log(logger: logging.Logger, message: object, *args: Any) -> None:
        if logger.isEnabledFor(number):
            record = logger.makeRecord(logger.name, number, file, line, message, args, None, name)
            logger.handle(record)

    return _left_alone(log)


@functools.cache
def _left_alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` such that its frames, and those of log handlers below it, are never captured."""

    @functools.wraps(function)
    def left_alone(*args: Any) -> Any:
        return function(*args)

    hidden: Any = left_alone
    hide(hidden.__code__)
    return hidden  # type: ignore[no-any-return]


def _constants(trace: Trace, args: list[Value]) -> list[Value]:
    """The receiver as it is, the others as they are now: a list may change before the effect. Raises Break."""
    receiver = trace.look(args[0])
    try:
        return [receiver, *(constant_value(payload(trace, arg)) for arg in args[1:])]
    except NotConstant as missing:
        raise Break(LOGS, f"a log record of {missing}") from None


def call_cached(
    trace: Trace, callee: ObjectValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`function(*args, **kwargs)` for what `functools.lru_cache` made. Raises Break."""
    from compiler_core.capture.calls import call

    real, source = callee.real, callee.source
    inner = source.attr("__wrapped__") if source is not None else None
    wrapped = trace.look(Lazy(real.__wrapped__, source=inner, trusted=inner is None))
    if real in _NOT_FOLLOWED and (given := _settled(trace, real, args, kwargs)) is not None:
        return _asked_now(trace, real, *given)
    entries = trace.ledger.entries
    before = len(entries)
    try:
        result = trace.look(call(trace, wrapped, args, kwargs))
    except Break:
        if real in _NOT_FOLLOWED or _settled(trace, real, args, kwargs) is None:
            raise
        _NOT_FOLLOWED.add(real)
        raise Again from None
    made = entries[before:]
    if not made:
        return _pure_result(trace, real, result, args, kwargs)
    if kwargs or not is_none(result) or any(entry.kind != "call" for entry in made):
        raise Break(SIDE_EFFECT, f"{real.__qualname__} has effects that depend on its cache")
    del entries[before:]
    trace.ledger.call(_left_alone(real), _constants(trace, args))
    return NONE


def _pure_result(
    trace: Trace, real: Any, result: Value, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A constant is what it is; any other object is the one in the cache, made now as eager would."""
    try:
        return boxed(payload(trace, result))
    except NotConstant:
        pass
    given = _settled(trace, real, args, kwargs)
    if given is None:
        raise Break(UNKNOWN_CALL, f"{real.__qualname__}, whose cache may forget the result")
    return _asked_now(trace, real, *given)


#: cached functions that cannot be followed: their cache is asked instead
_NOT_FOLLOWED: weakref.WeakSet[Any] = weakref.WeakSet()


def _settled(
    trace: Trace, real: Any, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The real arguments, if the first call with them decides the result of all later ones."""
    if (args or kwargs) and real.cache_parameters()["maxsize"] is not None:
        return None
    try:
        return [payload(trace, a) for a in args], {k: payload(trace, a) for k, a in kwargs.items()}
    except NotConstant:
        return None


def _asked_now(trace: Trace, real: Any, args: list[Any], kwargs: dict[str, Any]) -> Value:
    """What the cache has, or what eager would put there at this point. Raises Raised."""
    try:
        kept = real(*args, **kwargs)
    except Exception as error:
        raise raise_real(error) from None
    return trace.look(Lazy(kept, source=trace.inject(kept, real.__name__), trusted=True))
