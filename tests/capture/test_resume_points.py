"""Resume and step functions inside the hook: made once, named after their place, seen or not seen."""

import pytest
import torch

from compiler_core.capture import resume_points
from compiler_core.capture.frames import SkipOnce
from compiler_core.capture.normalise import decode
from compiler_core.capture.resume_points import effect, resume_function, root_of, step_function
from compiler_core.capture.skip import reason_to_skip
from compiler_core.capture.splice import CannotEnter
from compiler_core.capture.torch_hook import TorchHook

LOG = []


def log(value):
    LOG.append(value)
    return value


def program(x, n):
    y = x + n
    z = log(y) * 2
    total = 0
    for i in range(n):
        total += z + i
    return total


def offset_of(code, op, arg=None, nth=0):
    found = [i for i in decode(code).instructions if i.op == op and arg in (None, i.arg)]
    return found[nth].offset


def call_of_log(code):
    """The offset of the call `log(y)`, and what lies on the stack there."""
    return offset_of(code, "CALL", (1, ()))


def stack_before_call():
    """NULLs of `log(y)`'s stack in this version: a callable with a NULL above or below, an argument."""
    load = decode(program.__code__).group(offset_of(program.__code__, "LOAD_GLOBAL", "log"))
    return [*(i.op == "PUSH_NULL" for i in load), False]


def test_a_step_runs_one_call_natively_and_resumes():
    scope, code = globals(), program.__code__
    offset = call_of_log(code)
    name = step_function(code, offset, stack_before_call(), ["n"], scope)
    after = decode(code).after[offset]
    assert name == f"__step_at_{offset}_program"
    assert f"__resume_at_{after}_program" in scope
    LOG.clear()
    assert scope[name](None, log, 10, 3) == program(10 - 3, 3) == 63
    assert LOG == [10, 10]


def test_each_is_made_once_and_again_after_forget():
    scope, code = {"log": log}, program.__code__
    offset = call_of_log(code)
    first = step_function(code, offset, stack_before_call(), ["n"], scope)
    assert step_function(code, offset, stack_before_call(), ["n"], scope) == first
    other = step_function(code, offset, stack_before_call(), ["n", "x"], scope)
    assert other == f"{first}_2", "other locals, another function"
    elsewhere = {"log": log}
    assert step_function(code, offset, stack_before_call(), ["n"], elsewhere) == first
    assert elsewhere[first] is not scope[first]
    resume_points.forget(code)
    assert step_function(code, offset, stack_before_call(), ["n"], scope) == f"{first}_3"


def test_a_lost_global_is_made_again():
    scope, code = {}, program.__code__
    loop = offset_of(code, "FOR_ITER")
    name = resume_function(code, loop, [False], ["z", "total"], scope)
    assert scope.pop(name)(None, iter([1, 2]), 10, 0) == 23
    again = resume_function(code, loop, [False], ["z", "total"], scope)
    assert again == name and scope[again](None, iter([5]), 10, 0) == 15


def test_a_step_at_a_loop_has_two_ways_out():
    scope, code = {"range": range}, program.__code__
    loop = offset_of(code, "FOR_ITER")
    name = step_function(code, loop, [False], ["z", "total"], scope)
    assert scope[name](None, iter([1, 2]), 10, 0) == 23
    assert scope[name](None, iter([]), 10, 7) == 7
    assert len([n for n in scope if n.startswith("__resume_at_")]) == 2


def test_resumes_are_intercepted_and_native_ones_are_not():
    seen = []

    def look(view, entries):
        seen.append((view.code.co_name, dict(view.locals)))
        return SkipOnce("only looking")

    scope, code = dict(globals()), program.__code__
    loop = offset_of(code, "FOR_ITER")
    names = ("z", "total")
    resume = resume_function(code, loop, [False], names, scope)
    native = resume_function(code, loop, [False], names, scope, native=True)
    assert native == resume.replace("resume", "native")
    hook = TorchHook(look)
    for _ in range(2):
        for name in (resume, native):
            assert hook.wrap(lambda: scope[name](None, iter([1]), 10, 0))() == 11
    ours = [(name, locals_) for name, locals_ in seen if "_at_" in name]
    assert [name for name, _ in ours] == [resume] * 2
    assert set(ours[0][1]) == {"__s0", "z", "total"}


def test_a_root_is_found_from_a_resume_of_a_resume():
    scope, code = {}, program.__code__
    loop = offset_of(code, "FOR_ITER")
    name = resume_function(code, loop, [False], ["z", "total"], scope)
    closure = scope[name].__closure__
    made = next(c.cell_contents for c in closure if hasattr(c.cell_contents, "co_code"))
    inner = offset_of(made, "FOR_ITER")
    assert inner != loop and root_of(made, inner) == resume_points.Root(code, loop)
    assert resume_function(made, inner, [False], ["z", "total"], scope) == name
    with pytest.raises(CannotEnter):
        root_of(made, 0)


def test_what_cannot_run_alone_says_so():
    code = program.__code__
    store = offset_of(code, "STORE_FAST", "y")
    with pytest.raises(CannotEnter, match="STORE_FAST cannot run alone"):
        step_function(code, store, [False], ["x", "n"], {})
    jump = next(i.offset for i in decode(code).instructions if i.op == "JUMP")
    with pytest.raises(CannotEnter, match="JUMP cannot run alone"):
        effect(decode(code).group(jump))


def test_names_say_what_is_skipped():
    code = program.__code__
    assert reason_to_skip(code.replace(co_name="__resume_at_4_f")) is None
    for kind in ("step", "native"):
        assert "natively" in reason_to_skip(code.replace(co_qualname=f"__{kind}_at_4_f"))


def test_tensors_pass_through_a_step():
    scope, code = globals(), program.__code__
    name = step_function(code, call_of_log(code), stack_before_call(), ["n"], scope)
    x = torch.ones(3)
    assert scope[name](None, log, x + 2, 2).tolist() == program(x, 2).tolist()
