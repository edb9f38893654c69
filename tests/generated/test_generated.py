"""Generated programs do compiled what they do in plain Python; the judge sees it when one does not."""

from __future__ import annotations

import ast

import pytest
from grammar import rules
from judge import judge
from shrink import shrink
from write_program import write_program

import compiler_core as cc

SEEDS = range(56)
WHOLE = range(56, 60)  # through generated kernels


@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_holds(seed):
    verdict = judge(write_program(seed))
    assert not verdict.failure, f"tests/generated/run.py --seed {seed} --count 1: {verdict.failure}"


@pytest.mark.parametrize("seed", WHOLE)
def test_a_program_holds_through_kernels(seed):
    verdict = judge(write_program(seed), "cutaway")
    assert not verdict.failure, f"--seed {seed} --count 1 --backend cutaway: {verdict.failure}"


def test_every_rule_is_used_by_the_500_programs():
    from write_program import written_rules

    used = set().union(*(written_rules(seed) for seed in range(500)))
    assert used == {rule.name for rule in rules()}


def test_a_seed_is_one_program():
    assert write_program(7) == write_program(7) != write_program(8)


SMALL = """
import torch


class State:
    def __init__(self):
        self.log = []


def inputs(call):
    return torch.ones(2, 3), torch.ones(2, 3)


def mutate(call, state):
    pass


def program(x, y, state):
    unused = x * 2
    state.log.append("here")
    return {}
"""

#: what a compiled run might do wrong, planted through `torch.compiler.is_compiling()`
PLANTED = {
    "the result": "x + torch.compiler.is_compiling()",
    "an effect": "state.log.append(torch.compiler.is_compiling()) or x",
    "an exception": "x.sin() if not torch.compiler.is_compiling() else x.no_such_method()",
}


@pytest.mark.parametrize("what", PLANTED)
def test_the_judge_sees(what):
    verdict = judge(SMALL.format(PLANTED[what]))
    assert verdict.failure and verdict.kind


def test_the_judge_wants_a_graph():
    assert judge(SMALL.replace("x * 2", "x").format("state.log")).kind == "no graph"
    assert not judge(SMALL.format("x * 3")).failure


def test_shrinking_keeps_what_fails_and_drops_the_rest():
    def fails(text):
        cc.reset()
        return judge(text).kind == "differs: result"

    small = shrink(SMALL.format(PLANTED["the result"]), fails)
    body = next(n for n in ast.parse(small).body if getattr(n, "name", "") == "program").body
    assert [type(n) for n in body] == [ast.Return]
