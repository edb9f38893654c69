"""Which frames are left to eager, each with its reason."""

import ast
import collections
import contextlib
import dataclasses
import json
from types import CodeType

import pytest
import torch

from compiler_core.capture import skip
from compiler_core.capture.skip import RULES, reason_to_skip


def generator():
    yield 1


Pair = collections.namedtuple("Pair", "a b")


async def coroutine():
    return 1


def inner_code(source, name):
    todo = [compile(source, "user.py", "exec")]
    while todo:
        code = todo.pop()
        if code.co_name == name:
            return code
        todo += [c for c in code.co_consts if isinstance(c, CodeType)]
    raise LookupError(name)


def in_file(file, name="f"):
    return inner_code("def f(): return 1", "f").replace(
        co_filename=file, co_name=name, co_qualname=name
    )


CASES = [
    (generator.__code__, "generator"),
    (coroutine.__code__, "generator or coroutine"),
    (inner_code("class A:\n    x = 1", "A"), "class or module"),
    (inner_code("x = 1", "<module>"), "class or module"),
    (in_file("user.py", "__step_at_4_f"), "natively"),
    (in_file("user.py", "__native_at_4_f"), "natively"),
    (in_file("<frozen importlib._bootstrap>"), "without a source file"),
    (reason_to_skip.__code__, "compiler's own"),
    (torch.nn.Module._call_impl.__code__, "torch's own"),
    (torch.nn.functional.gelu.__code__ if hasattr(torch.nn.functional.gelu, "__code__")
     else torch.nn.functional.softmax.__code__, "torch's own"),
    (torch.nn.Linear.reset_parameters.__code__, "torch's own"),
    (json.dumps.__code__, "standard library"),
    (ast.walk.__code__, "standard library"),
    (Pair.__new__.__code__, "named tuple"),
    (compile("x = 1", "<string>", "exec"), "exec()"),
    (dataclasses.replace.__code__, "standard library"),
    (contextlib.ExitStack.pop_all.__code__, "standard library"),
    (in_file("/x/lib/python3.11/site-packages/numpy/core/a.py"), "holds no tensor programs"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "reason"), CASES, ids=lambda c: getattr(c, "co_name", None))
def test_skipped(code, reason):
    assert reason in reason_to_skip(code)


KEPT = [
    CASES[0][0].replace(co_flags=3),
    (lambda x: x).__code__,
    torch.nn.Linear.forward.__code__,
    torch.nn.TransformerEncoderLayer.forward.__code__,
    in_file("user.py", "__resume_at_4_f"),
    in_file("/x/lib/python3.11/site-packages/transformers/models/bert.py"),
    in_file("<ipython-input-1-abc>"),
    in_file("<string>"),
]


@pytest.mark.parametrize("code", KEPT, ids=lambda c: c.co_name)
def test_not_skipped(code):
    assert reason_to_skip(code) is None


def test_comprehensions_of_3_11_belong_to_their_function():
    comprehension = in_file("user.py", "<listcomp>")
    assert "comprehension" in reason_to_skip(comprehension)


def test_every_rule_is_used_by_a_case():
    codes = [code for code, _ in CASES] + [in_file("user.py", "<listcomp>")]
    for rule in RULES:
        assert any(rule.applies(code) for code in codes), rule.reason
    assert len({rule.reason for rule in skip.RULES}) == len(RULES)
