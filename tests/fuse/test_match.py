"""The producer's position, solved from two offsets."""

from __future__ import annotations

from itertools import product

import pytest

from compiler_core.fuse.accesses import loads, stores
from compiler_core.fuse.fresh import Names
from compiler_core.fuse.match import digits, match
from compiler_core.fuse.reshape import split_axes
from compiler_core.ir.loop import Nest
from compiler_core.ir.parse import parse_program

TEXT = """
program p(a):
  size s0 = a.size(0)
  in a: f32[s0] stride [1]
  temp b: f32[4096] stride [1]
  out c: f32[4096] stride [1]
  nest writer for {writer}:
    x: f32 = load a[0]
    store b[{store}] = x
  nest reader for {reader}:
    y: f32 = load b[{load}]
    store c[0] = y
  return c"""


def nests(writer: str, store: str, reader: str, load: str) -> tuple[Nest, Nest]:
    program = parse_program(TEXT.format(writer=writer, store=store, reader=reader, load=load))
    first, second = program.body
    assert isinstance(first, Nest) and isinstance(second, Nest)
    return first, second


def positions(nest: Nest, sizes: dict[str, int]) -> list[dict[str, int]]:
    extents = [range(axis.extent.evaluate(sizes)) for axis in nest.axes]
    names = [axis.name for axis in nest.axes]
    return [dict(zip(names, place)) | sizes for place in product(*extents)]


SAME = [
    ("i < 6, j < 4", "4*i + j", "k < 24", "k"),
    ("k < 24", "k", "i < 6, j < 4", "4*i + j"),
    ("i < 6, j < 4", "4*i + j", "p < 2, q < 3, j2 < 4", "12*p + 4*q + j2"),
    ("i < 6, j < 4", "4*i + j", "p < 3, q < 8", "8*p + q"),
    ("i < 6, j < 4", "4*i + j", "a1 < 4, b1 < 6", "a1 + 4*b1"),
    ("i < 6, j < 4", "i + 6*j", "k < 24", "k"),
    ("i < s0, j < 4", "4*i + j", "k < 4*s0", "k"),
    ("i < s0, j < 4", "4*i + j", "p < 2, q < 2*s0", "2*q + p"),
    ("i < 6", "i", "p < 3, q < 6", "q"),
]


@pytest.mark.parametrize("case", SAME)
def test_position(case: tuple[str, str, str, str]) -> None:
    """The store at the position that was found is the element that the load reads."""
    writer, reader = nests(*case)
    found = match(stores(writer)[0], loads(reader)[0], Names({"i", "j", "k", "p", "q"}))
    assert found is not None
    reader = split_axes(reader, found.splits)
    load, store = loads(reader)[0], stores(writer)[0]
    for sizes in ({"s0": 5}, {"s0": 1}):
        for place in positions(reader, sizes):
            at = {name: e.evaluate(place) for name, e in found.at.items()}
            for axis in writer.axes:
                assert 0 <= at[axis.name] < axis.extent.evaluate(sizes)
            wrote = store.statement.offset.evaluate(at | sizes)
            assert wrote == load.statement.offset.evaluate(place)


NOT_SAME = [
    ("i < 6, j < 4", "4*i + j", "p < 5", "p + 3"),  # a part
    ("i < 6, j < 4", "4*i + j", "p < 4, q < 6", "6*p + 23 - q"),  # backwards
    ("i < 6, j < 4", "4*i + j", "p < 4, q < 6", "6*p + q"),  # rows that straddle
    ("i < s0, j < 4", "4*i + j", "k < 24", "k"),  # another extent
    ("i < 6, j < 4", "5*i + j", "k < 24", "k"),  # gaps
    ("i < 6, j < 4", "4*i + j", "k < 24", "k*k"),  # not linear
    ("i < 6, j < 4", "i", "k < 6", "k"),  # no one position: j is not in the offset
]


@pytest.mark.parametrize("case", NOT_SAME)
def test_no_position(case: tuple[str, str, str, str]) -> None:
    writer, reader = nests(*case)
    assert match(stores(writer)[0], loads(reader)[0], Names(())) is None


DIVIDED = [
    ("i < 6, j < 4", "4*i + j", "p < 5", "p + 3"),
    ("i < 6, j < 4", "4*i + j", "p < 4, q < 6", "6*p + 23 - 6*p - q"),
    ("i < 6, j < 4", "4*i + j", "p < 4, q < 6", "6*p + q"),
    ("i < 6, j < 4", "4*i + j", "p < 5, q < 3", "4*p + q + 5"),
]


@pytest.mark.parametrize("case", DIVIDED)
def test_position_by_division(case: tuple[str, str, str, str]) -> None:
    writer, reader = nests(*case)
    at = digits(stores(writer)[0], loads(reader)[0], {})
    assert at is not None
    for place in positions(reader, {}):
        offset = loads(reader)[0].statement.offset.evaluate(place)
        digits_here = {name: e.evaluate(place) for name, e in at.items()}
        assert stores(writer)[0].statement.offset.evaluate(digits_here) == offset


def test_division_is_simplified_away_where_extents_say_so() -> None:
    writer, reader = nests("i < 6, j < 4", "4*i + j", "p < 5, q < 3", "4*p + q + 4")
    at = digits(stores(writer)[0], loads(reader)[0], {})
    assert {name: str(e) for name, e in (at or {}).items()} == {"i": "p + 1", "j": "q"}


def test_gaps_cannot_be_divided() -> None:
    writer, reader = nests("i < 6, j < 4", "5*i + j", "k < 20", "k")
    assert digits(stores(writer)[0], loads(reader)[0], {}) is None
