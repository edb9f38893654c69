"""What a module is made of is guarded: attributes, layers, parameters, hooks, flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from changing import Row, notices
from torch import nn
from torch.nn.modules import module as registry

X = torch.tensor([-0.5, 0.25, 0.75])


class Base(nn.Module):
    scale = 2

    def __init__(self):
        super().__init__()
        self.lin, self.k, self.layers = (
            nn.Linear(3, 3),
            1.5,
            nn.ModuleList([nn.Linear(3, 3), nn.Sigmoid()]),
        )
        self.register_buffer("offset", torch.ones(3))

    def helper(self, x):
        return x * 2

    def forward(self, x):
        x = self.helper(self.lin(x)) * self.scale + self.k + self.offset
        for layer in self.layers:
            x = layer(x)
        return x if self.training else x * 3


def net() -> Any:
    return type("Net", (Base,), {})()


def _shadow(name: str, value: Any) -> Callable[[Any], Any]:
    """An attribute of the object that hides a submodule."""
    return lambda n: object.__setattr__(n, name, value)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "method of the object": lambda n: setattr(n, "helper", lambda x: x * 9),
    "method of the class": lambda n: setattr(type(n), "helper", lambda self, x: x * 9),
    "forward of the class": lambda n: setattr(type(n), "forward", lambda self, x: x * 3),
    "forward of a submodule": lambda n: setattr(n.lin, "forward", lambda x: x * 3),
    "class attribute": lambda n: setattr(type(n), "scale", 5),
    "class attribute hidden": lambda n: setattr(n, "scale", 7),
    "attribute": lambda n: setattr(n, "k", 7.0),
    "write to __dict__": lambda n: n.__dict__.update(scale=7),
    "attribute access": lambda n: setattr(type(n), "__getattribute__", _getattribute),
    "forward hook": lambda n: n.lin.register_forward_hook(lambda m, i, o: o * 2),
    "forward pre-hook": lambda n: n.lin.register_forward_pre_hook(lambda m, i: (i[0] * 2,)),
    "own hook": lambda n: n.register_forward_hook(lambda m, i, o: o * 2),
    "hook on a parameter": lambda n: n.lin.weight.register_hook(lambda g: g * 3),
    "training flag": lambda n: n.eval(),
    "layer replaced": lambda n: n.layers.__setitem__(1, nn.Tanh()),
    "layer added": lambda n: n.layers.append(nn.Tanh()),
    "layer removed": lambda n: n.layers.__delitem__(1),
    "submodule replaced": lambda n: setattr(n, "lin", nn.Identity()),
    "parameter hidden": lambda n: n.lin.__dict__.update(weight=torch.ones(3, 3) * X),
    "buffer hidden": lambda n: n.__dict__.update(offset=5.0),
    "submodule hidden": _shadow("lin", torch.neg),
    "parameter replaced": lambda n: setattr(n.lin, "weight", nn.Parameter(torch.ones(3, 3))),
    "parameter of other strides": lambda n: setattr(
        n.lin, "weight", nn.Parameter((torch.ones(3, 3) * X).t())
    ),
    "no bias": lambda n: setattr(n.lin, "bias", None),
    "buffer replaced": lambda n: setattr(n, "offset", torch.zeros(3)),
    "requires_grad of a parameter": lambda n: n.lin.weight.requires_grad_(False),
    "requires_grad of all": lambda n: n.requires_grad_(False),
    "to another dtype": lambda n: n.to(torch.float64),
    "values of a parameter": lambda n: n.lin.weight.data.mul_(3),
}
#: changes of values, which no guard need see: the graph reads them
READ = {"parameter replaced", "buffer replaced", "values of a parameter", "hook on a parameter"}


def _getattribute(self, name):
    return 11 if name == "scale" else object.__getattribute__(self, name)


def make(change: Callable[[Any], Any]) -> Row:
    module = net()
    return Row(module, (X,), lambda: change(module))


@pytest.mark.parametrize("name", [name for name in CHANGES if name not in READ])
def test_change_is_noticed(name):
    notices(lambda: make(CHANGES[name]))


@pytest.mark.parametrize("name", sorted(READ))
def test_new_values_are_read(name):
    notices(lambda: make(CHANGES[name]), needs_version=False)


def test_input_of_another_dtype_after_to():
    def of_double() -> Row:
        module = net()
        return Row(module, (X,), lambda: module.to(torch.float64), (X.double(),))

    notices(of_double)


GLOBAL_HOOKS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "forward": (registry.register_module_forward_hook, lambda m, i, o: o * 2),
    "forward pre-hook": (registry.register_module_forward_pre_hook, lambda m, i: (i[0] * 2,)),
}


@pytest.mark.parametrize("name", GLOBAL_HOOKS)
def test_hook_of_all_modules(name):
    register, hook = GLOBAL_HOOKS[name]

    def hooked() -> Row:
        handles: list[Any] = []
        return Row(
            net(), (X,), lambda: handles.append(register(hook)), None, lambda: handles[0].remove()
        )

    notices(hooked)


def test_backward_hook_is_called():
    seen: list[int] = []

    def hooked() -> Row:
        module = net()
        hook = lambda m, grad_input, grad_output: seen.append(1) or (grad_input[0] * 2,)  # noqa: E731
        return Row(
            module,
            (X.clone().requires_grad_(),),
            lambda: module.lin.register_full_backward_hook(hook),
        )

    notices(hooked)
    assert seen == [1, 1]  # in plain Python, and compiled
