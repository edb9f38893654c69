"""Random operators in graphs: eager's numbers to the bit, and its generators left where eager leaves them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from agreement import STRICT, compiling, same_value
from torch import nn

import compiler_core as cc
from compiler_core.devtools.compare_stages import check_stages
from compiler_core.randomness import draws_numbers

T = torch.Tensor


def run(fn: Callable[..., Any], inputs: list[T]) -> list[Any]:
    """Three calls, reseeded before the second: results, gradients and the generator's state after each."""
    seen: list[Any] = []
    torch.manual_seed(7)
    for number in range(3):
        if number == 1:
            torch.manual_seed(101)
        given = [(x * (0.8 + number / 10)).detach().requires_grad_(x.requires_grad) for x in inputs]
        result = fn(*given)
        if result.requires_grad:
            (result * result).sum().backward()
        seen.append((result.detach(), *(x.grad for x in given), torch.get_rng_state()))
    return seen


def drawn_equally(fn: Callable[..., Any], *inputs: T, exact: bool = True, **counts: int) -> None:
    """Compiled and eager agree on every call. exact: to the bit, else within a few roundings."""
    eager = run(fn, list(inputs))
    with compiling(**{"graphs": 1, "breaks": 0, **counts}):
        ours = run(cc.compile(fn, options=STRICT), list(inputs))
    for number, (a, b) in enumerate(zip(ours, eager)):
        assert torch.equal(a[-1], b[-1]), f"call {number}: the generator"
        for mine, other in zip(a[:-1], b[:-1], strict=True):
            if exact:
                assert other is None or torch.equal(mine, other), f"call {number}"
                assert other is None or mine.stride() == other.stride()
            else:
                torch.testing.assert_close(mine, other)


def tensor(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = True) -> T:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(shape, generator=generator).to(dtype).requires_grad_(grad)


DRAWS: dict[str, Callable[[T], T]] = {
    "dropout": lambda x: F.dropout(x * 2, 0.3) * 2,
    "all_dropped": lambda x: F.dropout(x * 2, 1.0) + x,
    "in_place": lambda x: F.dropout(x * 2, 0.3, True, True) * 2,
    "transposed": lambda x: F.dropout((x * 2).t(), 0.3) * 2,
    "alpha": lambda x: F.alpha_dropout(x * 2, 0.3, True) * 2,
    "rrelu": lambda x: F.rrelu(x - 0.5, training=True) * 2,
    "rand": lambda x: torch.rand(12, 9) * x,
    "rand_like": lambda x: torch.rand_like(x) * x,
    "rand_of_another_type": lambda x: torch.rand_like(x, dtype=torch.float64) * x,
    "randn": lambda x: torch.randn(12, 9) * x + torch.randn_like(x),
    "randint": lambda x: torch.randint(0, 10, (12, 9)) * x,
    "randperm": lambda x: x[torch.randperm(12)] * 2,
    "bernoulli": lambda x: torch.bernoulli(x.detach()) * x,
    "bernoulli_of_a_number": lambda x: torch.bernoulli(x.detach(), 0.3) * x,
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.3) * x,
    "never_true": lambda x: torch.empty_like(x).bernoulli_(0.0) * x,
    "normal_": lambda x: torch.empty_like(x).normal_(1, 2) * x,
    "uniform_": lambda x: torch.empty_like(x).uniform_(1, 2) * x,
    "exponential_": lambda x: torch.empty_like(x).exponential_() * x,
    "geometric_": lambda x: torch.empty_like(x).geometric_(0.3) * x,
    "cauchy_": lambda x: torch.empty_like(x).cauchy_() * x,
    "log_normal_": lambda x: torch.empty_like(x).log_normal_() * x,
    "random_": lambda x: torch.empty_like(x).random_(0, 10) * x,
    "random_below": lambda x: torch.empty_like(x).random_(10) * x,
    "normal": lambda x: torch.normal(0.0, 1.0, (12, 9)) * x,
    "normal_of_tensors": lambda x: torch.normal(x.detach(), x.detach()) * x,
    "multinomial": lambda x: x[torch.arange(12), torch.multinomial(x.detach(), 1).squeeze(1)] * 2,
    "poisson": lambda x: torch.poisson(x.detach()) * x,
    "binomial": lambda x: torch.binomial(torch.full_like(x, 5.0), x.detach()) * x,
    "result_unused": lambda x: (torch.rand(3), F.dropout(x), x * 2)[2],
    "first_and_last_unused": lambda x: (torch.rand_like(x), F.dropout(x * 2), torch.randn(5))[1],
    "in_order": lambda x: torch.rand_like(x) * x - torch.rand_like(x),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_in_a_graph_is_eagers(name: str) -> None:
    drawn_equally(DRAWS[name], tensor(12, 9))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["dropout", "bernoulli_", "alpha", "rand_like"])
