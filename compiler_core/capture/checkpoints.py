"""`torch.utils.checkpoint.checkpoint`: the function is followed, and its nodes marked for the partitioner.

In: the function, its arguments, the options of the checkpoint. Out: its result. In place of saving nothing
and running Python again in the backward pass, each node says in `meta["checkpoint"]` which line asks that its
value be made again; what draws random numbers is drawn once all the same, so every mask is the forward pass's.

What a second run of the Python code could do besides (effects, writes, other draws) breaks the graph: natively
the checkpoint does all of it as in eager. So does the reentrant form, whose gradients take another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint
from torch import fx

from compiler_core.capture.breaks import AUTOGRAD, SIDE_EFFECT, Break
from compiler_core.capture.comparisons import truth
from compiler_core.capture.rules import rule
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import is_none

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["MARK"]

MARK = "checkpoint"
#: options that change what runs, and how many may be given without a break
_SPECIAL = ("context_fn", "debug")
_HARMLESS = ("determinism_check", "early_stop")


@rule(torch.utils.checkpoint.checkpoint)
def _checkpoint(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.calls import call

    own = dict(kwargs)
    preserves = _option(trace, own, "preserve_rng_state", True)
    _refuse(trace, own)
    before = _State(trace)
    result = call(trace, args[0], list(args[1:]), own)
    if torch.is_grad_enabled():
        before.refuse_what_changed(preserves)
        before.mark(trace.where())
    return result


def _option(trace: Trace, kwargs: dict[str, Value], name: str, otherwise: bool) -> bool:
    return truth(trace, trace.look(kwargs.pop(name))) if name in kwargs else otherwise


def _refuse(trace: Trace, kwargs: dict[str, Value]) -> None:
    """Take the checkpoint's own options out. Raises Break for those that are not followed."""
    reentrant = trace.look(kwargs.pop("use_reentrant")) if "use_reentrant" in kwargs else None
    if reentrant is None or is_none(reentrant) or truth(trace, reentrant):
        raise Break(AUTOGRAD, "a checkpoint that is not of the form use_reentrant=False")
    for name in _SPECIAL:
        if name in kwargs:
            raise Break(AUTOGRAD, f"a checkpoint with {name}")
    for name in _HARMLESS:
        kwargs.pop(name, None)


class _State:
    """What a trace had done when the checkpoint began."""

    def __init__(self, trace: Trace):
        self._trace = trace
        self._entries = len(trace.ledger.entries)
        self._written = set(trace.builder.written)
        self._known = trace.builder.storages()
        self._last: fx.Node | None = next(iter(reversed(trace.builder.graph.nodes)), None)

    def refuse_what_changed(self, preserves: bool) -> None:
        """Raises Break for what a second run of the function would do once more, or in another way."""
        trace = self._trace
        if len(trace.ledger.entries) != self._entries:
            raise Break(SIDE_EFFECT, "a checkpointed function writes to an object from outside")
        if (trace.builder.written - self._written) & (self._known | trace.builder.input_storages()):
            raise Break(SIDE_EFFECT, "a checkpointed function writes to a tensor from outside")
        if not preserves and any(node.meta.get("draws") for node in self._nodes()):
            raise Break(AUTOGRAD, "a checkpoint that draws other numbers in the backward pass")

    def mark(self, where: str) -> None:
        """Note on each node of the function which line asks to compute it again."""
        for node in self._nodes():
            node.meta.setdefault(MARK, where)

    def _nodes(self) -> list[fx.Node]:
        """Calls of the function, the latest first."""
        found: list[Any] = []
        for node in reversed(self._trace.builder.graph.nodes):
            if node is self._last:
                break
            if node.op.startswith("call"):
                found.append(node)
        return found
