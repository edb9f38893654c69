"""The captured graph run on functional tensors: in-place operators become values.

In: a captured graph and its fake inputs, inside a `make_fx` trace. Out: functional outputs, and for
each input whether it was written and how. The idea: autograd sees the in-place operators, as in
eager, and the tracer below sees none; after each write every alias is brought up to date at once,
so that the nodes of a write belong to the write and not to whoever reads next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from compiler_core.autodiff.borrowed import sequence_number, to_functional, unwrap
from compiler_core.autodiff.draws import dropout
from compiler_core.autodiff.float_arguments import PATCHED, formula_for, patched_call
from compiler_core.autodiff.interpolate import interpolate
from compiler_core.autodiff.ledger import Ledger, capture_handle
from compiler_core.autodiff.linear_algebra import CHECKED
from compiler_core.autodiff.refusals import METADATA_MUTATION, refuse
from compiler_core.autodiff.sizes import same_sizes
from compiler_core.autodiff.softshrink import softshrink

__all__ = ["SUBSTITUTES", "Forward", "Input", "functional_input"]

# Functions that torch takes apart above autograd, into other or less than what can be made of them.
SUBSTITUTES: dict[Any, Any] = {
    torch.nn.functional.interpolate: interpolate,
    torch.nn.functional.softshrink: softshrink,
    **CHECKED,
    torch.nn.functional.dropout: dropout,
    torch.dropout: dropout,
}


@dataclass(slots=True)
class Input:
    """One input of the trace.

    `leaf` is what gradients are asked for; `value` what the graph reads and writes, the same tensor
    unless the input is not a leaf (then one computed from it, which may be written as in eager).
    """

    leaf: Any
    value: Any
    before: Any  # the fake tensor that `value` stood for at the start
    grad_fn: Any

    @property
    def is_written(self) -> bool:
        return isinstance(self.value, torch.Tensor) and unwrap(self.value) is not self.before

    @property
    def has_new_history(self) -> bool:
        """Written with grad mode on: the new value has a gradient."""
        return bool(self.value.requires_grad and self.value.grad_fn is not self.grad_fn)

    def check_metadata(self, name: str) -> None:
        """Raises InternalError CC203 when shape or strides are no longer those of the start."""
        if not isinstance(self.value, torch.Tensor):
            return
        kept = same_sizes(self.value.shape, self.before.shape)
        if not (kept and same_sizes(self.value.stride(), self.before.stride())):
            raise refuse(METADATA_MUTATION, f"input {name}")


def functional_input(fake: Any, requires_grad: bool, is_leaf: bool) -> Input:
    """Wrap an input so that autograd treats it as it would treat the real one."""
    leaf = to_functional(fake)
    if not isinstance(fake, torch.Tensor):
        return Input(leaf, leaf, fake, None)
    leaf.requires_grad_(requires_grad)
    if is_leaf or not requires_grad:
        return Input(leaf, leaf, unwrap(leaf), None)
    with torch.enable_grad():
        value = _WithHistory.apply(leaf, to_functional(fake))  # type: ignore[no-untyped-call]
    return Input(leaf, value, unwrap(value), value.grad_fn)


class _WithHistory(torch.autograd.Function):
    """The second tensor, as if computed from the first: no leaf, and no view of one either.

    A clone would do but for its strides, which are not those of an input with gaps or expanded.
    """

    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(value)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


def _taken_apart(n: fx.Node) -> AbstractContextManager[None]:
    """An LSTM as its products and gates: oneDNN's one operator keeps what its gradient reads only
    in grad mode, and a compiled forward pass runs outside of it.
    """
    return torch.backends.mkldnn.flags(enabled=False) if _is_lstm(n) else nullcontext()


def _is_lstm(n: fx.Node) -> bool:
    return bool(getattr(n.target, "__name__", n.target) == "lstm")


def _shaped_as_captured(result: tuple[Any, ...], n: fx.Node) -> tuple[Any, ...]:
    """An LSTM's results. torch's decomposition gives the states one axis too many before 2.13."""
    return tuple(part.reshape(given.shape) for part, given in zip(result, n.meta["val"]))


def _resolves(n: fx.Node) -> bool:
    """Does eager copy here? The trace has no lazy bits left to resolve, and would give a view."""
    name = getattr(n.target, "__name__", n.target)
    if name not in ("resolve_conj", "resolve_neg"):
        return False
    (operand,) = n.all_input_nodes
    given = operand.meta["val"]
    return bool(given.is_conj() if name == "resolve_conj" else given.is_neg())


class Forward(fx.Interpreter):
    """Runs the captured graph node by node and settles in the ledger what each one made."""

    def __init__(self, module: fx.GraphModule, inputs: Sequence[Input], ledger: Ledger):
        super().__init__(module)
        self._inputs = inputs
        self._ledger = ledger

    def run_node(self, n: fx.Node) -> Any:
        if n.op in ("placeholder", "output"):
            return super().run_node(n)
        read = [t for t in self._operands(n) if isinstance(t, torch.Tensor)]
        versions = [t._version for t in read]
        first = sequence_number()
        with _taken_apart(n):
            result = super().run_node(n)
        if _resolves(n):
            result = result.clone()
        if _is_lstm(n):
            result = _shaped_as_captured(result, n)
        self._ledger.claim(first, sequence_number(), n)
        self._ledger.settle_forward(n)
        if [t._version for t in read] != versions:
            self._update_aliases(n)
        if isinstance(result, torch.SymInt):
            self._ledger.claim_size(result, n)
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if (formula := formula_for(target, args, kwargs)) is not None:
            return formula(*args, **kwargs)
        if target in PATCHED:
            return patched_call(target, target, args, kwargs)
        return super().call_function(SUBSTITUTES.get(target, target), args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        formula = formula_for(target, args, kwargs)
        return formula(*args, **kwargs) if formula else super().call_method(target, args, kwargs)

    def _operands(self, n: fx.Node) -> Iterator[Any]:
        for operand in n.all_input_nodes:
            yield from pytree.tree_leaves(self.env[operand])

    def _update_aliases(self, writer: fx.Node) -> None:
        """Apply a write to everything alive that may share the memory.

        The memory's own new value is the writer's; a view computed again is also its maker's.
        """
        alive = [(m, t) for m, v in self.env.items() for t in pytree.tree_leaves(v)]
        tensors = [(m, t) for m, t in alive if isinstance(t, torch.Tensor)]
        for tensor in [*(i.value for i in self._inputs), *(t for _, t in tensors)]:
            base = tensor._base if isinstance(tensor, torch.Tensor) else None
            unwrap(tensor if base is None else base)
        self._ledger.settle({capture_handle(writer)}, "forward")
        for maker, tensor in tensors:
            unwrap(tensor)
            self._ledger.settle_replay(writer, maker)
