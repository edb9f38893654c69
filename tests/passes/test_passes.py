"""Each pass: what it rewrites, what it must leave, whose origins survive; and random graphs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)  # fmt: skip

from compiler_core.lower import lower
from compiler_core.options import Context, Options, Target
from compiler_core.passes import (
    PASSES,
    drop_noop_views,
    fold_constants,
    merge_common_subexpressions,
    remove_dead_code,
    simplify_identities,
    tidy,
)  # fmt: skip
from compiler_core.recording import Recorder

aten = torch.ops.aten


def context() -> Context:
    return Context(Options(strict=True), Recorder(explore=True))


def trace(call: Callable[..., Any], *inputs: torch.Tensor, dynamic: bool = False) -> fx.GraphModule:
    """The ATen graph of `call`; node `n` has the origin `joint:n`."""
    mode = FakeTensorMode(shape_env=ShapeEnv() if dynamic else None)

    def fake(x: torch.Tensor) -> torch.Tensor:
        if not dynamic:
            return mode.from_tensor(x)
        sizes = [DimDynamic.DYNAMIC] + [DimDynamic.STATIC] * (x.dim() - 1)
        return mode.from_tensor(x, symbolic_context=StatelessSymbolicContext(sizes))

    fakes = [fake(x) for x in inputs]
    with mode, enable_python_dispatcher():
        graph = make_fx(lambda *x: call(*x))(*fakes)
    for node in graph.graph.nodes:
        node.meta["origins"] = frozenset({f"joint:{node.name}"})
    return graph


def names(graph: fx.GraphModule) -> list[str]:
    return [n.name for n in graph.graph.nodes if n.op == "call_function"]


def origins(graph: fx.GraphModule, name: str) -> set[str]:
    (node,) = (n for n in graph.graph.nodes if n.name == name)
    return set(node.meta["origins"])


def same_bits(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor):
        return bool(a == b)
    if a.dtype != b.dtype or a.shape != b.shape or a.stride() != b.stride():
        return False
    whole = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}[a.dtype.itemsize]
    return torch.equal(a.contiguous().view(whole), b.contiguous().view(whole))


def equal_on(before: fx.GraphModule, after: fx.GraphModule, *inputs: torch.Tensor) -> None:
    one, two = before(*inputs), after(*inputs)
    one, two = (x if isinstance(x, (tuple, list)) else [x] for x in (one, two))
    assert len(one) == len(two)
    assert all(same_bits(a, b) for a, b in zip(one, two))


AWKWARD = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5])

# pass, program, input, operators left
Case = tuple[Any, Callable[..., Any], torch.Tensor, list[str]]
CASES: dict[str, Case] = {
    "dead": (remove_dead_code, lambda x: (x.sin() + 1, x.cos())[1], AWKWARD, ["cos"]),
    "dead chain": (remove_dead_code, lambda x: (x.topk(2), x * 2)[1], AWKWARD, ["mul"]),
    "random stays": (remove_dead_code, lambda x: (torch.rand(3), x * 2)[1], AWKWARD, ["rand", "mul"]),
    "all read": (remove_dead_code, lambda x: x * 2, AWKWARD, ["mul"]),
    "equal": (merge_common_subexpressions, lambda x: x.sin() + x.sin(), AWKWARD, ["sin", "add"]),
    "equal chains": (merge_common_subexpressions, lambda x: (x * 2 + 1) * (x * 2 + 1), AWKWARD, ["mul", "add", "mul_2"]),
    "one and one point zero": (merge_common_subexpressions, lambda x: ((x.isnan() + 1) * 2, (x.isnan() + 1.0) * 2), AWKWARD,
                               ["isnan", "add", "mul", "add_1", "mul_1"]),
    "zero and minus zero": (merge_common_subexpressions, lambda x: (x + 0.0) * (x + -0.0), AWKWARD, ["add", "add_1", "mul"]),
    "random twice": (merge_common_subexpressions, lambda x: x + torch.rand(6) * torch.rand(6), AWKWARD, ["rand", "rand_1", "mul", "add"]),
    "two results": (merge_common_subexpressions, lambda x: (x.sin(), x.sin()), AWKWARD, ["sin", "sin_1"]),
    "views of two results": (merge_common_subexpressions, lambda x: (x.sin()[1:], x.sin()[1:]), AWKWARD, ["sin", "slice_1", "sin_1", "slice_2"]),
    "result and not": (merge_common_subexpressions, lambda x: (x.sin(), x.sin() + 1, x.sin() * 2), AWKWARD, ["sin", "add", "mul"]),
    "times one": (simplify_identities, lambda x: (x * 1 + 2, (x * 1.0) / 1 - 2), AWKWARD, ["add", "sub"]),
    "minus zero": (simplify_identities, lambda x: (x - 0) * 2, AWKWARD, ["mul"]),
    "plus zero": (simplify_identities, lambda x: (x + 0) * 2, AWKWARD, ["add", "mul"]),
    "minus minus zero": (simplify_identities, lambda x: (x - -0.0) * 2, AWKWARD, ["sub", "mul"]),
    "plus minus zero": (simplify_identities, lambda x: (x + -0.0) * 2, AWKWARD, ["mul"]),
    "integer plus zero": (simplify_identities, lambda x: (x + 0) * 2, torch.tensor([1, 2]), ["mul"]),
    "integer times one point zero": (simplify_identities, lambda x: (x * 1.0) * 2, torch.tensor([1, 2]), ["mul", "mul_1"]),
    "bool times one": (simplify_identities, lambda x: (x * 1) + 1, torch.tensor([True, False]), ["mul", "add"]),
    "power one": (simplify_identities, lambda x: x ** 1 + 1, AWKWARD, ["add"]),
    "neg twice": (simplify_identities, lambda x: (-(-x)) * 2, AWKWARD, ["neg", "mul"]),
    "copies": (simplify_identities, lambda x: x.clone().to(torch.float32).clone() + 1, AWKWARD, ["add"]),
    "copy that is returned": (simplify_identities, lambda x: (x.clone(), x.clone()[1:]), AWKWARD, ["clone", "clone_1", "slice_1"]),
    "copy into other strides": (simplify_identities, lambda x: x.t().contiguous() + 1, torch.randn(2, 3), ["t", "clone", "add"]),
    "round trip": (simplify_identities, lambda x: x.double().float() + 1, AWKWARD, ["_to_copy", "add"]),
    "narrow round trip": (simplify_identities, lambda x: x.bfloat16().float() + 1, AWKWARD, ["_to_copy", "_to_copy_1", "add"]),
    "transposed twice": (drop_noop_views, lambda x: x.t().t() + 1, torch.randn(2, 3), ["t", "add"]),
    "permuted around": (drop_noop_views, lambda x: x.permute(1, 2, 0).permute(2, 0, 1) + 1, torch.randn(2, 3, 4), ["permute", "add"]),
    "same size": (drop_noop_views, lambda x: x.view(2, 3).expand(2, 3)[:] + 1, torch.randn(2, 3), ["add"]),
    "view of view": (drop_noop_views, lambda x: x.view(6).view(3, 2) + 1, torch.randn(2, 3), ["view", "view_1", "add"]),
    "square transposed": (drop_noop_views, lambda x: x.t() + 1, torch.randn(3, 3), ["t", "add"]),
    "returned view": (drop_noop_views, lambda x: x.view(2, 3), torch.randn(2, 3), ["view"]),
    "uniform": (fold_constants, lambda x: x + torch.ones(6) * 3, AWKWARD, ["ones", "mul", "add"]),
    "uniform halves": (fold_constants, lambda x: x + torch.full((6,), 0.1, dtype=torch.bfloat16).exp(), AWKWARD, ["full", "exp", "add"]),
    "uniform promoted": (fold_constants, lambda x: x + torch.full((6,), 3) / torch.full((), 2.0, dtype=torch.float64), AWKWARD,
                         ["full", "full_1", "div", "add"]),
    "not uniform": (fold_constants, lambda x: x + torch.arange(6) * 2, AWKWARD, ["arange", "mul", "add"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pass(name: str) -> None:
    run, call, x, left = CASES[name]
    before = trace(call, x)
    text = before.print_readable(print_output=False)
    made = context()
    after = run(before, made)
    assert names(after) == left
    assert before.print_readable(print_output=False) == text, "the pass changed its argument"
    after.graph.lint()
    is_rewritten = bool(made.recorder.here.rewrites)
    assert (after is before) == (not is_rewritten)
    assert run(after, context()) is after, "a second run finds more"
    for value in (x, x.flip(0)):
        torch.manual_seed(0)
        one = before(value)
        torch.manual_seed(0)
        two = after(value)
        one, two = (r if isinstance(r, (tuple, list)) else [r] for r in (one, two))
        assert all(same_bits(a, b) for a, b in zip(one, two))


def test_fold_gives_what_eager_computes() -> None:
    before = trace(lambda x: x + torch.full((6,), 0.1, dtype=torch.bfloat16).exp(), AWKWARD)
    after = fold_constants(before, context())
    node = next(n for n in after.graph.nodes if n.name == "exp")
    assert node.target is aten.full.default
    assert node.args[1] == torch.tensor(0.1, dtype=torch.bfloat16).exp().item()
    assert node.kwargs["dtype"] is torch.bfloat16


def test_merged_node_has_the_origins_of_both() -> None:
    after = merge_common_subexpressions(trace(lambda x: x.sin() + x.sin(), AWKWARD), context())
    assert origins(after, "sin") == {"joint:sin", "joint:sin_1"}


def test_dropped_identity_gives_its_origins_and_readers_to_the_survivor() -> None:
    before = trace(lambda x: (x + 1) * 1 * 2, AWKWARD)
    nodes = {n.name: n for n in before.graph.nodes}
    nodes["mul"].meta["readers"] = frozenset({"backward:neg"})
    after = simplify_identities(before, context())
    assert origins(after, "add") == {"joint:add", "joint:mul"}
    survivor = next(n for n in after.graph.nodes if n.name == "add")
    assert survivor.meta["readers"] == {"backward:neg"}
    assert "readers" not in nodes["add"].meta


def test_skipped_node_leaves_its_origins() -> None:
    after = simplify_identities(trace(lambda x: -(-(x + 1)) * 2, AWKWARD), context())
    assert origins(after, "add") == {"joint:add", "joint:neg", "joint:neg_1"}


def test_shortened_view_keeps_the_origins_of_both() -> None:
    before = trace(lambda x: x.view(6).view(3, 2) + 1, torch.randn(2, 3))
    after = drop_noop_views(before, context())
    view = next(n for n in after.graph.nodes if n.name == "view_1")
    assert view.args[0].op == "placeholder"
    assert origins(after, "view_1") == {"joint:view_1", "joint:view"}


def test_rewrites_are_recorded_with_their_place() -> None:
    made = context()
    simplify_identities(trace(lambda x: x * 1 + 2, AWKWARD), made)
    (rewrite,) = made.recorder.here.rewrites
    assert rewrite.pass_name == "simplify_identities"
    assert rewrite.about == ("joint:mul",)
    assert "mul" in rewrite.before and rewrite.rule == "aten.mul.Tensor changes nothing"
    file, line = rewrite.where.rsplit(":", 1)
    assert file.endswith("simplify_identities.py") and int(line) > 1


def test_graph_metadata_survives() -> None:
    before = trace(lambda x: x * 1 + 2, AWKWARD)
    before.meta["mutated"] = ((0, 0),)
    assert simplify_identities(before, context()).meta["mutated"] == ((0, 0),)


def test_tidy_times_every_pass() -> None:
    made = context()
    graph = trace(lambda x: (x * 1).t().t().sin() + (x * 1).sin(), torch.randn(2, 3))
    tidied = tidy(graph, made)
    assert names(tidied) == ["sin", "add"]
    assert [t.phase for t in made.recorder.here.timings] == [run.__name__ for run in PASSES]
    assert tidy(tidied, context()) is tidied


def test_symbolic_sizes_add_no_guards() -> None:
    x = torch.randn(4, 3)
    before = trace(lambda x: (x * 1).view(-1, 3).t().t() + x.sin() + x.sin(), x, dynamic=True)
    env = next(
        n.meta["val"] for n in before.graph.nodes if n.op == "placeholder"
    ).fake_mode.shape_env
    guards = len(env.guards)
    after = tidy(before, context())
    assert len(env.guards) == guards
    for n in (4, 7):
        equal_on(before, after, torch.randn(n, 3))


# --------------------------------------------------------------------------------- random graphs

STEPS: tuple[Callable[..., Any], ...] = (
    lambda a, b: a + b, lambda a, b: a * 1, lambda a, b: a - 0, lambda a, b: a.t(), lambda a, b: -(-a),
    lambda a, b: a.clone(), lambda a, b: a.sin(), lambda a, b: a.view(4, 4) if a.is_contiguous() else a,
    lambda a, b: a.to(torch.float64).to(torch.float32), lambda a, b: a * torch.ones(4) * 2, lambda a, b: a.relu(),
    lambda a, b: torch.maximum(a, b), lambda a, b: a + 0, lambda a, b: a.reshape(16).view(4, 4), lambda a, b: a[1:2] + b,
)  # fmt: skip


def random_program(seed: int) -> Callable[..., Any]:
    def call(x: torch.Tensor, y: torch.Tensor) -> Any:
        choice = random.Random(seed)
        values = [x, y]
        for _ in range(12):
            step = choice.choice(STEPS)
            values.append(step(choice.choice(values), choice.choice(values)))
        return values[-1], choice.choice(values[2:]).sum(), choice.choice(values[2:]) * 2

    return call


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_keep_every_bit_and_lower(seed: int) -> None:
    torch.manual_seed(seed)
    inputs = [(torch.randn(4, 4), torch.randn(4, 4)) for _ in range(2)]
    before = trace(random_program(seed), *inputs[0])
    after = tidy(before, context())
    made = lower(after, "forward", Target.parse("cpu"), context())
    seen = set().union(*(n.meta["origins"] for n in after.graph.nodes))
    dead = {n.name for n in before.graph.nodes} - {
        n.name for n in remove_dead_code(before, context()).graph.nodes
    }
    assert seen >= {f"joint:{n.name}" for n in before.graph.nodes if n.name not in dead}
    for x, y in inputs:
        equal_on(before, after, x, y)
        for got, want in zip(made.run(x, y), before(x, y)):
            assert torch.allclose(got, want, rtol=1e-6, atol=1e-6)
