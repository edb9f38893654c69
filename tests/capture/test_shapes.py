"""Symbolic sizes: marked dimensions, sizes that changed, conditions on them as guards."""

from __future__ import annotations

import torch
from capturing import agree, captured, same


def rows(n, m=3):
    return torch.arange(float(n * m)).reshape(n, m)


def reshapes(x):
    n = x.shape[0]
    y = x.reshape(n * 3)
    if n > 2:
        y = y * n
    return y.view(-1, 3)[: n // 2], n + 1, x.size(), float(n) / 2, torch.zeros(n, 2), len(x)


def test_a_size_that_changes_becomes_symbolic():
    log = agree(lambda: reshapes, [(rows(n),) for n in (4, 5, 6, 9)])
    assert log.graphs == 2
    second = log.captures[1]
    assert second.inputs[0].dynamic == (0,)
    assert [r.check for r in second.guards if r.kind == "shape"] == ["(2 < L['x'].size(0))"] or any(
        "L['x'].size(0)" in r.check for r in second.guards if r.kind == "shape"
    )
    assert all(":" in r.line for r in second.guards if r.kind == "shape")


def test_a_branch_on_a_symbolic_size_is_guarded():
    log = agree(lambda: reshapes, [(rows(n),) for n in (4, 5, 2, 6, 2, 7)])
    assert log.graphs == 3


def test_marked_dimensions_are_symbolic_at_once():
    wrapped, log, _ = captured(lambda x: x.sum(0) * x.shape[0])
    for n in (4, 6, 9):
        x = rows(n)
        x._cutaway_dynamic = {0}
        same(x.sum(0) * n, wrapped(x))
    assert log.graphs == 1
    assert log.captures[0].inputs[0].dynamic == (0,)


def test_zero_and_one_are_versions_of_their_own():
    def f(x, y):
        return x.sum(0) + y.sum(0), x * 2, x.shape[0] - y.shape[0]

    sizes = [(4, 4), (5, 5), (6, 7), (9, 3), (1, 3), (0, 2), (8, 8)]
    log = agree(lambda: f, [(torch.ones(a, 3), torch.ones(b, 3)) for a, b in sizes])
    assert log.graphs <= 5


def test_sizes_that_must_agree_are_guarded():
    def f(x, y):
        return x + y

    log = agree(
        lambda: f,
        [
            (rows(4), rows(4)),
            (rows(5), rows(5)),
            (rows(6), rows(6)),
            (rows(6), rows(1)),
            (rows(6), rows(7)),
        ],
    )
    assert log.graphs >= 3  # static, both symbolic and equal, broadcast


def test_unmarked_sizes_are_static_at_first():
    _, log, _ = captured(lambda x: x * 2)
    log = agree(lambda: lambda x: x * 2, [(rows(4),)])
    assert log.captures[0].inputs[0].dynamic == ()
    assert not any(r.kind == "shape" for r in log.captures[0].guards)


def test_ints_that_change_become_symbolic():
    def f(x, n, k):
        y = x * n + k
        if n % 4 == 0:
            y = -y
        return y, n // 3, x.new_zeros(n)

    log = agree(lambda: f, [(rows(2), n, n + 7) for n in (3, 5, 6, 7, 8, 9, 12)])
    assert log.graphs <= 4


def test_a_symbolic_int_used_as_index_key_and_text():
    def f(x, n):
        names = ["a", "b", "c", "d"]
        table = {0: "zero", 1: "one", 2: "two", 3: "three"}
        return x + n, names[n], table[n], f"{n}", [i for i in range(n)]

    agree(lambda: f, [(rows(2), n) for n in (1, 2, 3, 2, 1)])


def test_symbolic_sizes_reach_the_graph_as_nodes():
    wrapped, log, _ = captured(lambda x: x.new_ones(x.shape[0] * 2 + 1, 3))
    x = rows(4)
    x._cutaway_dynamic = {0}
    assert wrapped(x).shape == (9, 3)
    names = [n.target for n in log.captures[0].graph.graph.nodes if n.op == "call_function"]
    assert torch.ops.aten.sym_size.int in names
    y = rows(7)
    y._cutaway_dynamic = {0}
    assert wrapped(y).shape == (15, 3) and log.graphs == 1
