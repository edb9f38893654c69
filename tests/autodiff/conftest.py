"""Captured graphs made by hand, without the capture stage.

`captured_of(fn, *inputs)` traces `fn` with `torch.fx` and fills in the meta that the contract asks
for: `val` by running the graph on fake tensors, `origins` one invented instruction per node.
`compiled(captured)` runs the whole stage with interpreted graphs in place of generated code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import fx

from compiler_core.autodiff import attach, partition, trace_joint
from compiler_core.options import Context, Options
from compiler_core.recording import Recorder
from compiler_core.stages import Captured, GraphInput, Joint, Partitioned


def size(x: Any, axis: int) -> Any:
    """`x.size(axis)` as capture writes it."""
    if isinstance(x, fx.Proxy):
        return x.tracer.create_proxy("call_function", torch.ops.aten.sym_size.int, (x, axis), {})
    return x.size(axis)


def set_grad(x: Any, mode: bool) -> None:
    """Grad mode from here on, as capture writes a `with torch.no_grad()`."""
    if isinstance(x, fx.Proxy):
        x.tracer.create_proxy("call_function", torch._C._set_grad_enabled, (mode,), {})
    else:
        torch._C._set_grad_enabled(mode)


class _Fill(fx.Interpreter):
    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        n.meta["val"] = result
        n.meta["origins"] = frozenset({f"instr:f0:{2 * len(self.env)}"})
        return result


def _fake(mode: Any, value: Any, dynamic: tuple[int, ...], name: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if not dynamic:
        return mode.from_tensor(value, static_shapes=True)
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    sizes = [DimDynamic.DYNAMIC if i in dynamic else DimDynamic.STATIC for i in range(value.ndim)]
    return mode.from_tensor(
        value,
        symbolic_context=StatelessSymbolicContext(dynamic_sizes=sizes),
        source=ConstantSource(name),
    )


def build(
    fn: Callable[..., Any], *inputs: Any, dynamic: dict[int, tuple[int, ...]] | None = None,
    grad: bool = True, inference: bool = False, parameters: tuple[int, ...] = (),
) -> Captured:  # fmt: skip
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv() if dynamic else None
    mode = FakeTensorMode(shape_env=env)
    tracer = fx.Tracer()
    if (getattr(fn, "__module__", None) or "torch").startswith("torch"):  # one call, not its body
        names = ", ".join(f"x{i}" for i in range(len(inputs)))
        fn = eval(f"lambda {names}: fn({names})", {"fn": fn})
    graph = tracer.trace(fn)
    (result,) = (n for n in graph.nodes if n.op == "output")
    if not isinstance(result.args[0], tuple):
        result.args = ((result.args[0],),)
    module = fx.GraphModule({}, graph)
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    fakes = [_fake(mode, x, (dynamic or {}).get(i, ()), names[i]) for i, x in enumerate(inputs)]
    entry = [(getattr(f, "requires_grad", False), getattr(f, "is_leaf", True)) for f in fakes]
    with mode, torch.set_grad_enabled(grad):
        _Fill(module).run(*fakes)
    for node, (requires_grad, is_leaf) in zip(graph.nodes, entry):
        node.meta["requires_grad"], node.meta["is_leaf"] = requires_grad, is_leaf
    given = tuple(
        GraphInput(name, f"L[{name!r}]", fake, i in parameters)
        for i, (name, fake) in enumerate(zip(names, fakes))
    )
    return Captured(
        "f", module, given, (), (), None, "", "graph", {}, grad_enabled=grad, inference=inference, shape_env=env
    )  # fmt: skip


@dataclass
class Run:
    """Everything that one trip through the stage made, and the callable."""

    captured: Captured
    joint: Joint
    partitioned: Partitioned
    call: Callable[..., tuple[Any, ...]]
    recorder: Recorder


def run_stage(captured: Captured, **options: Any) -> Run:
    context = Context(Options.of(options, strict=True), Recorder())
    joint = trace_joint(captured, context)
    check_joint(captured, joint)
    parts = partition(joint, context)
    backward = parts.backward
    call = attach(
        parts,
        lambda args: parts.forward(*args),
        None if backward is None else lambda args: backward(*args),
    )
    return Run(captured, joint, parts, call, context.recorder)


def check_joint(captured: Captured, joint: Joint) -> None:
    """What holds of every joint graph: provenance, functional operators, well formed."""
    joint.graph.graph.lint()
    names = {f"capture:{n.name}" for n in captured.graph.graph.nodes}
    for node in joint.graph.graph.nodes:
        assert node.meta["origins"], f"{node} has no origins"
        for origin in node.meta["origins"]:
            assert origin in names or origin.startswith("synthetic:trace_joint:"), origin
        assert node.meta["phase"] in ("forward", "backward")
        if node.op != "output":
            assert "val" in node.meta, node
        if isinstance(node.target, torch._ops.OpOverload):
            assert not node.target._schema.is_mutable, node.target
            assert node.target.namespace != "prims", node.target


@pytest.fixture
def captured_of() -> Callable[..., Captured]:
    return build


@pytest.fixture
def staged() -> Callable[..., Run]:
    """`staged(fn, *inputs, dynamic=…, grad=…, **options)`: the whole stage on a function."""

    def stage(fn: Callable[..., Any], *inputs: Any, **given: Any) -> Run:
        keys = ("dynamic", "grad", "inference", "parameters")
        how = {k: given.pop(k) for k in keys if k in given}
        return run_stage(build(fn, *inputs, **how), **given)

    return stage


@pytest.fixture
def graph_calls() -> SimpleNamespace:
    """The calls that capture writes by itself: `size(x, axis)` and `set_grad(x, mode)`."""
    return SimpleNamespace(size=size, set_grad=set_grad)
