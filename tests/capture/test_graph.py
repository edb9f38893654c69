"""What a capture says about itself: nodes with origins and values, spans, steps, readable text."""

from __future__ import annotations

import inspect
import linecache

import torch
from capturing import captured
from torch import nn
from torch._subclasses import FakeTensor

ONE = torch.ones(3)


def helper(v):
    return torch.relu(v) * 2


def program(x, y):
    a = torch.sin(x)
    b = helper(a + y)
    print("", end="")
    return b + a


def run(fn, *args, explore=False):
    wrapped, log, hook = captured(fn, explore)
    wrapped(*args)
    return log, hook


def test_every_node_has_origins_value_and_stack():
    log, _ = run(program, ONE, ONE * 2)
    capture = log.captures[0]
    for node in capture.graph.graph.nodes:
        assert node.meta["origins"] or node.op == "output", node
        if node.op.startswith("call"):
            assert isinstance(node.meta["val"], FakeTensor)
            assert "in program" in node.meta["stack_trace"]
        for handle in node.meta["origins"]:
            assert capture.instructions[handle].span is not None


def test_an_inlined_node_names_both_frames():
    log, _ = run(program, ONE, ONE * 2)
    capture = log.captures[0]
    relu = next(n for n in capture.graph.graph.nodes if n.target is torch.relu)
    lines = {capture.instructions[h].span.line for h in relu.meta["origins"]}
    source, first = inspect.getsourcelines(program)
    call = first + next(i for i, line in enumerate(source) if "helper(" in line)
    inner = inspect.getsourcelines(helper)[1] + 1
    assert lines == {call, inner}
    assert "in helper" in relu.meta["stack_trace"]


def test_graph_is_torch_level_and_output_is_flat():
    log, _ = run(program, ONE, ONE * 2)
    targets = [n.target for n in log.captures[0].graph.graph.nodes if n.op == "call_function"]
    assert torch.sin in targets and torch.relu in targets
    output = next(n for n in log.captures[0].graph.graph.nodes if n.op == "output")
    assert type(output.args[0]) is tuple and len(output.args[0]) == 2


def test_functional_calls_are_one_node():
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU())
    log, _ = run(lambda x: net(x), torch.ones(2, 3))
    names = [
        n.target.__name__ for n in log.captures[0].graph.graph.nodes if n.op == "call_function"
    ]
    assert names == ["linear", "layer_norm", "gelu"]
    assert [i.is_parameter for i in log.captures[0].inputs] == [False, True, True, True, True]


def test_replacement_reads_like_python():
    log, _ = run(program, ONE, ONE * 2)
    text = log.captures[0].replacement
    assert text.startswith("def program(x, y):\n    # graph: 4 operations, lines ")
    assert "= __cc_graph_program_" in text and "(x, y)\n" in text
    line = log.captures[0].break_.where.line
    assert f"# graph break: the program prints at test_graph.py:{line}" in text
    compile(text, "<replacement>", "exec")


def test_replacement_is_in_linecache():
    log, _ = run(program, ONE, ONE * 2)
    name = f"<cutaway {log.captures[0].graph_name}>"
    assert "".join(linecache.getlines(name)) == log.captures[0].replacement


def test_explore_records_every_instruction():
    log, hook = run(program, ONE, ONE * 2, explore=True)
    steps = hook._compile_frame.__closure__ and [
        cell.cell_contents for cell in hook._compile_frame.__closure__ if hasattr(cell.cell_contents, "recorder")
    ][0].recorder.here.steps  # fmt: skip
    names = [step.opname for step in steps]
    assert "LOAD_GLOBAL" in names and "CALL" in names and len(names) > 20
    assert steps[-1].guards >= steps[0].guards and any(step.nodes for step in steps)
    assert all(step.instruction.startswith("instr:f0") for step in steps)


def test_a_frame_without_tensors_has_no_graph_call():
    log, _ = run(lambda n: [i * 2 for i in range(n)], 4)
    assert log.graphs == 0 and log.captures[0].has_graph is False
    assert "graph" not in log.captures[0].replacement


def test_grad_mode_is_in_the_graph():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y, x * 3

    x = torch.ones(3, requires_grad=True)
    log, _ = run(f, x)
    targets = [n.target for n in log.captures[0].graph.graph.nodes if n.op == "call_function"]
    assert targets.count(torch._C._set_grad_enabled) == 2
    assert torch.is_grad_enabled()


def test_grad_mode_is_restored_when_the_graph_raises():
    def f(x, i):
        with torch.no_grad():
            y = x.index_select(0, i)
        return y

    wrapped, _, _ = captured(f)
    wrapped(ONE, torch.tensor([0]))
    try:
        wrapped(ONE, torch.tensor([9]))
    except (IndexError, RuntimeError):
        pass
    else:
        raise AssertionError("an index out of bounds must raise")
    assert torch.is_grad_enabled()


def test_guards_say_where_and_why():
    log, _ = run(program, ONE, ONE * 2)
    for row in log.captures[0].guards:
        assert row.reason and row.check and (":" in row.line or row.kind == "distinct"), row


def test_an_input_that_is_only_looked_at_is_no_graph_input():
    def f(x, y):
        return x * (2 if y is None else y.shape[0]), y

    log, _ = run(f, ONE, torch.ones(5))
    assert [i.source for i in log.captures[0].inputs] == ["x"]
    assert any(row.kind == "tensor" and row.source == "L['y']" for row in log.captures[0].guards)


def test_builtins_are_written_by_name():
    log, _ = run(program, ONE, ONE * 2)
    assert ", print, " in log.captures[0].replacement


def test_a_mode_refuses_this_call_only():
    from compiler_core.capture.breaks import CannotCapture
    from compiler_core.capture.frame_capture import capture_frame
    from compiler_core.capture.frames import FrameView
    from compiler_core.options import Context, Options
    from compiler_core.recording import Recorder

    def f(x):
        return x + 1

    view = FrameView(f.__code__, {"x": ONE}, f.__globals__, vars(__import__("builtins")), ())
    context = Context(Options.of(), Recorder())
    with torch.overrides.TorchFunctionMode():
        try:
            capture_frame(view, context, [])
        except CannotCapture as refusal:
            assert refusal.once
        else:
            raise AssertionError("a torch function mode must refuse")
    assert capture_frame(view, context, []).break_ is None
