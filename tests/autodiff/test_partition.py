"""What is saved, what is computed again, and the form of the two graphs."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

T = torch.Tensor


def draw(*shape: int, seed: int = 0, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def names(module: Any, op: str = "call_function") -> list[str]:
    return [n.name for n in module.graph.nodes if n.op == op]


def test_a_chain_of_pointwise_operators_saves_its_input_only(staged: Any) -> None:
    run = staged(lambda x: x.sin().cos().exp().tanh(), draw(8))
    assert [s.node for s in run.partitioned.saved] == ["x"]
    recomputed = [n.name for n in run.partitioned.backward.graph.nodes if n.meta.get("recomputed")]
    assert recomputed == ["sin", "cos", "exp", "tanh"]


def test_with_recompute_off_nothing_is_computed_twice(staged: Any) -> None:
    run = staged(lambda x: x.sin().cos().exp().tanh(), draw(8), recompute=False)
    assert [s.node for s in run.partitioned.saved] == ["x", "sin", "exp", "tanh"]
    twice = set(names(run.partitioned.forward)) & set(names(run.partitioned.backward))
    assert twice == set()


def test_a_matmul_is_saved_not_computed_again(staged: Any) -> None:
    run = staged(lambda x, w: (x @ w).sin().exp(), draw(8, 8), draw(8, 8), parameters=(1,))
    assert [s.node for s in run.partitioned.saved] == ["x", "w", "mm"]
    assert [s.reason for s in run.partitioned.saved] == [
        "an input, kept as it is",
        "a parameter, it lives anyway",
        "aten.mm.default is not computed twice",
    ]
    assert "mm" not in names(run.partitioned.backward)


def test_a_mask_is_smaller_than_what_it_is_made_of(staged: Any) -> None:
    run = staged(lambda x, w: torch.where((x @ w) > 0, x, w), draw(8, 8), draw(8, 8))
    assert [(s.node, s.bytes) for s in run.partitioned.saved] == [("gt", 64)]


def test_forms_of_the_graphs(staged: Any) -> None:
    run = staged(lambda x, w: (F.gelu(x @ w), x.sum()), draw(4, 8), draw(8, 8))
    parts = run.partitioned
    saved = [s.node for s in parts.saved]
    assert names(parts.forward, "placeholder") == ["x", "w"]
    assert names(parts.backward, "placeholder") == [*saved, "tangent_0", "tangent_1"]
    result = [n for n in parts.forward.graph.nodes if n.op == "output"][0].args[0]
    assert [n.name for n in result] == ["gelu", "sum_1", *saved]
    for module in (parts.forward, parts.backward):
        module.graph.lint()
        joint = {n.name for n in run.joint.graph.graph.nodes}
        for node in module.graph.nodes:
            origins = node.meta["origins"]
            assert {origin.removeprefix("joint:") for origin in origins} <= joint
            assert node.op == "output" or f"joint:{node.name}" in origins
            assert len(origins) == 1 or (
                module is parts.backward and node.meta["phase"] == "forward"
            )


def test_readers_of_saved_values(staged: Any) -> None:
    parts = staged(lambda x, w: (x @ w).sin().cos(), draw(4, 8), draw(8, 8)).partitioned
    makers = {n.name: n for n in parts.forward.graph.nodes}
    readers = {n.name: n for n in parts.backward.graph.nodes}
    for saved in parts.saved:
        expected = {f"backward:{user.name}" for user in readers[saved.node].users}
        assert makers[saved.node].meta["readers"] == expected != set()
    unsaved = set(makers) - {s.node for s in parts.saved}
    assert not any("readers" in makers[name].meta for name in unsaved)


def test_decisions_tell_what_was_saved_and_computed_again(staged: Any) -> None:
    run = staged(lambda x, w: (x @ w).sin().cos(), draw(4, 8), draw(8, 8))
    decisions = run.recorder.here.decisions
    saved = {d.about[0]: d.data["bytes"] for d in decisions if d.kind == "save"}
    assert saved == {f"joint:{s.node}": s.bytes for s in run.partitioned.saved}
    again = {d.about[0] for d in decisions if d.kind == "recompute"}
    assert again == {"joint:sin"}


def test_a_value_computed_again_comes_just_before_its_use(staged: Any) -> None:
    run = staged(lambda x, v, w: (x.sin() * v) @ w, draw(4, 4), draw(4, 4), draw(4, 4, grad=False))
    order = [n.name for n in run.partitioned.backward.graph.nodes]
    assert order.index("sin") > order.index("mm_1")


pieces = st.sampled_from(["sin", "exp", "matmul", "sum", "mul", "relu", "view", "softmax"])


def program(steps: list[tuple[str, int]]) -> Any:
    def fn(x: T, w: T) -> T:
        values = [x, w]
        for piece, pick in steps:
            a, b = values[pick % len(values)], values[-1]
            match piece:
                case "matmul":
                    values.append(a @ b)
                case "sum":
                    values.append(a.sum(0, keepdim=True).expand(3, 3))
                case "mul":
                    values.append(a * b)
                case "view":
                    values.append(a.reshape(9).reshape(3, 3))
                case "softmax":
                    values.append(a.softmax(-1))
                case _:
                    values.append(getattr(torch, piece)(a * 0.5))
        return values[-1] * values[-2]

    return fn


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(pieces, st.integers(0, 9)), min_size=1, max_size=7), st.booleans())
def test_any_program_has_the_gradients_of_eager(
    staged: Any, steps: list[tuple[str, int]], recompute: bool
) -> None:
    fn = program(steps)
    run = staged(fn, draw(3, 3), draw(3, 3, seed=1), recompute=recompute)
    for seed in (2, 3):
        x, w = draw(3, 3, seed=seed), draw(3, 3, seed=seed + 1)
        (result,), expected = run.call(x, w), fn(x, w)
        torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)
        found = torch.autograd.grad(result.sum(), [x, w], allow_unused=True)
        wanted = torch.autograd.grad(expected.sum(), [x, w], allow_unused=True)
        for one, other in zip(found, wanted):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(pieces, st.integers(0, 9)), min_size=1, max_size=5))
def test_no_other_choice_of_saved_values_is_cheaper(
    staged: Any, steps: list[tuple[str, int]]
) -> None:
    """Every subset of the values that may be saved, tried out."""
    from compiler_core.autodiff.costs import can_recompute, price
    from compiler_core.autodiff.mincut import UNLIMITED

    run = staged(program(steps), draw(3, 3), draw(3, 3, seed=1))
    joint = run.joint
    nodes = list(joint.graph.graph.nodes)
    result = nodes[-1].args[0]
    outputs = frozenset(result[: joint.outputs])
    late = set([n for n in nodes if n.op == "placeholder"][joint.primals :])
    for node in nodes[:-1]:
        if late & set(node.all_input_nodes):
            late.add(node)
    prices = {n: price(n, outputs) for n in nodes[:-1] if n not in late}
    choices = [n for n, cost in prices.items() if cost < UNLIMITED]

    def works(saved: set[Any]) -> bool:
        stack, seen = [g for g in result[joint.outputs :]], set()
        while stack:
            node = stack.pop()
            if node in seen or node in saved:
                continue
            seen.add(node)
            if node not in late and (
                node.op == "placeholder"
                or (node.meta["phase"] == "forward" and not can_recompute(node))
            ):
                return False
            stack += [a for a in node.all_input_nodes if a.op != "placeholder" or a not in late]
        return True

    best = min(
        sum(prices[n] for n in chosen)
        for size in range(min(len(choices), 4) + 1)
        for chosen in itertools.combinations(choices, size)
        if works(set(chosen))
    ) if len(run.partitioned.saved) <= 4 and len(choices) <= 14 else None  # fmt: skip
    if best is not None:
        names = {s.node for s in run.partitioned.saved}
        assert sum(cost for n, cost in prices.items() if n.name in names) == best
