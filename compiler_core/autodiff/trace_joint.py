"""Captured → Joint: forward and backward traced together, once.

In: the captured graph of torch calls. Out: one functional ATen graph (outputs, new values of
written inputs, gradients). The stack, top to bottom: the captured graph is interpreted; autograd
records and differentiates it; functional tensors turn writes into values; `make_fx` records ATen
operators, decomposed by an allow-list; fake tensors compute shapes. Autograd runs in this thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import fx

from compiler_core.autodiff import borrowed, tidy
from compiler_core.autodiff.decompositions import decompositions
from compiler_core.autodiff.functionalise import Forward, Input, functional_input
from compiler_core.autodiff.layout import like
from compiler_core.autodiff.ledger import Ledger, capture_handle, reachable
from compiler_core.autodiff.outputs import OutputPlan, plan_outputs, refuse_lazy_views
from compiler_core.autodiff.refusals import (
    ALIASED_MUTATION,
    LEAF_MUTATION,
    NESTED_GRAD,
    TRACE_FAILED,
    refuse,
)
from compiler_core.autodiff.sizes import same_sizes
from compiler_core.eager_layouts import EagerLayouts
from compiler_core.errors import CutawayError
from compiler_core.options import Context
from compiler_core.provenance import Origins, union
from compiler_core.stages import Captured, Joint

__all__ = ["trace_joint"]


def trace_joint(captured: Captured, context: Context) -> Joint:
    """Trace forward and backward of a captured graph in one pass.

    Inputs that require grad get a gradient if an output that requires grad depends on them; with
    grad mode off there is no backward part. A placeholder whose fake tensor was written while the
    graph was captured needs `meta["requires_grad"]` and `meta["is_leaf"]` as they were at entry. New guards on symbolic sizes that the trace needed are
    in `graph.meta["guards"]`, as text.
    Raises InternalError (CC201 … CC206, CC208) for what the stage refuses; the caller falls back to eager.
    """
    trace = _Trace(captured)
    guards = len(_guards(trace.mode))
    try:
        try:
            graph = trace.run()
        except Exception:
            if not trace.has_floats:
                raise
            trace = _Trace(captured, reads_floats=True)  # an operator that knows no symbolic float
            graph = trace.run()
    except CutawayError:
        raise
    except Exception as cause:
        kind = LEAF_MUTATION if "leaf Variable that requires grad" in str(cause) else TRACE_FAILED
        raise refuse(kind, str(cause).partition("\n")[0]) from cause
    joint = tidy.joint(trace.captured, graph, trace.ledger, trace.facts())
    joint.graph.meta["guards"] = tuple(str(g.expr) for g in _guards(trace.mode)[guards:])
    joint.graph.meta["autocast"] = borrowed.autocast_state()
    joint.graph.meta["differentiates_without_grad"] = trace.differentiates_without_grad
    joint.graph.meta["backward_error"] = trace.backward_error
    return joint


def _check_shape(number: int, output: Any, node: Any) -> None:
    """A decomposition that gives another shape than the operator itself is refused, not believed."""
    given = node.meta.get("val") if isinstance(node, fx.Node) else node
    if not isinstance(output, torch.Tensor) or not isinstance(given, torch.Tensor):
        return
    if output.dtype != given.dtype or not same_sizes(output.shape, given.shape):
        found = f"{output.dtype} {tuple(output.shape)}, not {given.dtype} {tuple(given.shape)}"
        raise refuse(TRACE_FAILED, f"output {number} ({node}) became {found}")


def _guards(mode: Any) -> list[Any]:
    return list(mode.shape_env.guards) if mode.shape_env is not None else []


class _Trace:
    """One trace: what is learned while the traced function runs."""

    def __init__(self, captured: Captured, reads_floats: bool = False):
        self.captured = captured
        self._nodes = [n for n in captured.graph.graph.nodes if n.op == "placeholder"]
        self._given = [node.meta["val"] for node in self._nodes]
        self.has_floats = any(isinstance(value, torch.SymFloat) for value in self._given)
        if reads_floats:  # each is guarded to be what it is
            self._given = [float(v) if isinstance(v, torch.SymFloat) else v for v in self._given]
        self.mode = _fake_mode(captured, self._given)
        self._differentiates = captured.grad_enabled and not captured.inference
        self.ledger: Ledger
        self._inputs: list[Input] = []
        self._plan: OutputPlan
        self._written: tuple[int, ...] = ()
        self._diff_outputs: tuple[int, ...] = ()
        self._diff_inputs: tuple[int, ...] = ()
        self._reaches: tuple[tuple[int, ...], ...] = ()
        self._outputs = 0
        self.differentiates_without_grad = False  # grad mode was off, and on inside
        self.backward_error: str | None = None  # what eager raises at the backward

    def run(self) -> fx.GraphModule:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(self.mode)
            fakes = [v.detach() if isinstance(v, torch.Tensor) else v for v in self._given]
            stack.enter_context(borrowed.enable_python_dispatcher())
            stack.enter_context(torch.set_grad_enabled(self._differentiates))
            return borrowed.make_fx(self._traced, decomposition_table=decompositions())(*fakes)

    def facts(self) -> tidy.Facts:
        return tidy.Facts(
            outputs=self._outputs, plan=self._plan, written=self._written, diff_outputs=self._diff_outputs,
            diff_inputs=self._diff_inputs, reaches=self._reaches,
        )  # fmt: skip

    def _traced(self, *fakes: Any) -> tuple[Any, ...]:
        graph = borrowed.tracer_graph()
        self.ledger = Ledger(graph)
        for node, made in zip(self._nodes, graph.nodes):
            made.meta["origins"], made.meta["phase"] = {capture_handle(node)}, "forward"
            made.meta.setdefault("val", node.meta["val"])  # a number that is compiled in has none
        with borrowed.FunctionalTensorMode():
            self._inputs = [
                functional_input(fake, self._needs_grad(node), _is_leaf(node))
                for fake, node in zip(fakes, self._nodes)
            ]
            self.ledger.settle((), "forward")
            outputs = self._forward()
            roots, tangents = self._tangents(outputs)
            gradients = self._backward(roots, tangents)
            return tuple(map(borrowed.unwrap, [*outputs, *gradients]))

    def _needs_grad(self, node: fx.Node) -> bool:
        """In inference mode autograd records nothing, whatever the grad mode is."""
        return not self.captured.inference and bool(_at_entry(node, "requires_grad", False))

    def _forward(self) -> list[Any]:
        """Run the graph; gives outputs, hidden outputs, then new values of written inputs."""
        forward = Forward(self.captured.graph, self._inputs, self.ledger)
        outputs = list(forward.run(*(given.value for given in self._inputs)))
        for node, given in zip(self._nodes, self._inputs):
            given.check_metadata(node.name)
        refuse_lazy_views(self._captured_outputs(), self._given)
        self._plan = plan_outputs(outputs, [given.value for given in self._inputs])
        if self.captured.inference:
            self._plan = self._plan.with_gradients_of(self._captured_outputs())
        outputs = self._with_strides_of_eager(outputs)
        outputs += self._plan.hidden
        self._outputs = len(outputs)
        self._written = tuple(i for i, given in enumerate(self._inputs) if given.is_written)
        for number in self._written:
            self._check_write(number)
        return outputs + [self._inputs[number].value for number in self._written]

    def _captured_outputs(self) -> Sequence[Any]:
        (result,) = (n for n in self.captured.graph.graph.nodes if n.op == "output")
        return [n.meta.get("val") if isinstance(n, fx.Node) else n for n in result.args[0]]

    def _with_strides_of_eager(self, outputs: list[Any]) -> list[Any]:
        """A decomposition may lay a result out differently; the user sees the strides of eager."""
        (result,) = (n for n in self.captured.graph.graph.nodes if n.op == "output")
        for number, (output, node) in enumerate(zip(outputs, result.args[0])):
            _check_shape(number, output, node)
            if isinstance(output, torch.Tensor) and number not in self._plan.rebuilt:
                outputs[number] = like(output, node.meta.get("val"))
                self.ledger.settle({capture_handle(node)}, "forward")
        return outputs

    def _check_write(self, number: int) -> None:
        memory = _memory(self._given[number])
        for other, given in enumerate(self._given):
            if other != number and memory is not None and _memory(given) == memory:
                names = f"{self._nodes[number].name} and {self._nodes[other].name}"
                raise refuse(ALIASED_MUTATION, names)

    def _tangents(self, outputs: list[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs that have a gradient, and a new placeholder for the tangent of each."""
        roots, tangents, numbers = [], [], []
        for number, output in enumerate(outputs):
            if not self._is_root(number, output):
                continue
            if not self._differentiates:
                self._differentiate_without_grad(number)
            roots.append(output)
            numbers.append(number)
            value, node = borrowed.add_placeholder(f"tangent_{number}", borrowed.unwrap(output))
            node.meta["origins"], node.meta["phase"] = self._output_origins(number), "backward"
            tangents.append(borrowed.to_functional(value))
        self._diff_outputs = tuple(numbers)
        return roots, tangents

    def _differentiate_without_grad(self, number: int) -> None:
        """Views and written inputs would be recorded as well if grad mode were on after the call."""
        if self._plan.rebuilt or self._written:
            raise refuse(NESTED_GRAD, f"output {number}")
        self.differentiates_without_grad = True

    def _is_root(self, number: int, output: Any) -> bool:
        if not isinstance(output, torch.Tensor) or not output.requires_grad:
            return False
        if number >= self._outputs:
            return self._inputs[self._written[number - self._outputs]].has_new_history
        return number not in self._plan.rebuilt

    def _output_origins(self, number: int) -> Origins:
        """Captured nodes that an output is: its own, those rebuilt from it, or the input written."""
        (result,) = (n for n in self.captured.graph.graph.nodes if n.op == "output")
        if number >= self._outputs:
            return frozenset({capture_handle(self._nodes[self._written[number - self._outputs]])})
        visible = len(result.args[0])
        if number < visible:
            return frozenset({capture_handle(result.args[0][number])})
        rebuilt = [v.output for v in self._plan.views if not v.of_input and v.base == number]
        return union(*({capture_handle(result.args[0][o])} for o in rebuilt))

    def _backward(self, roots: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Gradients of the inputs that the roots depend on."""
        order = reachable(roots)
        depends = _dependence(order, roots)
        leaves = [
            (number, given.leaf, torch.autograd.graph.get_gradient_edge(given.leaf).node)
            for number, given in enumerate(self._inputs)
            if isinstance(given.leaf, torch.Tensor) and given.leaf.requires_grad
        ]
        reached = [(number, leaf, node) for number, leaf, node in leaves if depends.get(node)]
        self._diff_inputs = tuple(number for number, _, _ in reached)
        self._reaches = tuple(depends[node] for _, _, node in reached)
        if not reached:
            return []
        self.ledger.watch(order)
        leaves_reached = [leaf for _, leaf, _ in reached]
        with torch.autograd.set_multithreading_enabled(False), borrowed.autocast_off():
            try:
                gradients = torch.autograd.grad(roots, leaves_reached, tangents, allow_unused=True)
            except RuntimeError as error:
                if len(roots) > 1 or _OVERWRITTEN not in str(error):
                    raise
                self.backward_error = str(error)
                self._diff_inputs = self._reaches = ()
                return []
        for gradient in gradients:
            borrowed.unwrap(gradient)
        self.ledger.settle_sums()
        return list(gradients)


# In the error of a backward that needs what was overwritten since: the forward pass is right.
_OVERWRITTEN = "has been modified by an inplace operation"


def _dependence(order: Sequence[Any], roots: Sequence[Any]) -> dict[Any, tuple[int, ...]]:
    """Autograd node → positions of the roots that it is reached from (`order` has leaves first)."""
    reached: dict[Any, set[int]] = {node: set() for node in order}
    for position, root in enumerate(roots):
        reached[root.grad_fn].add(position)
    for node in reversed(order):
        for following, _ in node.next_functions:
            if following is not None:
                reached[following] |= reached[node]
    return {node: tuple(sorted(positions)) for node, positions in reached.items()}


def _fake_mode(captured: Captured, given: Sequence[Any]) -> Any:
    for value in given:
        if isinstance(value, borrowed.FakeTensor):
            return value.fake_mode
    return EagerLayouts(shape_env=captured.shape_env)


def _is_leaf(node: fx.Node) -> bool:
    return bool(_at_entry(node, "is_leaf", True))


def _at_entry(node: fx.Node, name: str, otherwise: bool) -> Any:
    """A property of an input before the graph ran. Its fake tensor shows the one after, if written."""
    return node.meta.get(name, getattr(node.meta["val"], name, otherwise))


def _memory(value: Any) -> int | None:
    return int(value.untyped_storage()._cdata) if isinstance(value, torch.Tensor) else None
