"""Code objects die with the functions they belong to, whatever was learnt about them."""

from __future__ import annotations

import gc
import weakref

import torch
from agreement import STRICT

import compiler_core as cc

TEXT = """
def broken(x, log):
    y = x.sin()
    log.append(y.sum().item())
    return y + 1
"""


def test_code_that_was_compiled_and_broken_dies():
    scope = {}
    exec(compile(TEXT, "<made at run time>", "exec"), scope)
    code = weakref.ref(scope["broken"].__code__)
    x = torch.ones(3)
    assert torch.equal(cc.compile(scope["broken"], options=STRICT)(x, []), x.sin() + 1)
    assert code() is not None
    scope.clear()
    cc.reset()
    gc.collect()
    assert code() is None