def test_a_draw_in_another_type(name: str, dtype: torch.dtype) -> None:
    drawn_equally(DRAWS[name], tensor(12, 9, dtype=dtype), exact=name != "alpha")


@pytest.mark.parametrize("fn", [F.dropout, F.dropout2d, F.feature_alpha_dropout])
def test_dropout_of_images(fn: Callable[..., T]) -> None:
    def f(x: T) -> T:
        return fn(x * 2, 0.3, True) * 2

    x = tensor(3, 8, 4, 5)
    drawn_equally(f, x)
    drawn_equally(f, x.detach().to(memory_format=torch.channels_last).requires_grad_())


def test_dropout_that_drops_nothing_gives_its_input() -> None:
    x = tensor(3)
    for given in ((0.5, False), (0.0, True)):
        compiled = cc.compile(lambda x, given=given: F.dropout(x, *given), options=STRICT)
        state = torch.get_rng_state()
        assert compiled(x) is x and compiled(x) is x
        assert torch.equal(torch.get_rng_state(), state)


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "attention": (lambda: _Attention(), (2, 5, 16)),
    "encoder": (lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.2, batch_first=True), (2, 5, 16)),
    "perceptron": (lambda: nn.Sequential(nn.Linear(9, 16), nn.GELU(), nn.Dropout(0.4)), (12, 9)),
}  # fmt: skip


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.MultiheadAttention(16, 2, dropout=0.3, batch_first=True)

    def forward(self, x: T) -> T:
        made: T = self.inside(x, x, x)[0]
        return made


@pytest.mark.parametrize("name", MODULES)
def test_modules_in_training(name: str) -> None:
    make, shape = MODULES[name]
    module = make()
    drawn_equally(lambda x: module(x), tensor(*shape), exact=False)
    module.eval()
    drawn_equally(lambda x: module(x), tensor(*shape), exact=False)


def test_attention_with_dropout() -> None:
    def f(q: T, k: T, v: T) -> T:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.2) * 2

    x = tensor(2, 4, 16, 8)
    drawn_equally(f, x, x, x, exact=False)


def test_a_recurrent_network_that_drops_between_layers_runs_natively() -> None:
    lstm = nn.LSTM(8, 8, 2, dropout=0.3)
    drawn_equally(lambda x: lstm(x * 2)[0] * 2, tensor(5, 3, 8), exact=False, breaks=2, graphs=3)


def reseeds(x: T) -> T:
    y = F.dropout(x)
    torch.manual_seed(3)
    return y + F.dropout(x)


def forks(x: T) -> T:
    y = F.dropout(x)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        z = F.dropout(x)
    return y + z + F.dropout(x)


def goes_back(x: T) -> T:
    state = torch.get_rng_state()
    y = F.dropout(x)
    torch.set_rng_state(state)
    return y + F.dropout(x)


def branches(x: T) -> T:
    y = F.dropout(x)
    if y.sum() > 0:
        y = F.dropout(y)
    return y * torch.rand_like(y)


@pytest.mark.parametrize("fn", [reseeds, forks, goes_back, branches])
def test_draws_on_both_sides_of_a_break(fn: Callable[[T], T]) -> None:
    x = tensor(12, 9)
    before = cc.stats()
    eager, ours = run(fn, [x]), run(cc.compile(fn, options=STRICT), [x])
    assert cc.stats().breaks > before.breaks and cc.stats().graphs >= before.graphs + 2
    assert cc.stats().fallbacks == before.fallbacks
    for a, b in zip(ours, eager):
        assert all(torch.equal(mine, other) for mine, other in zip(a, b, strict=True))


