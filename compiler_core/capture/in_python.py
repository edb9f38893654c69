"""What iterators of the standard library do, written in Python so that it can be followed.

In: the arguments of the original. Out: its items, as lazily as the original gives them. These
functions are interpreted, never called; a generator of theirs that outlives the graph is made
natively, by the original (`library_calls.py` has the rows).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = [
    "accumulate", "compress", "concat", "count_of", "cycle", "dropwhile", "filterfalse", "groupby", "starmap", "takewhile", "tee",
    "until", "zip_longest",
]  # fmt: skip

_NOTHING: Any = object()


def accumulate(iterable: Iterable[Any], func: Any = None, *, initial: Any = None) -> Iterator[Any]:
    return _accumulate(iter(iterable), operator.add if func is None else func, initial)


def _accumulate(source: Iterator[Any], func: Callable[..., Any], total: Any) -> Iterator[Any]:
    if total is None:
        total = next(source, _NOTHING)
    if total is _NOTHING:
        return
    yield total
    for item in source:
        total = func(total, item)
        yield total


def takewhile(predicate: Callable[[Any], Any], iterable: Iterable[Any], /) -> Iterator[Any]:
    return _takewhile(predicate, iter(iterable))


def _takewhile(predicate: Callable[[Any], Any], source: Iterator[Any]) -> Iterator[Any]:
    for item in source:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate: Callable[[Any], Any], iterable: Iterable[Any], /) -> Iterator[Any]:
    return _dropwhile(predicate, iter(iterable))


def _dropwhile(predicate: Callable[[Any], Any], source: Iterator[Any]) -> Iterator[Any]:
    for item in source:
        if not predicate(item):
            yield item
            break
    yield from source


def filterfalse(predicate: Callable[[Any], Any] | None, iterable: Iterable[Any], /) -> Iterator[Any]:  # fmt: skip
    return _filterfalse(predicate, iter(iterable))


def _filterfalse(predicate: Callable[[Any], Any] | None, source: Iterator[Any]) -> Iterator[Any]:
    for item in source:
        if not (item if predicate is None else predicate(item)):
            yield item


def starmap(function: Callable[..., Any], iterable: Iterable[Any], /) -> Iterator[Any]:
    return _starmap(function, iter(iterable))


def _starmap(function: Callable[..., Any], source: Iterator[Any]) -> Iterator[Any]:
    for arguments in source:
        yield function(*arguments)


def compress(data: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    return _compress(iter(data), iter(selectors))


def _compress(source: Iterator[Any], selectors: Iterator[Any]) -> Iterator[Any]:
    for item, chosen in zip(source, selectors):
        if chosen:
            yield item


def cycle(iterable: Iterable[Any], /) -> Iterator[Any]:
    return _cycle(iter(iterable))


def _cycle(source: Iterator[Any]) -> Iterator[Any]:
    kept = []
    for item in source:
        kept.append(item)
        yield item
    while kept:
        yield from kept


def zip_longest(*iterables: Iterable[Any], fillvalue: Any = None) -> Iterator[Any]:
    return _zip_longest([iter(iterable) for iterable in iterables], fillvalue)


def _zip_longest(sources: list[Any], fillvalue: Any) -> Iterator[Any]:
    left = len(sources)
    while left:
        row = []
        for place, source in enumerate(sources):
            item = _NOTHING if source is None else next(source, _NOTHING)
            if item is _NOTHING and source is not None:
                sources[place] = None
                left -= 1
                if not left:
                    return
            row.append(fillvalue if item is _NOTHING else item)
        yield tuple(row)


def groupby(iterable: Iterable[Any], key: Any = None) -> Iterator[Any]:
    return _groupby(iter(iterable), key)


def _groupby(source: Iterator[Any], key: Any) -> Iterator[Any]:
    box = [_keyed(source, key)]
    while box[0] is not None:
        wanted = box[0][0]
        turn = [True]  # a group gives nothing once the next one has been asked for
        yield wanted, _members(source, key, wanted, box, turn)
        turn[0] = False
        while box[0] is not None and box[0][0] == wanted:
            box[0] = _keyed(source, key)


def _members(
    source: Iterator[Any], key: Any, wanted: Any, box: list[Any], turn: list[bool]
) -> Iterator[Any]:
    while turn[0] and box[0] is not None and box[0][0] == wanted:
        yield box[0][1]
        if turn[0]:
            box[0] = _keyed(source, key)


def _keyed(source: Iterator[Any], key: Any) -> tuple[Any, Any] | None:
    for item in source:
        return (item if key is None else key(item)), item
    return None


def tee(iterable: Iterable[Any], n: int = 2, /) -> tuple[Iterator[Any], ...]:
    source = iter(iterable)
    kept: list[Any] = []
    return tuple([_tee(source, kept) for _ in range(n)])


def _tee(source: Iterator[Any], kept: list[Any]) -> Iterator[Any]:
    place = 0
    while True:
        if place == len(kept):
            item = next(source, _NOTHING)
            if item is _NOTHING:
                return
            kept.append(item)
        yield kept[place]
        place += 1


def until(function: Callable[[], Any], sentinel: Any, /) -> Iterator[Any]:
    """`iter(function, sentinel)`."""
    if not callable(function):
        raise TypeError("iter(v, w): v must be callable")
    return _until(function, sentinel)


def _until(function: Callable[[], Any], sentinel: Any) -> Iterator[Any]:
    while True:
        item = function()
        if item is sentinel or item == sentinel:
            return
        yield item


def concat(a: Any, b: Any, /) -> Any:
    """`operator.concat` of sequences."""
    return a + b


def count_of(items: Iterable[Any], wanted: Any, /) -> int:
    """`operator.countOf`."""
    count = 0
    for item in items:
        if item is wanted or item == wanted:
            count += 1
    return count
