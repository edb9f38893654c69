"""Programs that generated tests got wrong: objects of the program that the compiler touched or kept."""

from __future__ import annotations

import collections
import gc
import weakref

import pytest
import torch
from capturing import agree

import compiler_core as cc

ONE = torch.ones(3)


def test_looking_for_what_changed_makes_no_item_of_a_defaultdict():
    def f(x, d):
        d["y"] = x * 2
        return d.get("b", 0), len(d)

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for make in (lambda: {"b": 1}, lambda: {"b": 2}, lambda: collections.defaultdict(list)) * 2:
        ours, eager = make(), make()
        assert compiled(ONE, ours) == f(ONE, eager)
        assert list(ours) == list(eager)


def test_a_generator_dropped_inside_try_runs_its_finally():
    def f(x):
        log = []

        def numbers():
            try:
                for i in range(5):
                    yield x * i
            finally:
                log.append("closed")

        pairs = list(zip("ab", numbers()))
        return pairs[1][1] + 1, log

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for k in (1, 2, 3):
        ours, eager = compiled(ONE * k), f(ONE * k)
        assert ours[1] == eager[1] == ["closed"] and torch.equal(ours[0], eager[0])


def test_a_generator_dropped_outside_try_costs_no_break():
    def f(x):
        return list(zip("ab", (x * i for i in range(5))))

    log = agree(lambda: f, [(ONE,), (ONE * 2,)])
    assert log.graph_calls == 2 and log.captures[0].break_ is None


class Tagging(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = f"{cls.__name__} {len(args)}"
        return made


class Pair(metaclass=Tagging):
    def __init__(self, *items):
        self.items = items


def test_super_in_a_metaclass_is_found_behind_the_metaclass():
    def f(x):
        pair = Pair(x, x * 2)
        return pair.items[1] + 1, pair.tag

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    for k in (1, 2, 3):
        ours, eager = compiled(ONE * k), f(ONE * k)
        assert torch.equal(ours[0], eager[0]) and ours[1] == eager[1] == "Pair 2"


class Holder:
    pass


def test_a_compile_keeps_no_object_of_the_program_alive():
    def f(x, holder):
        return x * 2 + len(holder.items)

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    compiled(torch.ones(9), _holder([0]))  # what the first compile of a process loads
    gc.collect()
    gc.disable()
    try:
        for size in (2, 3, 3):
            x, holder = torch.ones(size), _holder([1] * size)
            alive = weakref.ref(x), weakref.ref(holder)
            compiled(x, holder)
            del x, holder
            assert [reference() for reference in alive] == [None, None]
    finally:
        gc.enable()


def _holder(items):
    holder = Holder()
    holder.items = items
    return holder


def test_a_compile_that_breaks_keeps_no_object_of_the_program_alive():
    def f(x, holder):
        print(end="")
        return x * 2 + len(holder.items)

    compiled = cc.compile(f, options={"strict": True}, backend="eager")
    compiled(torch.ones(9), _holder([0]))
    gc.collect()
    gc.disable()
    try:
        for size in (2, 3, 3):
            holder = _holder([1] * size)
            alive = weakref.ref(holder)
            compiled(torch.ones(size), holder)
            del holder
            assert alive() is None
    finally:
        gc.enable()


def test_values_put_where_a_mask_is_true_have_a_gradient():
    """It reads as many elements as the mask has true ones, which no static graph does."""

    def f(x, mask):
        y = x.clone()
        y[mask, 0] = x.sum()
        return y * 2

    compiled = cc.compile(f, options={"strict": True})
    mask = torch.tensor([True, False, True])
    for k, needs in ((1, True), (2, False), (3, True)):
        x = (torch.ones(3, 2) * k).requires_grad_(needs)
        ours, eager = compiled(x, mask), f(x, mask)
        assert torch.equal(ours, eager) and ours.requires_grad is needs
        if needs:
            mine, theirs = (torch.autograd.grad(o.sum(), x) for o in (ours, eager))
            assert torch.equal(*mine, *theirs)


def test_as_strided_reads_the_memory_of_the_call():
    """Not the elements of an input: it may begin elsewhere in its memory, or end before."""

    def f(x):
        return x.as_strided((2, 2), (1, 1), 1) * 2

    compiled = cc.compile(f, options={"strict": True})
    memory = torch.arange(12.0)
    for x in (memory[:4], memory[4:8], memory[:4].clone(), memory[2:6]):
        assert torch.equal(compiled(x), f(x))
    with pytest.raises(RuntimeError, match="storage"):
        compiled(torch.ones(0))


def test_as_strided_of_a_value_of_the_graph():
    def f(x):
        return (x + 1).as_strided((2, 2), (1, 2), 1) * 2

    log = agree(lambda: f, [(torch.ones(6),), (torch.arange(6.0),), (torch.ones(3),)])
    assert log.graph_calls >= 2 and log.captures[0].break_ is None


def test_the_sign_of_a_bool_is_the_bool():
    def f(x):
        return torch.sign(x), x.sgn()

    compiled = cc.compile(f, options={"strict": True})
    for x in (torch.tensor([True, False]), torch.tensor([False]), torch.tensor([-2.0, 0.0])):
        for mine, theirs in zip(compiled(x), f(x)):
            assert mine.dtype == theirs.dtype and torch.equal(mine, theirs)


def test_where_a_tensor_begins_in_its_memory_is_asked_at_each_call():
    def f(x):
        return x * 2, x.storage_offset()

    compiled, memory = cc.compile(f, options={"strict": True}), torch.arange(8.0)
    for start in (0, 4, 2):
        ours, eager = compiled(memory[start : start + 4]), f(memory[start : start + 4])
        assert torch.equal(ours[0], eager[0]) and ours[1] == eager[1] == start
