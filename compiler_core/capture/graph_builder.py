"""The FX graph of torch calls, built while fake tensors flow.

In: torch-level calls with values as arguments. Out: values of their results, one node per call
with `val`, `origins` and `stack_trace`; at the end a GraphModule with a flat tuple as output.
Every call runs once on fake tensors: shapes, dtypes and errors come from torch itself.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import fake_tensor
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.utils import _pytree as pytree

from compiler_core.capture.break_kinds.calls import CONTROL_FLOW, TRANSFORM
from compiler_core.capture.break_kinds.tensors import LAYOUT
from compiler_core.capture.breaks import (
    AUTOGRAD,
    LAZY_BIT,
    NOT_REBUILT,
    OPERATOR_RAISES,
    RANDOM,
    SUBCLASS,
    Break,
)
from compiler_core.capture.guard_predicates import NUMPY_NUMBERS, tensor_oddity
from compiler_core.capture.input_source import InputSource
from compiler_core.capture.operator_kinds import kind_of_failure
from compiler_core.capture.sources import Source
from compiler_core.capture.symbolic import NoForm, Sizes
from compiler_core.capture.symbolic_floats import SymbolicFloat
from compiler_core.capture.user_containers import inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant, is_constant
from compiler_core.capture.values.containers import DictValue, ListValue, TupleValue
from compiler_core.capture.values.objects import ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue
from compiler_core.capture.watch import Watch, storage_of
from compiler_core.eager_layouts import EagerLayouts
from compiler_core.stages import GraphInput

if TYPE_CHECKING:
    from compiler_core.capture.subgraphs import Subgraph
    from compiler_core.capture.trace import Trace

__all__ = ["GraphBuilder", "Input"]

_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Input:
    """A placeholder: its value and where the tensor comes from."""

    __slots__ = ("dynamic", "first_node", "source", "storage", "value")

    def __init__(self, value: TensorValue | fx.Node, source: Source, dynamic: tuple[int, ...]):
        self.source, self.dynamic = source, dynamic
        self.value = value if isinstance(value, TensorValue) else None
        self.first_node = value.node if isinstance(value, TensorValue) else value
        self.storage = storage_of(value.fake) if isinstance(value, TensorValue) else None


class GraphBuilder:
    """Builds one graph. `written` are the storages that operators in it write to."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.graph = self.outermost = fx.Graph()
        self.subgraphs: list[Subgraph] = []  # those being built: `graph` is the last one's
        self.shape_env = ShapeEnv(
            duck_shape=False, allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False
        )
        self.fake_mode = EagerLayouts(shape_env=self.shape_env, allow_non_fake_inputs=False)
        self.inputs: list[Input] = []
        self.sizes = Sizes(self.graph, number_input=self._number_input)
        self.written: set[int] = set()
        self.calls = 0
        self.is_under_handler = False
        self._by_fake: dict[int, TensorValue] = {}
        self._floats: dict[Source, fx.Node] = {}
        self._reads_floats = False

    # ------------------------------------------------------------------ inputs

    def input(self, real: torch.Tensor, source: Source | None, guarded: bool) -> TensorValue:
        """A placeholder for a tensor from outside. Raises Break for tensor subclasses."""
        _check_plain(real, source if guarded else None)
        if source is None:
            source, guarded = self.trace.inject(real, "tensor"), False
        dynamic = self.trace.dynamic.of(real, source)
        fake = self._fake(real, source, dynamic)
        node = self._placeholder(source)
        self._annotate(node, fake)
        value = TensorValue(node, fake, real, source=source)
        self.inputs.append(Input(value, source, dynamic))
        self._by_fake[id(fake)] = value
        for dim in dynamic:
            self.sizes.note(fake.shape[dim].node.expr, node, dim, fake.shape[dim])
        self.sizes.fix_strides(fake, source.guard())
        if guarded:
            reason = "it is an input of the graph"
            self.trace.guard("tensor", source, real, reason, dynamic=dynamic)
        return value

    def _placeholder(self, source: Source) -> fx.Node:
        """The parameter bears the node's own name: `W` and `w`, or an operator `t`, are others."""
        node = self.outermost.placeholder(_placeholder_name(source))
        node.target = node.name
        return node

    def number(self, real: int, source: Source) -> Value:
        """A symbolic int from outside: an input of the graph once the graph uses it."""
        number = self.shape_env.create_unspecified_symint_and_symbol(
            real, InputSource(source.guard()), DimDynamic.DYNAMIC
        )
        symbolic: Any = number
        self.sizes.numbers[symbolic.node.expr] = source, number
        return SymbolicNumber(number, source=source)

    def _number_input(self, source: Source, number: Any) -> fx.Node:
        node = self._placeholder(source)
        self._annotate(node, number)
        self.inputs.append(Input(node, source, ()))
        return node

    def size_source(self, symbol: Any) -> Source:
        """Where the size or int that a symbol is can be read."""
        if symbol in self.sizes.numbers:
            return self.sizes.numbers[symbol][0]
        node, dim, _ = self.sizes.places[symbol]
        return next(e.source for e in self.inputs if e.first_node is node).size(dim)

    def _float_input(self, number: SymbolicFloat) -> fx.Node:
        """A symbolic float as an argument of the graph, one for each formula."""
        if number.source not in self._floats:
            name = InputSource(number.source.guard())
            symbol = self.shape_env.create_unspecified_symbol(number.hint, name, DimDynamic.DYNAMIC)
            made = self.shape_env.create_symfloatnode(symbol, hint=number.hint, source=name)
            self.sizes.floats[symbol] = number.source, number.hint
            self._floats[number.source] = self._number_input(number.source, made)
        return self._floats[number.source]

    def _fake(self, real: torch.Tensor, source: Source, dynamic: tuple[int, ...]) -> torch.Tensor:
        if not dynamic:
            return self.fake_mode.from_tensor(real, static_shapes=True)
        kinds = [
            DimDynamic.DYNAMIC if dim in dynamic else DimDynamic.STATIC for dim in range(real.dim())
        ]
        return self.fake_mode.from_tensor(
            real, static_shapes=False, source=InputSource(source.guard()),
            symbolic_context=StatelessSymbolicContext(dynamic_sizes=kinds),
        )  # fmt: skip

    # ------------------------------------------------------------------ calls

    def call(self, op: str, target: Any, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
        """A node for a torch-level call and the value of its result. Raises Break, nothing else."""
        self._reads_floats = decides_shape(target) or self._checks_range(target, args)
        nodes, fakes = zip(*map(self.lower, args)) if args else ((), ())
        lowered = {name: self.lower(value) for name, value in kwargs.items()}
        watch = Watch(frozenset(i.storage for i in self.inputs if i.storage is not None))
        result = self._execute(watch, op, target, fakes, {k: v for k, (_, v) in lowered.items()})
        if not (_has_tensor(result) or watch.written or watch.draws):
            return self._box(result, None)
        self._check_writes(watch)
        if not self._is_of_leaf(result, fakes):
            _refuse_new_leaf(result)
        if watch.draws and _name(target) in _DROPS_BETWEEN_LAYERS:
            raise Break(RANDOM, f"{_name(target)} drops between its layers")
        node = self.graph.create_node(op, target, nodes, {k: n for k, (n, _) in lowered.items()})
        self._annotate(node, result)
        node.meta["draws"] = watch.draws
        self.calls += 1
        self.is_under_handler |= self.trace.is_under_handler()
        self.trace.touch(is_effect=False)
        return self._box(result, node)

    def _checks_range(self, target: Any, args: Sequence[Value]) -> bool:
        """An integer tensor is filled: eager raises for a float that its type does not hold."""
        if not may_check_range(target):
            return False
        tensors = [v for v in map(self.trace.look, args) if isinstance(v, TensorValue)]
        return bool(tensors) and not tensors[0].fake.dtype.is_floating_point

    def _is_of_leaf(self, result: Any, given: Sequence[Any]) -> bool:
        """A leaf itself, or a view of one without grad mode: no gradient, but the fake still says so."""
        if not isinstance(result, torch.Tensor) or id(result) in self._by_fake:
            return isinstance(result, torch.Tensor)
        leaves = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
        shared = any(storage_of(leaf) == storage_of(result) for leaf in leaves)
        return shared and not torch.is_grad_enabled()

    def _execute(
        self, watch: Watch, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            with _quiet(), self.fake_mode, watch, _symbolic_dispatch((args, kwargs)):
                if op == "call_method":
                    return getattr(args[0], target)(*args[1:], **kwargs)
                return target(*args, **kwargs)
        except Break:
            raise
        except Exception as error:
            name = _name(target)
            kind = kind_of_failure(name, error)
            failure = f"{name}: {type(error).__name__}: {_first_line(error)}"
            full = str(target) if isinstance(target, torch._ops.OpOverload) else name
            raise Break(kind, failure if kind is OPERATOR_RAISES else full) from None

    def _check_writes(self, watch: Watch) -> None:
        if self.trace.breaks_overlap and watch.written & {i.storage for i in self.inputs}:
            from compiler_core.capture.breaks import OVERLAP

            raise Break(OVERLAP)
        self.written |= watch.written

    def statement(self, target: Callable[..., Any], *args: Any) -> None:
        """A node for a call that changes torch's state (grad mode)."""
        self._annotate(self.graph.call_function(target, args), None)
        self.trace.touch()

    # ------------------------------------------------------------------ arguments and results

    def lower(self, value: Value) -> tuple[Any, Any]:
        """(graph argument, fake argument) of a value. Raises Break for what no graph can hold."""
        value = inside(self.trace, self.trace.look(value))
        match value:
            case TensorValue():
                return self._reach(value.node, value), value.fake
            case SymbolicNumber():
                return self._lower_number(value)
            case Constant() if isinstance(value.real, NUMPY_NUMBERS):
                number = value.real.item()  # as torch itself takes it, but for a truth value
                if not isinstance(number, bool):
                    return number, number
                raise Break(NOT_REBUILT, "a numpy.bool as an argument of a tensor operation")
            case Constant():
                return value.real, value.real
            case TupleValue() | ListValue():
                return self._lower_sequence(value)
            case DictValue():
                value.look()
                parts = {k: self.lower(v) for k, (_, v) in value.items.items()}
                return {k: n for k, (n, _) in parts.items()}, {k: f for k, (_, f) in parts.items()}
            case ObjectValue() if isinstance(value.real, type):
                return value.real, value.real
            case ObjectValue() if isinstance(value.real, torch.Generator):
                raise Break(RANDOM, "it draws from a generator of the program's own")
            case ObjectValue() if isinstance(value.real, enum.IntEnum):
                return int(value.real), int(value.real)
        raise Break(NOT_REBUILT, f"{value.describe()} as an argument of a tensor operation")

    def _lower_sequence(self, value: TupleValue | ListValue) -> tuple[Any, Any]:
        parts = [self.lower(item) for item in value.items]
        nodes, fakes = [n for n, _ in parts], [f for _, f in parts]
        cls = value.python_type()
        if cls is slice:
            return slice(*nodes), slice(*fakes)
        if cls in (list, tuple):
            return cls(nodes), cls(fakes)
        if cls is torch.Size:
            return tuple(nodes), torch.Size(fakes)
        return tuple(nodes), tuple(fakes)

    def _lower_number(self, value: SymbolicNumber) -> tuple[Any, Any]:
        if isinstance(value.real, torch.SymBool):
            return bool(value.real), bool(value.real)
        if isinstance(value.real, SymbolicFloat):
            hint = value.real.hint
            if self._reads_floats or not math.isfinite(hint) or hint == 0:
                return float(value.real), hint
            return self._reach(
                self._float_input(value.real), value
            ), hint  # no shape or type depends on its value
        try:
            return self._reach(self.number_node(value.real), value), value.real
        except NoForm:
            plain = int(value.real) if isinstance(value.real, torch.SymInt) else float(value.real)
            return plain, plain

    def _reach(self, node: Any, value: Value) -> Any:
        """The node in the graph being built: of an outer graph's, the operand that it becomes there."""
        if not isinstance(node, fx.Node) or node.graph is self.graph:
            return node
        if isinstance(value, SymbolicNumber) and isinstance(value.real, SymbolicFloat):
            raise Break(CONTROL_FLOW, "a branch reads a float that changes between calls")
        levels = [self.outermost, *(sub.graph for sub in self.subgraphs)]
        if node.graph not in levels:
            raise Break(CONTROL_FLOW, "a tensor of a branch is used outside of it")
        for sub in self.subgraphs[levels.index(node.graph) :]:
            node = sub.take(node, value)
        return node

    def number_node(self, number: Any) -> Any:
        """The node of a symbolic number. Raises NoForm."""

        def create(function: Callable[..., Any], args: tuple[Any, ...], result: Any) -> fx.Node:
            node = self.outermost.call_function(function, args)
            self._annotate(node, result)
            return node

        if not number.node.expr.free_symbols:
            return int(number) if isinstance(number, torch.SymInt) else float(number)
        return self.sizes.node(number, create)

    def _box(self, result: Any, node: fx.Node | None) -> Value:
        if isinstance(result, torch.Tensor):
            assert node is not None
            return self._box_tensor(result, node)
        if isinstance(result, _SYMBOLIC):
            return number_value(result)
        if isinstance(result, torch.Size):
            return TupleValue(tuple(number_value(size) for size in result), torch.Size)
        if isinstance(result, (tuple, list)):
            items = [self._box(item, self._item(node, i, item)) for i, item in enumerate(result)]
            return ListValue(items) if type(result) is list else TupleValue(tuple(items), type(result))  # fmt: skip
        if is_constant(result):
            return Constant(result)
        if isinstance(result, (torch.finfo, torch.iinfo)):
            return ObjectValue(result)
        raise Break(NOT_REBUILT, f"a {type(result).__name__} as the result of a tensor operation")

    def _item(self, node: fx.Node | None, index: int, item: Any) -> fx.Node | None:
        if node is None or not _has_tensor(item):
            return None
        part = self.graph.call_function(operator.getitem, (node, index))
        self._annotate(part, item)
        return part

    def _box_tensor(self, fake: torch.Tensor, node: fx.Node) -> TensorValue:
        """The same tensor object again (an operation in place) is the same value, newly versioned."""
        known = self._by_fake.get(id(fake))
        if known is not None:
            known.node = node
            return known
        value = self._by_fake[id(fake)] = TensorValue(node, fake)
        return value

    def _annotate(self, node: fx.Node, result: Any) -> None:
        node.meta["val"] = result
        node.meta["origins"] = self.trace.origins()
        node.meta["stack_trace"] = self.trace.stack_trace()

    # ------------------------------------------------------------------ end

    def storages(self) -> set[int]:
        """The memory of every tensor of the graph so far."""
        return {storage_of(value.fake) for value in self._by_fake.values()}

    def input_storages(self) -> set[int]:
        return {entry.storage for entry in self.inputs if entry.storage is not None}

    def written_inputs(self) -> list[Input]:
        return [entry for entry in self.inputs if entry.storage in self.written]

    def prune(self, outputs: Sequence[fx.Node]) -> None:
        """Drop inputs that were looked at (and are guarded) but take no part in the graph."""
        for entry in list(self.inputs):
            if not entry.first_node.users and entry.first_node not in outputs:
                self.graph.erase_node(entry.first_node)
                self.inputs.remove(entry)

    def finish(self, outputs: Sequence[fx.Node], hidden: frozenset[str]) -> fx.GraphModule:
        """The graph module whose output is the tuple of these nodes."""
        node = self.graph.output(tuple(outputs))
        node.meta["origins"] = self.trace.origins()
        node.meta["val"] = tuple(out.meta["val"] for out in outputs)
        self.graph.lint()
        return fx.GraphModule(torch.nn.Module(), self.graph)

    def graph_inputs(self, hidden: frozenset[str]) -> tuple[GraphInput, ...]:
        return tuple(
            GraphInput(
                entry.first_node.name, entry.source.expr(hidden), entry.first_node.meta["val"],
                entry.value is not None and isinstance(entry.value.real, torch.nn.Parameter), entry.dynamic,
            )
            for entry in self.inputs
        )  # fmt: skip


# Recurrent networks: taken apart by torch's own Python, they drop nothing.
_DROPS_BETWEEN_LAYERS = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))


