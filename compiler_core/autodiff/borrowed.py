"""Everything that this stage borrows from torch's private modules, in one place.

In: nothing. Out: the names, each with what it is used for. `tests/autodiff/test_borrowed.py` fails
loudly when a torch version moves or changes one. Importing this module is cheap; *constructing* a
FakeTensorMode is what loads the slow parts of torch (about 1.5 s, once a process).

    FakeTensor                      tensors with shapes and no data
    FunctionalTensor(Mode)          removes in-place operators below autograd, above the tracer
    make_fx, get_proxy_mode         records ATen operators as an FX graph
    enable_python_dispatcher        Python decompositions and symbolic shapes inside the dispatcher
    sequence_number                 number that the next autograd node of this thread will get
    decomposition_table             torch's decompositions (we take an allow-list out of it)
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import (
    disable_proxy_modes_tracing,
    get_proxy_mode,
    make_fx,
    track_tensor_tree,
)

from compiler_core.ir.index import from_sympy

__all__ = [
    "FakeTensor", "FunctionalTensor", "FunctionalTensorMode", "add_placeholder",
    "autocast_off", "autocast_state", "decomposition_table", "enable_python_dispatcher", "is_wrapped", "make_fx",
    "newest_node", "node_sequence", "sequence_number", "symbol_text", "to_functional", "tracer_graph", "unwrap",
]  # fmt: skip


def to_functional(fake: Any) -> Any:
    """A functional tensor around a fake one; numbers and symbolic sizes as they are."""
    return FunctionalTensor.to_functional(fake) if isinstance(fake, torch.Tensor) else fake


def unwrap(value: Any) -> Any:
    """The fake tensor that a functional one now stands for, pending writes applied."""
    if not isinstance(value, FunctionalTensor):
        return value
    torch._sync(value)  # type: ignore[attr-defined, no-untyped-call]
    return torch._from_functional_tensor(value.elem)


def tracer_graph() -> torch.fx.Graph:
    """The graph that the running `make_fx` writes."""
    mode = get_proxy_mode()
    assert mode is not None, "called outside make_fx"
    graph: torch.fx.Graph = mode.tracer.graph
    return graph


def newest_node() -> torch.fx.Node | None:
    """The last node that the running `make_fx` wrote; None outside of one."""
    mode = get_proxy_mode()
    return None if mode is None else next(iter(reversed(mode.tracer.graph.nodes)))


def add_placeholder(name: str, model: torch.Tensor) -> tuple[torch.Tensor, torch.fx.Node]:
    """A new input in the middle of a trace, laid out as `torch.empty_like(model)`, known to the tracer.

    One pass suffices then: the tangents' shapes are known only after the forward part is traced.
    """
    mode = get_proxy_mode()
    assert mode is not None, "called outside make_fx"
    with disable_proxy_modes_tracing():
        value = torch.empty_like(model)
        proxy = mode.tracer.create_proxy("placeholder", name, (), {})
        track_tensor_tree(value, proxy, constant=None, tracer=mode.tracer)
    return value, proxy.node


def sequence_number() -> int:
    number: int = torch._C._autograd._get_sequence_nr()
    return number


def node_sequence(grad_fn: Any) -> int:
    number: int = grad_fn._sequence_nr()
    return number


def autocast_off() -> AbstractContextManager[None]:
    """Autograd runs with autocast off, as it does when the user calls `backward()` outside it."""
    guard: AbstractContextManager[None] = torch._C._DisableAutocast()
    return guard


def is_wrapped(value: Any) -> bool:
    """A tensor of a transform (a batch of `vmap`, say), which has no memory of its own."""
    if not isinstance(value, torch.Tensor):
        return False
    of_functorch = torch._C._functorch.is_functorch_wrapped_tensor(value)
    return bool(of_functorch or torch._C._functorch.is_legacy_batchedtensor(value))


def autocast_state() -> tuple[tuple[str, torch.dtype], ...]:
    """Devices with autocast on, each with the dtype it casts to."""
    if not torch._C._is_any_autocast_enabled():
        return ()
    devices = [d for d in ("cpu", "cuda") if torch.is_autocast_enabled(d)]
    return tuple((d, torch.get_autocast_dtype(d)) for d in devices)


def symbol_text(size: Any) -> int | str:
    """An integer as it is, a symbolic size as a Python expression over its symbols."""
    if isinstance(size, int):
        return size
    index = from_sympy(size.node.expr)
    return str(index) if index.constant is None else index.constant