def test_a_generator_of_the_programs_own() -> None:
    generator = torch.Generator()

    def f(x: T) -> T:
        return torch.rand(12, 9, generator=generator) * x + F.dropout(x)

    def seeded(fn: Callable[[T], T]) -> list[Any]:
        generator.manual_seed(5)
        return [*run(fn, [x]), generator.get_state()]

    x = tensor(12, 9)
    eager = seeded(f)
    with compiling(breaks=1):
        ours = seeded(cc.compile(f, options=STRICT))
    assert torch.equal(ours.pop(), eager.pop())
    for a, b in zip(ours, eager):
        assert all(torch.equal(mine, other) for mine, other in zip(a, b, strict=True))


def test_an_argument_filled_with_random_numbers() -> None:
    def f(x: T) -> T:
        x.normal_()
        return x * 2

    compiled = cc.compile(f, options=STRICT)
    for seed in range(3):
        one, two = torch.zeros(40), torch.zeros(40)
        torch.manual_seed(seed)
        expected = f(one)
        torch.manual_seed(seed)
        assert torch.equal(compiled(two), expected) and torch.equal(two, one)


def test_a_column_filled_with_random_numbers_is_filled_natively() -> None:
    def f(x: T) -> T:
        y = x * 2
        y[:, 1].normal_()
        return y * 3

    drawn_equally(f, tensor(40, 4, grad=False), breaks=1, graphs=2)


def stages(fn: Callable[..., Any], *inputs: T, options: dict[str, Any] | None = None) -> Any:
    """The compilation of the one graph of `fn`, and what it decided."""
    with cc.record(explore=True) as recorder:
        cc.compile(fn, options={**STRICT, **(options or {})})(*inputs)
    (compilation,) = recorder.compilations.values()
    (frame,) = recorder.recording.frames
    return compilation, frame.versions[0].decisions


def draws_in(graph: torch.fx.GraphModule) -> list[str]:
    calls = [n for n in graph.graph.nodes if n.op == "call_function"]
    return [str(n.target) for n in calls if draws_numbers(n.target, n.args, n.kwargs)]


def test_a_mask_is_saved_as_truth_values_and_the_rest_is_generated() -> None:
    compilation, decisions = stages(lambda x: F.dropout(x.sin(), 0.3).cos(), tensor(40, 30))
    saved = {d.reason: d.data["bytes"] for d in decisions if d.kind == "save"}
    assert saved["random numbers are drawn once"] == 40 * 30
    calls = [d.outcome for d in decisions if d.kind == "library"]
    assert calls == ["aten.bernoulli.p"]
    assert not draws_in(compilation.partitioned.backward)


def test_nothing_recomputes_a_draw() -> None:
    def f(x: T) -> T:
        return (x * torch.rand_like(x)).sin() * torch.randn_like(x)

    compilation, _ = stages(f, tensor(12, 9))
    assert draws_in(compilation.partitioned.forward) == [
        "aten.rand_like.default",
        "aten.randn_like.default",
    ]
    assert not draws_in(compilation.partitioned.backward)


PROGRAMS = {name: DRAWS[name] for name in ("dropout", "alpha", "rand_like", "in_order", "normal_")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_runs_with_the_same_numbers(name: str) -> None:
    compilation, _ = stages(PROGRAMS[name], tensor(12, 9))
    state = torch.get_rng_state()
    checks = check_stages(compilation, [tensor(12, 9)], seed=5)
    assert [c for c in checks if not c.ok] == [] and len(checks) >= 6
    assert torch.equal(torch.get_rng_state(), state)


def test_gradients_of_gradients_see_the_same_mask() -> None:
    def f(x: T) -> T:
        return F.dropout(x**3, 0.5).sin() * torch.rand_like(x)

    def second(fn: Callable[[T], T], seed: int) -> tuple[T, ...]:
        torch.manual_seed(seed)
        x = tensor(12, 9)
        y = fn(x)
        torch.rand(5)  # the generator moves on before the backward pass
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad((g * g).sum(), x)
        return y.detach(), g.detach(), gg, torch.get_rng_state()

    compiled = cc.compile(f, options=STRICT)
    for seed in range(3):
        with compiling(graphs=int(seed == 0)) if seed == 0 else compiling(graphs=0):
            ours = second(compiled, seed)
        for mine, other in zip(ours, second(f, seed), strict=True):
            same_value(
                mine, other, other.double() if other.is_floating_point() else other, "second"
            )