def _refuse_new_leaf(result: Any) -> None:
    """Raises Break for a tensor of the graph that the caller could ask for the gradient of."""
    if isinstance(result, torch.Tensor) and result.requires_grad and result.is_leaf:
        raise Break(AUTOGRAD, "a tensor that requires grad is made inside")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Fake tensors log what they raise; here a raise is an answer, not an accident."""
    before, _LOG.disabled = _LOG.disabled, True
    try:
        yield
    finally:
        _LOG.disabled = before


_LOG = logging.getLogger(fake_tensor.__name__)


def _symbolic_dispatch(operands: Any) -> contextlib.AbstractContextManager[Any]:
    """Where a size is a symbol, torch's Python kernels run: some of its C++ ones read sizes as
    numbers (`F.interpolate` does), which would guard on each batch.
    """
    tensors = (x for x in pytree.tree_leaves(operands) if isinstance(x, torch.Tensor))
    is_symbolic = any(isinstance(n, torch.SymInt) for x in tensors for n in x.shape)
    return enable_python_dispatcher() if is_symbolic else contextlib.nullcontext()


def number_value(number: Any) -> Value:
    """A value for an int, float or bool that may be symbolic."""
    if isinstance(number, SymbolicFloat):
        return SymbolicNumber(number, source=number.source)
    if not isinstance(number, _SYMBOLIC):
        return Constant(number)
    if not number.node.expr.free_symbols:
        return Constant(number.node.maybe_as_int() if isinstance(number, torch.SymInt) else float(number) if isinstance(number, torch.SymFloat) else bool(number))  # fmt: skip
    return SymbolicNumber(number)


_ODDITIES = {"lazily": LAZY_BIT, "of": TRANSFORM}


def _check_plain(real: torch.Tensor, source: Source | None) -> None:
    """Raises Break, which guards what is odd: a plain tensor gets a version of its own."""
    if type(real) not in _PLAIN_TENSORS:
        raise Break(SUBCLASS, type(real).__name__, [("type", source, real, {})])
    if odd := tensor_oddity(real):
        kind = _ODDITIES.get(odd.partition(" ")[0], LAYOUT)
        raise Break(kind, f"a tensor {odd}", [("oddity", source, real, {})])


def _has_tensor(result: Any) -> bool:
    if isinstance(result, (tuple, list)):
        return any(map(_has_tensor, result))
    return isinstance(result, torch.Tensor)


#: operators whose shapes follow from the values of floats
_SHAPED_BY_FLOATS = ("arange", "range", "interpolate", "upsample", "fractional_max_pool", "affine_grid", "grid_sample")  # fmt: skip


_FILLS = ("fill", "full", "setitem", "clamp", "scatter", "put")


def decides_shape(target: Any) -> bool:
    """Whether a shape may follow from a float: so in some operators, and in any that is not torch's own."""
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return not str(target).startswith("aten.")
    return _name(target).startswith(_SHAPED_BY_FLOATS)


def may_check_range(target: Any) -> bool:
    """Whether eager may raise for a float that an integer tensor does not hold."""
    return any(word in _name(target) for word in _FILLS)


def _placeholder_name(source: Source) -> str:
    text = "number" if source.kind == "formula" else source.expr()
    stem = re.sub(r"\W+", "_", text).strip("_").lower() or "input"
    return stem if not stem[0].isdigit() else f"_{stem}"


def _name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:160]
