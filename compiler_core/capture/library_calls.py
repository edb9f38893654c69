"""The standard library: math, operator, functools, itertools, collections, contextlib and others."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator
import types
import typing
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture import in_python
from compiler_core.capture.break_kinds.values import AS_NUMBER, MATH_OF_TENSOR
from compiler_core.capture.breaks import UNKNOWN_CALL, Break
from compiler_core.capture.folding import fold_numbers, fold_or_break, plain_int
from compiler_core.capture.iteration import items_of, iterator_of
from compiler_core.capture.rules import RULES, rule, simple
from compiler_core.capture.symbolic_floats import MATH, computed, is_symbolic_float
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import NONE, Constant, is_none
from compiler_core.capture.values.containers import DictValue, ListValue, TupleValue
from compiler_core.capture.values.functions import Partial
from compiler_core.capture.values.iterators import Chained, CountIterator, SequenceIterator
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

# ------------------------------------------------------------------------------ math, operator

_SYMBOLIC_MATH: dict[Any, Any] = {math.sqrt: torch.sym_sqrt, math.floor: math.floor, math.ceil: math.ceil, math.trunc: math.trunc}  # fmt: skip


def _math_rules() -> None:
    for name in dir(math):
        function = getattr(math, name)
        if not callable(function) or name.startswith("_"):
            continue

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            looked = [trace.look(arg) for arg in args]
            if any(isinstance(arg, TensorValue) for arg in looked):
                raise Break(MATH_OF_TENSOR, f"math.{f.__name__} of a tensor")
            if f in MATH and any(is_symbolic_float(arg) for arg in looked):
                text = ", ".join("{}" for _ in looked)
                return fold_numbers(trace, lambda *x: computed(f"__import__('math').{f.__name__}({text})", f, x, True), looked)  # fmt: skip
            if f in _SYMBOLIC_MATH and any(isinstance(arg, SymbolicNumber) for arg in looked):
                return fold_numbers(trace, _SYMBOLIC_MATH[f], looked)
            return fold_or_break(trace, f, looked, kwargs)

        RULES[function] = called


_math_rules()

_BINARY = {
    "add": "+", "and_": "&", "floordiv": "//", "lshift": "<<", "matmul": "@", "mul": "*", "mod": "%", "or_": "|",
    "pow": "**", "rshift": ">>", "sub": "-", "truediv": "/", "xor": "^",
}  # fmt: skip
_COMPARE = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}
_UNARY = {"neg": "UNARY_NEGATIVE", "pos": "UNARY_POSITIVE", "invert": "UNARY_INVERT", "inv": "UNARY_INVERT"}  # fmt: skip


def _operator_rules() -> None:
    from compiler_core.capture import comparisons, operators

    def row(function: Any, *prefix: Any) -> Any:
        return lambda trace, *args: function(trace, *prefix, *args)

    for name, symbol in _BINARY.items():
        simple(getattr(operator, name))(row(operators.binary, symbol))
        simple(getattr(operator, f"i{name.rstrip('_')}"))(row(operators.binary, f"{symbol}="))
    for name, symbol in _COMPARE.items():
        simple(getattr(operator, name))(row(comparisons.compare, symbol))
    for name, op in _UNARY.items():
        simple(getattr(operator, name))(row(operators.unary, op))


_operator_rules()


@simple(operator.getitem)
def _getitem(trace: Trace, container: Value, key: Value) -> Value:
    from compiler_core.capture.items import get_item

    return get_item(trace, container, key)


@simple(operator.setitem)
def _setitem(trace: Trace, container: Value, key: Value, value: Value) -> Value:
    from compiler_core.capture.items import set_item

    set_item(trace, container, key, value)
    return NONE


def _refuse_truth(value: Value, name: str) -> None:
    if isinstance(value, TensorValue):
        raise Break(AS_NUMBER, f"operator.{name} of a tensor")


@simple(operator.not_)
def _not(trace: Trace, value: Value) -> Value:
    from compiler_core.capture.comparisons import truth

    _refuse_truth(value, "not_")
    return Constant(not truth(trace, value))


@simple(operator.truth)
def _truth(trace: Trace, value: Value) -> Value:
    from compiler_core.capture.comparisons import truth

    _refuse_truth(value, "truth")
    return Constant(truth(trace, value))


@simple(operator.is_)
def _is(trace: Trace, left: Value, right: Value) -> Value:
    from compiler_core.capture.comparisons import is_same

    return Constant(is_same(trace, left, right))


@simple(operator.contains)
def _contains(trace: Trace, container: Value, needle: Value) -> Value:
    from compiler_core.capture.comparisons import contains

    return Constant(contains(trace, container, needle))


@simple(operator.index)
def _index(trace: Trace, value: Value) -> Value:
    return value if isinstance(value, SymbolicNumber) else Constant(plain_int(trace, value))


# ------------------------------------------------------------------------------ functools, itertools


@rule(functools.partial)
def _partial(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function = trace.look(args[0])
    if isinstance(function, Partial):
        merged = {**function.keywords, **kwargs}
        return Partial(function.function, [*function.args, *args[1:]], merged)
    return Partial(function, list(args[1:]), dict(kwargs))


@rule(functools.reduce)
def _reduce(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.breaks import raise_real
    from compiler_core.capture.calls import call

    items = items_of(trace, args[1])
    if len(args) < 3 and not items:
        raise raise_real(TypeError("reduce() of empty iterable with no initial value"))
    total, rest = (args[2], items) if len(args) > 2 else (items[0], items[1:])
    for item in rest:
        total = call(trace, args[0], [total, item], {})
    return total


@rule(itertools.chain)
def _chain(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Chained([trace.look(arg) for arg in args])


@rule(itertools.chain.from_iterable)
def _chain_from(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Chained([trace.look(item) for item in items_of(trace, args[0])])


@rule(itertools.count)
def _count(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    given = [*args, Constant(0), Constant(1)] if not args else [*args, Constant(1)]
    return CountIterator(kwargs.get("start", given[0]), kwargs.get("step", given[1]))


@rule(itertools.repeat)
def _repeat(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    times = args[1] if len(args) > 1 else kwargs.get("times")
    return CountIterator(args[0], None, None if times is None else plain_int(trace, times))


@rule(itertools.islice)
def _islice(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.breaks import Raised
    from compiler_core.capture.iteration import next_item

    limits = [None if is_none(trace.look(a)) else plain_int(trace, a) for a in args[1:]]
    wanted = slice(*limits)
    if wanted.stop is None:
        items = items_of(trace, args[0])[wanted]
    else:
        iterator, items = iterator_of(trace, args[0]), []
        for place in range(wanted.stop):
            try:
                item = next_item(trace, iterator)
            except Raised as raised:
                if issubclass(raised.value.cls, StopIteration):
                    break
                raise
            if place in range(wanted.start or 0, wanted.stop, wanted.step or 1):
                items.append(item)
    return SequenceIterator(ListValue(list(items)))


def _combinations(function: Any) -> None:
    """Combinatoric iterators: computed on positions, then on the items."""

    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if function is itertools.product:
            pools = [items_of(trace, arg) for arg in args]
            pools *= plain_int(trace, kwargs.get("repeat", Constant(1)))
            rows = [TupleValue(tuple(row)) for row in itertools.product(*pools)]
        else:
            items = items_of(trace, args[0])
            rest = [plain_int(trace, arg) for arg in args[1:]]
            rows = [TupleValue(tuple(row)) for row in function(items, *rest)]
        return SequenceIterator(ListValue(list[Value](rows)))

    RULES[function] = called


for _function in (
    itertools.product, itertools.combinations, itertools.combinations_with_replacement, itertools.permutations,
    itertools.pairwise,
):  # fmt: skip
    _combinations(_function)


#: written in Python, so that it is followed
_IN_PYTHON = {
    itertools.accumulate: in_python.accumulate, itertools.compress: in_python.compress, itertools.cycle: in_python.cycle,
    itertools.dropwhile: in_python.dropwhile, itertools.filterfalse: in_python.filterfalse,
    itertools.groupby: in_python.groupby, itertools.starmap: in_python.starmap, itertools.takewhile: in_python.takewhile,
    itertools.tee: in_python.tee, itertools.zip_longest: in_python.zip_longest, operator.concat: in_python.concat,
    operator.countOf: in_python.count_of,
}  # fmt: skip


def follow(trace: Trace, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call a function of `in_python.py` in the trace."""
    from compiler_core.capture.calls import call

    return call(trace, Lazy(function, trusted=True), args, kwargs)


