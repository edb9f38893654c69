"""What `lower` promises about whole programs: text, names, origins, edges, library calls."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx

from compiler_core.errors import InternalError
from compiler_core.ir.loop import Call, Load, Nest, Reduce, Store, View
from compiler_core.ir.parse import parse_program
from compiler_core.ir.text import print_program
from compiler_core.ir.verify import verify_program
from compiler_core.lower import lower
from compiler_core.options import Target

aten = torch.ops.aten


def statements(made: Any) -> list[Any]:
    found: list[Any] = []
    todo = [s for item in made.program.body if isinstance(item, Nest) for s in item.body]
    while todo:
        statement = todo.pop(0)
        found.append(statement)
        todo = list(getattr(statement, "body", ())) + todo
    return found


def store_to(made: Any, buffer: str) -> Store:
    (store,) = (s for s in statements(made) if isinstance(s, Store) and s.buffer == buffer)
    return store


def block(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
    h = F.layer_norm(x, [8])
    q = (h @ w).view(2, 4, 2, 4).transpose(1, 2)
    scores = (q @ q.transpose(-1, -2) / 2.0).masked_fill(b > 0, float("-inf"))
    mixed = (scores.softmax(-1) @ q).transpose(1, 2).reshape(2, 4, 8)
    return F.gelu(x + mixed).mean(-1), scores.amax(-1)


def test_text_of_a_small_program(kit: Any) -> None:
    made = kit.check(lambda x: (x.t() * 2).sum(0), torch.randn(3, 4), again=[[torch.randn(3, 4)]])
    assert made.text().splitlines() == [
        "program forward(arg0_1):",
        "  in   arg0_1: f32[3, 4] stride [4, 1]",
        "  temp buf_mul: f32[4, 3] stride [1, 4]",
        "  out  buf_sum_1: f32[3] stride [1]",
        "",
        "  nest mul for mul_i0 < 4, mul_i1 < 3:",
        "    mul_x: f32   = load arg0_1[mul_i0 + 4*mul_i1]",
        "    mul_c: f32   = const 2.0",
        "    mul_mul: f32 = mul mul_x mul_c",
        "    store buf_mul[mul_i0 + 4*mul_i1] = mul_mul",
        "",
        "  nest sum_1 for sum_1_i0 < 3:",
        "    sum_1_sum: f32 = sum over sum_1_r0 < 4:",
        "      sum_1_x: f32 = load buf_mul[4*sum_1_i0 + sum_1_r0]",
        "      yield sum_1_x",
        "    store buf_sum_1[sum_1_i0] = sum_1_sum",
        "",
        "  return buf_sum_1",
    ]


def test_attention_block(kit: Any) -> None:
    inputs = [(torch.randn(2, 4, 8), torch.randn(8, 8), torch.randn(4, 4)) for _ in range(2)]
    made = kit.check(block, *inputs[0], again=inputs[1:])
    assert set(kit.calls(made)) == {"aten.mm.default", "aten.bmm.default"}


def test_attention_block_in_bfloat16(kit: Any) -> None:
    inputs = [
        tuple(x.bfloat16() for x in (torch.randn(2, 4, 8), torch.randn(8, 8), torch.randn(4, 4)))
        for _ in range(2)
    ]
    kit.check(block, *inputs[0], again=inputs[1:])


def test_names_are_given_once_and_runs_agree(kit: Any) -> None:
    graph = kit.trace(block, torch.randn(2, 4, 8), torch.randn(8, 8), torch.randn(4, 4))
    made, other = kit.lowered(graph), kit.lowered(graph)
    assert made.text() == other.text()
    names = [s.name for s in statements(made) if not isinstance(s, Store)]
    names += [item.name for item in made.program.body]
    names += [a.name for item in made.program.body if isinstance(item, Nest) for a in item.axes]
    names += [a.name for s in statements(made) if isinstance(s, Reduce) for a in s.axes]
    assert not [name for name, times in Counter(names).items() if times > 1]
    assert not set(names) & set(made.program.buffers)


def test_text_parses_back(kit: Any) -> None:
    graph = kit.trace(block, torch.randn(2, 4, 8), torch.randn(8, 8), torch.randn(4, 4))
    made = kit.lowered(graph)
    assert print_program(parse_program(made.text())) == made.text()


# ------------------------------------------------------------------------------------- origins


def test_store_names_its_readers_through_views(kit: Any) -> None:
    graph = kit.trace(lambda x: ((x + 1).t() * 2, x.sin()), torch.randn(3, 4))
    made = kit.lowered(graph)
    assert store_to(made, "buf_add").origins == {"forward:add", "forward:t", "forward:mul"}
    assert store_to(made, "buf_mul").origins == {"forward:mul"}
    assert store_to(made, "buf_sin").origins == {"forward:sin"}
    (load,) = (s for s in statements(made) if isinstance(s, Load) and s.buffer == "buf_add")
    assert load.origins == {"forward:mul", "forward:t"}


def test_saved_output_names_the_readers_of_the_other_part(kit: Any) -> None:
    graph = kit.trace(lambda x: (x.exp(), x.sin()), torch.randn(3))
    next(n for n in graph.graph.nodes if n.name == "exp").meta["readers"] = frozenset(
        {"backward:mul"}
    )
    made = kit.lowered(graph)
    assert store_to(made, "buf_exp").origins == {"forward:exp", "backward:mul"}
    assert store_to(made, "buf_sin").origins == {"forward:sin"}


def test_backward_handles(kit: Any) -> None:
    made = kit.lowered(kit.trace(lambda x: x * 2 + 1, torch.randn(3)), part="backward")
    assert made.part == made.program.name == "backward"
    assert store_to(made, "buf_mul").origins == {"backward:mul", "backward:add"}


def test_element_of_several_results_is_an_origin(kit: Any) -> None:
    made = kit.lowered(kit.trace(lambda x: x.max(0)[1] + 1, torch.randn(3, 4)))
    assert kit.nests(made) == ["max_1_1", "add"]
    assert store_to(made, "buf_max_1_1").origins == {
        "forward:max_1",
        "forward:getitem_1",
        "forward:add",
    }


def test_sizes_are_origins_of_the_nest_that_uses_them(kit: Any) -> None:
    graph = kit.trace(lambda x: x / x.shape[0], torch.randn(3, 4), dynamic=True)
    made = kit.lowered(graph)
    (nest,) = made.program.body
    assert nest.origins == {"forward:div", "forward:sym_size_int"}


# --------------------------------------------------------------------------------------- edges


def mutating(kit: Any, call: Any, pairs: tuple[tuple[int, int], ...], *inputs: torch.Tensor) -> Any:
    """Lower a graph whose outputs `pairs` (input, output) are new values of its inputs."""
    graph = kit.trace(call, *inputs)
    graph.meta["mutated"] = pairs
    made = kit.lowered(graph)
    verify_program(made.program, "lower")
    for _ in range(2):
        fresh = [torch.randn_like(x) for x in inputs]
        expected = call(*(x.clone() for x in fresh))
        results = made.run(*fresh)
        for got, want in zip(results, expected):
            assert torch.equal(got, want), "a result changed with the argument"
        for i, k in pairs:
            assert torch.equal(fresh[i], expected[k])
    return made


def test_mutated_argument_takes_the_new_value(kit: Any) -> None:
    made = mutating(kit, lambda x: (x * 2, x + 1), ((0, 1),), torch.randn(3, 4))
    assert made.program.mutated == (("arg0_1", "buf_add"),)


def test_old_value_of_a_mutated_argument_is_copied_when_returned(kit: Any) -> None:
    made = mutating(kit, lambda x: (x, x[1:].t(), x + 1), ((0, 2),), torch.randn(3, 4))
    assert made.program.buffers[made.program.outputs[0]].role == "out"


def test_copies_of_arguments_keep_their_strides(kit: Any) -> None:
    def call(x: torch.Tensor) -> Any:
        return x[:, ::2], x[:1].expand(3, 4), x * 2

    made = mutating(kit, call, ((0, 2),), torch.randn(3, 4))
    results = made.run(torch.randn(3, 4))
    assert [r.stride() for r in results] == [(4, 2), (0, 1), (4, 1)]


def test_arguments_that_swap(kit: Any) -> None:
    mutating(kit, lambda x, y: (y, x), ((0, 0), (1, 1)), torch.randn(3), torch.randn(3))


def test_new_value_that_is_a_view_is_copied(kit: Any) -> None:
    made = mutating(kit, lambda x: ((x + 1).t(), x.amax()), ((0, 0),), torch.randn(3, 3))
    assert made.program.buffers[made.program.mutated[0][1]].shape == (3, 3)


def test_outputs_of_every_kind(kit: Any) -> None:
    graph = kit.trace(lambda x: (x, x.t(), (x + 1)[0], None, 3), torch.randn(2, 3))
    made = kit.lowered(graph)
    same, view, row, nothing, number = made.program.outputs
    assert same == "arg0_1"
    assert isinstance(view, View) and view.buffer == "arg0_1" and view.shape == (3, 2)
    assert isinstance(row, View) and made.program.buffers[row.buffer].role == "out"
    assert (nothing, number) == (None, 3)
    x = torch.randn(2, 3)
    results = made.run(x)
    assert torch.equal(results[1], x.t()) and torch.equal(results[2], (x + 1)[0])


def with_constant(tensor: torch.Tensor) -> fx.GraphModule:
    graph = fx.Graph()
    root = torch.nn.Module()
    root.register_buffer("table", tensor)
    node = graph.get_attr("table")
    copied = graph.call_function(aten.mul.Tensor, (node, 2))
    copied.meta["val"] = torch.empty_like(tensor * 2)
    graph.output((copied,))
    return fx.GraphModule(root, graph)


@pytest.mark.parametrize(
    "tensor",
    [torch.tensor(2.5), torch.tensor([3, 1, 2]), torch.randn(2, 3), torch.zeros(0, 2)],
    ids=lambda t: f"{t.dtype} {tuple(t.shape)}",
)
def test_small_tensor_constants_become_numbers(kit: Any, tensor: torch.Tensor) -> None:
    made = kit.lowered(with_constant(tensor))
    for _ in range(2):
        (got,) = made.run()
        assert torch.equal(got, tensor * 2)


def test_large_tensor_constant_is_refused(kit: Any) -> None:
    with pytest.raises(InternalError) as caught:
        kit.lowered(with_constant(torch.randn(100)))
    assert str(caught.value).splitlines()[0] == (
        "[CC303] a tensor constant is too large to write into a program: table: torch.float32 [100]"
    )


def test_float_argument_is_read_from_memory(kit: Any) -> None:
    graph = kit.trace(lambda x, y: x * y, torch.randn(3), torch.randn(()))
    place = [n for n in graph.graph.nodes if n.op == "placeholder"][1]
    place.meta["val"] = 0.5
    made = kit.lowered(graph)
    assert made.program.buffers[place.name].role == "const"
    x = torch.randn(3)
    for number in (0.5, 0.1, float("inf")):
        assert torch.equal(made.run(x, number)[0], x * number)


def test_number_of_another_kind_is_refused(kit: Any) -> None:
    graph = kit.trace(lambda x: x * 2, torch.randn(3))
    next(iter(graph.graph.nodes)).meta["val"] = 0.5j
    with pytest.raises(InternalError, match="CC304"):
        kit.lowered(graph)


def test_graph_traced_on_cpu_lies_on_the_target(kit: Any) -> None:
    graph = kit.trace(lambda x: x @ x + torch.rand(3, 3), torch.randn(3, 3))
    made = kit.lowered(graph, target="cuda:90")
    assert {b.device for b in made.program.buffers.values()} == {"cuda"}
    (rand,) = (c for c in made.program.body if isinstance(c, Call) and "rand" in c.target)
    assert dict(rand.kwargs)["device"] == torch.device("cuda")
    assert {b.device for b in kit.lowered(graph).program.buffers.values()} == {"cpu"}


# ------------------------------------------------------------------------------- library calls


def decided(kit: Any, graph: fx.GraphModule) -> tuple[Any, list[Any]]:
    context = kit.context()
    made = lower(graph, "forward", Target.parse("cpu"), context)
    return made, context.recorder.here.decisions


def test_library_call_records_why(kit: Any) -> None:
    graph = kit.trace(
        lambda x, i: x.cumsum(0).index_copy(0, i, x[:2]).mm(x.t()),
        torch.randn(3, 3),
        torch.tensor([2, 0]),
    )
    made, decisions = decided(kit, graph)
    assert [(d.kind, d.about, d.outcome) for d in decisions] == [
        ("library", ("forward:cumsum",), "aten.cumsum.default"),
        ("library", ("forward:index_copy",), "aten.index_copy.default"),
        ("library", ("forward:mm",), "aten.mm.default"),
    ]
    reasons = [d.reason for d in decisions]
    assert (
        "scan" in reasons[0]
        and "the last one wins" in reasons[1]
        and "matrix product" in reasons[2]
    )
    assert [c.reason for c in made.program.body if isinstance(c, Call)] == reasons
    mm = made.program.body[-1]
    assert mm.origins == {"forward:mm", "forward:t"} and mm.args[1].strides == (1, 3)


def test_unknown_operator_is_a_library_call(kit: Any) -> None:
    kit.check(lambda x: torch.special.bessel_j0(x) + 1, torch.randn(4), again=[[torch.randn(4)]])


def test_several_results_and_those_that_nobody_reads(kit: Any) -> None:
    made = kit.check(lambda x: x.topk(2)[1] + 1, torch.randn(3, 5), again=[[torch.randn(3, 5)]])
    (call,) = (c for c in made.program.body if isinstance(c, Call))
    assert call.outputs == (None, "buf_topk_1")


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_values_pass_through_library_calls(kit: Any, dtype: torch.dtype) -> None:
    def call(x: torch.Tensor) -> Any:
        z = torch.complex(x, x * 2).to(dtype)
        return torch.view_as_real((z * z).sum(0)).clone(), z.abs()

    made, decisions = decided(kit, kit.trace(call, torch.randn(3, 4)))
    assert "no kernel computes in" in " ".join(d.reason for d in decisions)
    for _ in range(2):
        x = torch.randn(3, 4)
        for got, want in zip(made.run(x), call(x)):
            assert torch.allclose(got, want)


def test_reinterpreting_views_are_copies(kit: Any) -> None:
    made = kit.check(lambda x: x.view(torch.int32) + 1, torch.randn(4), again=[[torch.randn(4)]])
    assert kit.calls(made) == ["aten.view_copy.dtype"]


def test_positions_of_one_dimension_keep_the_bounds_error(kit: Any) -> None:
    made = kit.check(
        F.embedding,
        torch.tensor([1, 3]),
        torch.randn(5, 2),
        again=[[torch.tensor([0, 4]), torch.randn(5, 2)]],
    )
    with pytest.raises(IndexError):
        made.run(torch.tensor([1, 7]), torch.randn(5, 2))


def test_integer_division_keeps_the_zero_error(kit: Any) -> None:
    inputs = torch.tensor([7, -7, 5]), torch.tensor([2, 2, -3])
    made = kit.check(lambda a, b: (a // b, a % b, a // 2), *inputs)
    assert kit.nests(made) == ["floor_divide_1"]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        made.run(inputs[0], torch.tensor([1, 0, 1]))


def test_number_that_does_not_fit_goes_to_the_library(kit: Any) -> None:
    made = kit.check(lambda x: x + 300, torch.tensor([250, 3], dtype=torch.uint8))
    assert kit.calls(made) == ["aten.add.Tensor"]


def test_writing_operator_is_refused(kit: Any) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(aten.add_.Tensor, (x, 1))
    x.meta["val"] = y.meta["val"] = torch.empty(3)
    graph.output((y,))
    with pytest.raises(InternalError) as caught:
        kit.lowered(fx.GraphModule(torch.nn.Module(), graph))
    assert "[CC302] an operator cannot be lowered: aten.add_.Tensor (add__tensor)" in str(
        caught.value
    )


def test_random_calls_keep_their_order(kit: Any) -> None:
    def call(x: torch.Tensor) -> Any:
        return x + torch.rand(3), torch.randn(3) * 2, F.dropout(x, 0.5)

    made = kit.lowered(kit.trace(call, torch.ones(3)))
    for seed in (0, 1):
        torch.manual_seed(seed)
        expected = call(torch.ones(3))
        torch.manual_seed(seed)
        for got, want in zip(made.run(torch.ones(3)), expected):
            assert torch.equal(got, want)


# ---------------------------------------------------------------------------------- half types


def test_operators_round_at_their_end_and_composites_once(kit: Any) -> None:
    x = torch.randn(64).bfloat16()
    made = kit.check(lambda x: F.gelu(x) * x, x, again=[[x.flip(0)]])
    types = {s.name: s.dtype.name for s in statements(made) if hasattr(s, "dtype")}
    assert types["gelu_erf"] == "f32" and types["mul_mul"] == "bf16"


def test_number_that_a_half_type_cannot_hold_widens(kit: Any) -> None:
    x = torch.randn(64).bfloat16()
    made = kit.check(lambda x: (x * 0.1, x * 0.5), x, again=[[x.flip(0)]])
    types = {s.name: s.dtype.name for s in statements(made) if hasattr(s, "dtype")}
    assert types["mul_mul"] == "f32" and types["mul_1_mul"] == "bf16"
    got = made.run(x)
    assert torch.equal(got[0], x * 0.1) and torch.equal(got[1], x * 0.5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "number", [0.1, 3, 257, 2049, 1e-7, 1e5, -0.0, math.inf, math.nan, True, 2**-20]
)
def test_which_numbers_widen(kit: Any, dtype: torch.dtype, number: float) -> None:
    """Arithmetic stays in the half type exactly when the type has the number (or it is subnormal)."""
    made = kit.lowered(kit.trace(lambda x: x * number, torch.randn(4).to(dtype)))
    types = {s.name: s.dtype.name for s in statements(made) if hasattr(s, "dtype")}
    held = torch.tensor(number, dtype=torch.float64).to(dtype).double().item()
    is_held = held == number or math.isnan(number)
    is_normal = (
        abs(number) >= torch.finfo(dtype).smallest_normal or number == 0 or math.isnan(number)
    )
    assert (types["mul_mul"] == "f32") == (not (is_held and is_normal))


def test_sums_of_half_types_run_in_f32(kit: Any) -> None:
    x = torch.full((4096,), 1.0).bfloat16()
    made = kit.check(lambda x: (x.sum(), x.mean()), x)
    assert made.run(x)[0].item() == 4096


def test_integer_sums_run_in_i64_and_u8_wraps(kit: Any) -> None:
    x = torch.full((3, 300), 200, dtype=torch.uint8)
    made = kit.check(lambda x: (x.sum(), x + x, x.sum(1, dtype=torch.uint8)), x)
    assert made.run(x)[0].item() == 3 * 300 * 200
