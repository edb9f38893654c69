"""What is borrowed from torch's private modules still is what we think it is."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from compiler_core.autodiff import borrowed
from compiler_core.autodiff.decompositions import FROM_TORCH, decompositions


def test_every_name_is_there() -> None:
    assert all(hasattr(borrowed, name) for name in borrowed.__all__)


def test_torch_still_has_every_decomposition() -> None:
    assert len(set(FROM_TORCH)) == len(FROM_TORCH)
    assert all(callable(decompositions()[op]) for op in FROM_TORCH)


def test_fused_attention_is_not_taken_apart() -> None:
    """Torch's table has an entry whose second output is not the logsumexp that backward reads."""
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    assert attention not in decompositions()


def test_autograd_numbers_the_nodes_of_a_thread_in_order() -> None:
    x = torch.ones(2, requires_grad=True)
    first = borrowed.sequence_number()
    y = x.sin()
    z = y.cos()
    assert first <= borrowed.node_sequence(y.grad_fn) < borrowed.node_sequence(z.grad_fn)
    assert borrowed.node_sequence(z.grad_fn) < borrowed.sequence_number()


def test_a_placeholder_can_be_added_in_the_middle_of_a_trace() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        extra, node = borrowed.add_placeholder("extra", y)
        assert node.op == "placeholder" and extra.stride() == y.stride()
        return y + extra

    with FakeTensorMode() as mode, borrowed.enable_python_dispatcher():
        x = torch.empty(2, 3)
        graph = borrowed.make_fx(fn)(x).graph
    assert mode is not None
    assert [n.name for n in graph.nodes if n.op == "placeholder"][1] == "extra"


def test_a_functional_tensor_stands_for_its_new_value_after_a_write() -> None:
    with FakeTensorMode():
        fake = torch.zeros(2)
    with borrowed.FunctionalTensorMode():
        x = borrowed.to_functional(fake)
        before = borrowed.unwrap(x)
        assert borrowed.unwrap(x) is before
        assert x.view(2).add_(1) is not x and x.add_(1) is x
        assert borrowed.unwrap(x) is not before
        assert not borrowed.unwrap(x).requires_grad


def test_importing_the_stage_does_not_load_the_peers() -> None:
    code = (
        "import sys, compiler_core.autodiff as _;"
        "print([m for m in ('torch._dynamo', 'torch._inductor') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
