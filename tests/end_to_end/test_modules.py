"""A compiled module is still the module: parameters, state, hooks, copies, and every change of it seen."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from agreement import STRICT, compiling, same_value
from programs import Layer

import compiler_core as cc


@pytest.fixture
def pair():
    """A layer, its compiled twin's object, and an eager copy with the same values."""
    layer = Layer()
    return layer, cc.compile(layer, options=STRICT), copy.deepcopy(layer)


def double(module, *inputs):
    """The module's result in float64, with the statistics of its own copy."""
    wide = copy.deepcopy(module).double()
    return wide(*(x.double() for x in inputs))


def check(compiled, eager, x):
    truth = double(eager, x)
    same_value(compiled(x), eager(x), truth, "forward")


def test_train_and_eval_switch(pair):
    _, compiled, eager = pair
    with compiling(breaks=0):
        for mode in (True, True, False, True, False):
            compiled.train(mode), eager.train(mode)
            check(compiled, eager, torch.randn(5, 4))
    for mine, theirs in zip(compiled.state_dict().values(), eager.state_dict().values()):
        torch.testing.assert_close(mine, theirs)


def test_it_is_the_same_module_under_another_call(pair):
    layer, compiled, eager = pair
    assert isinstance(compiled, Layer) and type(compiled).__name__ == "Layer"
    assert list(compiled.state_dict()) == list(eager.state_dict())
    assert all(a is b for a, b in zip(compiled.parameters(), layer.parameters(), strict=True))
    assert [n for n, _ in compiled.named_modules()] == [n for n, _ in eager.named_modules()]
    assert repr(compiled) == repr(eager)
    compiled.eval()
    assert not layer.training and not layer.norm.training
    compiled.note = "seen"
    assert layer.note == "seen"


def test_loaded_state_is_seen(pair):
    _, compiled, eager = pair
    compiled.eval(), eager.eval()
    with compiling(graphs=1):
        for k in range(3):
            state = {name: v * (k + 1) for name, v in eager.state_dict().items()}
            compiled.load_state_dict(state), eager.load_state_dict(state)
            check(compiled, eager, torch.randn(5, 4))


def test_replaced_and_frozen_parameters_are_seen(pair):
    layer, compiled, eager = pair
    compiled.eval(), eager.eval()
    weight = torch.randn(3, 4)
    changes = (
        lambda m: None,
        lambda m: setattr(m.linear.weight, "data", weight.clone()),
        lambda m: m.linear.bias.requires_grad_(False),
        lambda m: m.linear.requires_grad_(True),
        lambda m: setattr(m.linear, "weight", torch.nn.Parameter(weight * 2)),
        lambda m: setattr(m.linear, "bias", None),
        lambda m: m.register_buffer("shift", torch.zeros(3)),
    )
    with compiling(breaks=0):
        for change in changes:
            change(layer), change(eager)
            layer.zero_grad(), eager.zero_grad()
            x = torch.randn(5, 4)
            check(compiled, eager, x)
            compiled(x).sum().backward(), eager(x).sum().backward()
            for mine, theirs in zip(layer.parameters(), eager.parameters(), strict=True):
                torch.testing.assert_close(mine.grad, theirs.grad)


def test_dtype_of_the_module_changes(pair):
    layer, compiled, eager = pair
    with compiling(breaks=0):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float32):
            layer.to(dtype), eager.to(dtype)
            x = torch.randn(5, 4, dtype=dtype)
            ours = compiled(x)
            assert ours.dtype == dtype
            same_value(ours, eager(x), double(eager, x), str(dtype))


def test_hooks_come_and_go(pair):
    layer, compiled, eager = pair
    compiled.eval(), eager.eval()
    x = torch.randn(5, 4)
    registrations = (
        lambda m: m.register_forward_hook(lambda module, args, out: out * 3),
        lambda m: m.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
        lambda m: m.linear.register_forward_hook(lambda module, args, out: out - 1),
    )
    with compiling():
        check(compiled, eager, x)
        for register in registrations:
            handles = register(layer), register(eager)
            check(compiled, eager, x)
            check(compiled, eager, x + 1)
            [handle.remove() for handle in handles]
            check(compiled, eager, x)


