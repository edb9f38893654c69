"""Recurrent layers: library calls some of whose results exist in grad mode only."""

from __future__ import annotations

import pytest
import torch
from agreement import STRICT, compiling

import compiler_core as cc

LAYERS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_with_and_without_grad_mode(kind, batch_first):
    layer = LAYERS[kind](4, 5, batch_first=batch_first)
    compiled = cc.compile(layer, options=STRICT)
    with compiling():
        for grad in (False, True, False, True):
            x = torch.randn(2, 3, 4)
            with torch.set_grad_enabled(grad):
                torch.testing.assert_close(compiled(x), layer(x))
            if grad:
                compare_gradients(compiled, layer, x)


def compare_gradients(compiled, layer, x):
    found = []
    for module in (compiled, layer):
        layer.zero_grad()
        module(x)[0].sum().backward()
        found.append([p.grad.clone() for p in layer.parameters()])
    torch.testing.assert_close(*found)
