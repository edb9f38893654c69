"""Four programs of the kinds that people train, forward and backward: every call and every stage against eager.

Each is compiled twice: with its batch marked dynamic, for CPU and for a GPU target whose kernels are evaluated,
and every stage of that version is checked; then unmarked, on CPU, where the compiler notices the second
size by itself. Three batch sizes each. The library calls are named, so that one more or one less is seen.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import compiler_core as cc
from compiler_core.counters import Counters
from compiler_core.devtools.compare_stages import bounded_error, check_stages
from compiler_core.ir.loop import Call
from explorer.models import Transformer
from explorer.programs import PROGRAMS

LIBRARY = ("mm", "addmm", "bmm", "convolution", "convolution_backward")

# what else is a library call
OTHERS: dict[str, dict[str, int]] = {
    "transformer": {},
    "residual_network": {
        "max_pool2d_with_indices": 1,
        "max_pool2d_with_indices_backward": 1,
    },
    "recurrent": {},
    "unet": {},
}
ROWS = {program.name: program for program in PROGRAMS if program.name in OTHERS}


def model_of(name: str) -> torch.nn.Module:
    """The demonstration's model; the transformer with two blocks."""
    torch.manual_seed(0)
    model = Transformer(layers=2) if name == "transformer" else ROWS[name].make()
    assert isinstance(model, torch.nn.Module)
    return model


@dataclass
class Trio:
    """A program compiled, in eager and in float64, with the same parameters."""

    ours: torch.nn.Module
    eager: torch.nn.Module
    truth: torch.nn.Module

    @classmethod
    def of(cls, name: str, **options: Any) -> Trio:
        model = model_of(name)
        compiled = cc.compile(copy.deepcopy(model), options={"strict": True, **options})
        return cls(compiled, model, copy.deepcopy(model).double())

    def agree(self, inputs: Sequence[torch.Tensor], marks: bool) -> None:
        """One training step of each: loss, gradients and buffers within the bound."""
        given = [x.clone() for x in inputs]
        for x in given if marks else ():
            cc.mark_dynamic(x, 0)
        ours, eager = step(self.ours, given), step(self.eager, inputs)
        truth = step(self.truth, [x.double() if x.is_floating_point() else x for x in inputs])
        same_values(ours, eager, truth)


def step(model: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    model.zero_grad(set_to_none=True)
    loss = model(*inputs)
    loss.backward()
    gradients = {f"{name}.grad": p.grad for name, p in model.named_parameters()}
    return {"loss": loss.detach(), **gradients, **{n: b.clone() for n, b in model.named_buffers()}}


def same_values(ours: dict[str, Any], eager: dict[str, Any], truth: dict[str, Any]) -> None:
    assert list(ours) == list(eager)
    for name, value in ours.items():
        assert (value.dtype, value.shape) == (eager[name].dtype, eager[name].shape)
        error, tolerance = bounded_error(value, eager[name], truth[name])
        assert error <= tolerance, f"{name}: error {error:.3g} > {tolerance:.3g}"


def since(before: Counters) -> dict[str, int]:
    now = cc.stats()
    return {name: getattr(now, name) - getattr(before, name) for name in Counters.__slots__}


def library_calls(code: Any) -> Counter[str]:
    """How often each library operator is called in one step on CPU."""
    parts = code.targets["cpu"].values()
    items = (item for part in parts for item in part.lowered.program.body)
    return Counter(item.target.split(".")[1] for item in items if isinstance(item, Call))


@pytest.fixture(autouse=True)
def no_versions_of_earlier_tests() -> Iterator[None]:
    cc.reset()
    torch.manual_seed(0)
    yield


@pytest.mark.parametrize("name", ROWS)
def test_every_stage_of_a_training_step(name: str) -> None:
    before, calls = cc.stats(), ROWS[name].calls()
    assert len({len(inputs[0]) for inputs in calls}) == 3
    with cc.record(inputs=True) as recorder:
        trio = Trio.of(name, also=("cuda:90",))
        for inputs in calls:
            trio.agree(inputs, marks=True)
    made = since(before)
    assert (made["graphs"], made["fallbacks"], made["breaks"], made["recompiles"]) == (1, 0, 0, 0)
    ((version, code),) = recorder.compilations.items()

    others = library_calls(code)
    kinds = {op: others.pop(op) for op in LIBRARY if op in others}
    print(f"{name}: {made['ops_generated']} generated, library {kinds} {dict(others)}")
    assert others == OTHERS[name]
    assert made["ops_library"] == others.total() + sum(kinds.values())
    assert made["ops_generated"] >= 0.95 * (made["ops_generated"] + others.total())

    checks = check_stages(code, recorder.inputs[version])
    kernels = {(c.part, c.target) for c in checks if c.name == "kernels"}
    assert kernels == {(p, t) for p in ("forward", "backward") for t in ("cpu", "cuda:90")}
    assert not [c for c in checks if not c.ok]


@pytest.mark.parametrize("name", ROWS)
def test_other_batch_sizes_are_noticed(name: str) -> None:
    before, trio = cc.stats(), Trio.of(name)
    for inputs in ROWS[name].calls():
        trio.agree(inputs, marks=False)
    made = since(before)
    assert (made["graphs"], made["fallbacks"], made["breaks"], made["recompiles"]) == (2, 0, 0, 1)


def test_batch_norm_keeps_its_statistics_and_uses_them_in_eval_mode() -> None:
    trio, calls = Trio.of("residual_network"), ROWS["residual_network"].calls()
    for inputs in calls:
        trio.agree(inputs, marks=True)
    counts = [b for n, b in trio.ours.named_buffers() if n.endswith("num_batches_tracked")]
    assert [int(count) for count in counts] == [len(calls)] * len(counts) != []

    before = [b.clone() for b in trio.ours.buffers()]
    for model in (trio.ours, trio.eager, trio.truth):
        model.eval()
    for inputs in calls:
        x, label = inputs
        with torch.no_grad():
            ours, eager, truth = (
                trio.ours(x, label),
                trio.eager(x, label),
                trio.truth(x.double(), label),
            )
        same_values({"loss": ours}, {"loss": eager}, {"loss": truth})
    assert all(torch.equal(a, b) for a, b in zip(before, trio.ours.buffers()))

    for model in (trio.ours, trio.eager, trio.truth):
        model.train()
    trio.agree(calls[0], marks=True)
    assert {int(count) for count in counts} == {len(calls) + 1}


def test_tokens_out_of_range_raise_as_in_eager() -> None:
    trio, (tokens, following) = Trio.of("transformer"), ROWS["transformer"].calls()[0]
    trio.agree((tokens, following), marks=False)
    for wrong in ((tokens + 48, following), (tokens, following + 48)):
        for model in (trio.ours, trio.eager):
            with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
                model(*wrong)
    trio.agree((tokens.flip(0), following), marks=False)
