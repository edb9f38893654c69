"""Context managers: what `with manager:` does when it begins.

In: the manager. Out: the bound `__exit__` and the result of `__enter__`. Grad modes become
statements of the graph; managers of the program are followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from compiler_core.capture.breaks import GLOBAL_STATE, Break, raise_real
from compiler_core.capture.foreign_calls import kind_of_foreign
from compiler_core.capture.instances import MISSING, bind, class_lookup
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE
from compiler_core.capture.values.functions import BoundRule, GradMode
from compiler_core.capture.values.objects import Instance, ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["GRAD_MODES", "enter", "enter_grad_mode", "exit_grad_mode", "set_grad_mode"]

#: classes of torch that only set the grad mode, and the mode that each enters
GRAD_MODES: dict[type, bool | None] = {
    torch.no_grad: False,
    torch.enable_grad: True,
    torch.set_grad_enabled: None,
}


def set_grad_mode(trace: Trace, mode: bool) -> None:
    """`torch._C._set_grad_enabled(mode)`, in the graph and for the fake tensors."""
    if torch.is_grad_enabled() != mode:
        trace.builder.statement(torch._C._set_grad_enabled, mode)
        torch._C._set_grad_enabled(mode)


def enter(trace: Trace, manager: Value) -> tuple[Value, Value]:
    """(bound __exit__, result of __enter__). Raises Break, Raised."""
    from compiler_core.capture.calls import call

    if isinstance(manager, GradMode):
        enter_grad_mode(trace, manager)
        return BoundRule(manager, "__exit__"), NONE
    if isinstance(manager, ObjectValue) and type(manager.real) in GRAD_MODES:
        raise Break(GLOBAL_STATE, "a grad mode object made outside is entered")
    if not isinstance(manager, (Instance, ObjectValue)):
        raise Break(kind_of_foreign(getattr(manager, "real", None)), f"with {manager.describe()}")
    cls = manager.python_type()
    parts = {}
    for name in ("__exit__", "__enter__"):
        found, owner, _ = class_lookup(cls, name)
        if found is MISSING:
            text = f"{cls.__name__!r} object does not support the context manager protocol"
            raise raise_real(TypeError(text))
        parts[name] = bind(trace, manager, found, owner, name)
    return parts["__exit__"], call(trace, trace.look(parts["__enter__"]), [], {})


def enter_grad_mode(trace: Trace, manager: GradMode) -> None:
    trace.touch()
    if manager.cls is not torch.set_grad_enabled:
        manager.previous = torch.is_grad_enabled()
    set_grad_mode(trace, manager.mode)


def exit_grad_mode(trace: Trace, manager: Value) -> None:
    """`__exit__` of a grad mode, also of a real one that was entered before this graph."""
    if isinstance(manager, GradMode):
        assert manager.previous is not None
        set_grad_mode(trace, manager.previous)
        return
    from compiler_core.capture.attributes import get_attribute
    from compiler_core.capture.comparisons import truth

    set_grad_mode(trace, truth(trace, get_attribute(trace, manager, "prev")))
