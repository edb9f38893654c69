"""The minimum cut against every cut there is, on small random networks."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_core.autodiff.mincut import UNLIMITED, Network

Edges = list[tuple[int, int, int]]
SOURCE, SINK = 0, 1


def network(edges: Edges) -> Network[int]:
    made: Network[int] = Network()
    for tail, head, capacity in edges:
        made.edge(tail, head, capacity)
    return made


def cost(edges: Edges, early: set[int]) -> int:
    return sum(c for tail, head, c in edges if tail in early and head not in early)


def cuts(edges: Edges) -> list[set[int]]:
    inner = sorted({n for tail, head, _ in edges for n in (tail, head)} - {SOURCE, SINK})
    return [
        {SOURCE, *chosen}
        for size in range(len(inner) + 1)
        for chosen in itertools.combinations(inner, size)
    ]


edges = st.lists(
    st.tuples(
        st.integers(0, 7), st.integers(0, 7), st.one_of(st.integers(0, 9), st.just(UNLIMITED))
    ).filter(lambda e: e[0] != e[1]),
    max_size=18,
)


@given(edges)
def test_no_cut_is_smaller_and_none_as_small_is_nearer_to_the_sink(given_edges: Edges) -> None:
    total, early = network(given_edges).minimum_cut(SOURCE, SINK)
    best = min((cost(given_edges, cut) for cut in cuts(given_edges)), default=0)
    if best >= UNLIMITED:
        assert total >= UNLIMITED
        return
    assert total == best
    assert SOURCE in early and SINK not in early
    assert cost(given_edges, early) == best
    for cut in cuts(given_edges):
        if cost(given_edges, cut) == best:
            assert cut <= early


def test_of_equal_cuts_the_later_is_taken() -> None:
    total, early = network([(SOURCE, 2, 5), (2, 3, 5), (3, SINK, 5)]).minimum_cut(SOURCE, SINK)
    assert (total, early) == (5, {SOURCE, 2, 3})


def test_parallel_edges_and_back_edges_count() -> None:
    edges = [(SOURCE, 2, 3), (SOURCE, 2, 4), (2, SOURCE, 9), (2, SINK, 10)]
    assert network(edges).minimum_cut(SOURCE, SINK)[0] == 7


@pytest.mark.parametrize("length", [20_000])
def test_long_chains_do_not_recurse(length: int) -> None:
    chain = [(i, i + 1, 2) for i in range(2, length)]
    edges = [(SOURCE, 2, UNLIMITED), *chain, (length, SINK, 1)]
    total, early = network(edges).minimum_cut(SOURCE, SINK)
    assert total == 1 and len(early) == length