def _python_rules() -> None:
    for original, function in _IN_PYTHON.items():

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            return follow(trace, f, args, kwargs)

        RULES[original] = called


_python_rules()

# ------------------------------------------------------------------------------ collections, others


@rule(collections.OrderedDict)
def _ordered_dict(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.dict_methods import DICT

    result = DictValue({}, collections.OrderedDict)
    DICT["update"](trace, result, *args, **kwargs)
    return result


@rule(collections.defaultdict)
def _default_dict(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.dict_methods import DICT

    factory = trace.look(args[0]) if args else NONE
    result = DictValue({}, collections.defaultdict, factory=factory)
    DICT["update"](trace, result, *args[1:], **kwargs)
    return result


@rule(dict.fromkeys)
def _from_keys(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.keys import dict_of

    if len(args) not in (1, 2) or kwargs:
        raise Break(UNKNOWN_CALL, "dict.fromkeys with wrong arguments")
    value = args[1] if len(args) > 1 else NONE
    return dict_of((trace.look(key), value) for key in items_of(trace, args[0]))


@rule(vars)
def _vars(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.attributes import get_attribute

    target = trace.look(args[0]) if len(args) == 1 else NONE
    is_object = isinstance(target, (Instance, ObjectValue)) and target.python_type().__dictoffset__
    if not is_object or isinstance(getattr(target, "real", None), (type, types.ModuleType)):
        raise Break(UNKNOWN_CALL, "vars of something other than an object")
    return get_attribute(trace, target, "__dict__")


@rule(types.SimpleNamespace)
def _namespace(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args:
        raise Break(UNKNOWN_CALL, "a SimpleNamespace of a mapping")
    trace.touch()
    return Instance(types.SimpleNamespace, dict(kwargs))


@rule(typing.cast)
def _cast(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return args[1]


@rule(dataclasses.replace)
def _replace(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.attributes import get_attribute
    from compiler_core.capture.calls import call
    from compiler_core.capture.instances import class_of

    target = trace.look(args[0])
    fields = [f for f in dataclasses.fields(target.python_type()) if f.init]
    given = {f.name: kwargs.get(f.name) or get_attribute(trace, target, f.name) for f in fields}
    return call(trace, class_of(trace, target), [], given)


@simple(dataclasses.is_dataclass)
def _is_dataclass(trace: Trace, value: Value) -> Value:
    cls = getattr(value, "real", None)
    return Constant(hasattr(cls if isinstance(cls, type) else value.python_type(), "__dataclass_fields__"))  # fmt: skip


@rule(math.prod)
def _prod(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.operators import binary

    total = trace.look(kwargs.get("start", Constant(1)))
    for item in items_of(trace, args[0]):
        total = trace.look(binary(trace, "*", total, trace.look(item)))
    return total
