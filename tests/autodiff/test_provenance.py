"""Origins of the joint graph: exactly the captured nodes behind each ATen node."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

T = torch.Tensor


def draw(*shape: int, seed: int = 0, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_(grad)


def call(function: Callable[..., Any], *args: Any) -> Any:
    proxy = args[0]
    if isinstance(proxy, torch.fx.Proxy):
        return proxy.tracer.create_proxy("call_function", function, args, {})
    return function(*args)


def origins(run: Any) -> dict[str, tuple[str, set[str]]]:
    return {
        n.name: (n.meta["phase"], {o.removeprefix("capture:") for o in n.meta["origins"]})
        for n in run.joint.graph.graph.nodes
    }


def test_a_composite_call_and_its_backward(staged: Any) -> None:
    run = staged(lambda x, w, b: F.linear(x, w, b).tanh(), draw(3, 4), draw(2, 4), draw(2))
    calls = [
        (n.target.overloadpacket.__name__, *found)
        for n, found in zip(run.joint.graph.graph.nodes, origins(run).values())
        if n.op == "call_function"
    ]
    assert calls == [
        ("t", "forward", {"linear"}),
        ("addmm", "forward", {"linear"}),
        ("tanh", "forward", {"tanh"}),
        ("tanh_backward", "backward", {"tanh"}),
        ("t", "backward", {"linear"}),
        ("mm", "backward", {"linear"}),
        ("t", "backward", {"linear"}),
        ("mm", "backward", {"linear"}),
        ("t", "backward", {"linear"}),
        ("sum", "backward", {"linear"}),
        ("view", "backward", {"linear"}),
        ("t", "backward", {"linear"}),
    ]
    assert origins(run)["tangent_0"] == ("backward", {"tanh"})
    assert origins(run)["w"] == ("forward", {"w"})


def test_a_sum_of_gradients_comes_from_both_sides(staged: Any) -> None:
    run = staged(lambda x: x.sin() + x.exp() + x.tanh(), draw(3))
    found = origins(run)
    sums = [found[n.name][1] for n in run.joint.graph.graph.nodes if n.name.startswith("add")]
    # the two sums of the program, then the two of the engine, which starts from the last
    assert sums == [{"add"}, {"add_1"}, {"tanh", "exp"}, {"tanh", "exp", "sin"}]


def test_a_write_and_the_views_computed_again(staged: Any) -> None:
    def fn(x: T) -> tuple[T, T]:
        y = x * 2
        v = y.view(-1)
        y.add_(1)
        return v.sin(), y.cos()

    run = staged(fn, draw(2, 3, grad=False))
    assert origins(run) == {
        "x": ("forward", {"x"}),
        "mul": ("forward", {"mul"}),
        "add": ("forward", {"add_"}),
        "view_1": ("forward", {"add_", "view"}),
        "sin": ("forward", {"sin"}),
        "cos": ("forward", {"cos"}),
        "output": ("forward", {"output"}),
    }


def test_a_view_of_a_view_is_computed_again_by_both_makers(staged: Any) -> None:
    def fn(x: T) -> T:
        y = x * 2
        v = y.view(-1)
        w = call(operator.getitem, v, 1)
        y.add_(1)
        return w.sin()

    found = origins(staged(fn, draw(2, 3, grad=False)))
    again = [value for name, value in found.items() if name.startswith(("view", "select"))]
    assert again == [("forward", {"add_", "view"}), ("forward", {"add_", "getitem"})]


def test_backward_of_a_write_through_a_view(staged: Any) -> None:
    def fn(x: T, v: T) -> T:
        y = x.sinh()
        call(operator.setitem, y, 0, v)
        return y.sin()

    found = origins(staged(fn, draw(2, 3), draw(3)))
    for name, (phase, made_by) in found.items():
        if phase == "backward" and name.startswith(("select", "copy", "clone", "zeros", "full")):
            assert made_by == {"setitem"}, name
    assert ("backward", {"sinh"}) in found.values() and ("backward", {"sin"}) in found.values()


def test_decomposed_operators_keep_the_call(staged: Any) -> None:
    run = staged(lambda x, t: F.cross_entropy(x.sin(), t), draw(3, 4), torch.tensor([0, 3, 1]))
    found = origins(run)
    inner = {frozenset(v) for _, v in found.values()} - {frozenset({"output"})}
    assert inner == {frozenset(s) for s in ({"x"}, {"t"}, {"sin"}, {"cross_entropy"})}


def test_hidden_bases_come_from_the_views_built_on_them(staged: Any) -> None:
    def fn(x: T, w: T) -> tuple[T, T]:
        parts = torch.chunk(x @ w, 2, -1)
        return parts[0], parts[1]

    run = staged(fn, draw(2, 4), draw(4, 6))
    assert run.joint.hidden == 1
    assert origins(run)["tangent_2"] == ("backward", {"getitem", "getitem_1"})


def test_recomputed_nodes_name_themselves_and_what_needs_them(staged: Any) -> None:
    parts = staged(lambda x: x.sin().cos(), draw(3)).partitioned
    forward, backward = (
        {n.name: n.meta["origins"] for n in module.graph.nodes}
        for module in (parts.forward, parts.backward)
    )
    assert forward["sin"] == {"joint:sin"}
    assert backward["sin"] == {"joint:sin", "joint:sin_1"}  # sin(sin(x)) is the gradient of cos
    assert backward["sin_1"] == {"joint:sin_1"}


def test_values_made_again_name_what_keeps_their_operands(staged: Any) -> None:
    """`x * w` is made again for the product because x is kept for the gradient of w anyway."""
    run = staged(lambda x, w, v: (x.exp() * w) @ v, draw(4, 8), draw(8), draw(8, 8))
    backward = {n.name: n.meta["origins"] for n in run.partitioned.backward.graph.nodes}
    made_again = backward["mul"]
    reads_exp = {u.name for u in run.joint.graph.graph.nodes if u.meta["phase"] == "backward"}
    assert "joint:mul" in made_again and len(made_again) >= 3
    assert {origin.removeprefix("joint:") for origin in made_again} - {"mul"} <= reads_exp