def test_backward_hooks_run(pair):
    layer, compiled, eager = pair
    compiled.eval(), eager.eval()
    seen = {id(layer): [], id(eager): []}
    for module in (layer, eager):
        module.linear.register_full_backward_hook(
            lambda m, given, got, key=id(module): seen[key].append(got[0].sum().item())
        )
    with compiling():
        for k in range(3):
            x = torch.full((5, 4), k + 1.0, requires_grad=True)
            compiled(x).sum().backward(), eager(x).sum().backward()
    assert seen[id(layer)] == pytest.approx(seen[id(eager)]) and len(seen[id(layer)]) == 3


def test_copies_and_files_hold_the_plain_module(pair):
    layer, compiled, _ = pair
    compiled.eval()
    x = torch.randn(5, 4)
    with compiling(graphs=1):
        expected = compiled(x)
        file = io.BytesIO()
        torch.save(compiled.state_dict(), file)
        fresh = Layer().eval()
        fresh.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
        for copied in (copy.deepcopy(compiled), copy.copy(compiled), fresh):
            assert type(copied) is Layer
            torch.testing.assert_close(copied(x), expected)
        deep = cc.compile(copy.deepcopy(compiled), options=STRICT)
        deep.linear.weight.data.zero_()  # its own memory
        torch.testing.assert_close(compiled(x), expected)
        assert not torch.equal(deep(x), expected)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_as_the_plain_module(protocol):
    compiled = cc.compile(torch.nn.Linear(4, 3), options=STRICT)
    with compiling(graphs=1):
        data = pickle.dumps(compiled, protocol)
        again = pickle.loads(data)
        for k in range(3):
            x = torch.randn(2, 4) + k
            torch.testing.assert_close(again(x), compiled(x))
    assert type(again) is torch.nn.Linear and b"compiler_core" not in data


def test_instances_of_one_class_share_versions():
    layers = [torch.nn.Linear(4, 3) for _ in range(12)]
    compiled = [cc.compile(layer, options=STRICT) for layer in layers]
    x = torch.randn(2, 4)
    with compiling(graphs=1, recompiles=0):
        for mine, layer in zip(compiled, layers):
            torch.testing.assert_close(mine(x), layer(x))


def test_compile_module_works_in_place():
    layer = Layer()
    eager = copy.deepcopy(layer)
    held = layer.linear.weight
    assert cc.compile_module(layer, options=STRICT) is layer
    with compiling(breaks=0):
        for mode in (False, True, False):
            layer.train(mode), eager.train(mode)
            check(layer, eager, torch.randn(5, 4))
    assert layer.linear.weight is held and isinstance(layer, Layer)
    assert type(copy.deepcopy(layer)) is Layer


def test_compiled_child_of_an_eager_module():
    model = torch.nn.Sequential(Layer(), torch.nn.Linear(3, 2)).eval()
    eager = copy.deepcopy(model)
    model[0] = cc.compile(model[0], options=STRICT)
    with compiling(graphs=1):
        for _ in range(3):
            check(model, eager, torch.randn(5, 4))
    assert list(model.state_dict()) == list(eager.state_dict())


def test_layers_added_and_replaced_are_seen():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    compiled = cc.compile(model, options=STRICT)
    x = torch.randn(5, 4)
    changes = (
        lambda: None,
        lambda: model.append(torch.nn.Sigmoid()),
        lambda: model.__setitem__(1, torch.nn.Tanh()),
    )
    with compiling(breaks=0):
        for change in changes:
            change()
            same_value(compiled(x), model(x), double(model, x), "after a change")
    assert len(compiled) == 3 and compiled[0] is model[0]
