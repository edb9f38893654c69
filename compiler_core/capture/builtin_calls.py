"""Python's builtins: one row each, builtin → rule.

A rule takes (trace, args, kwargs) and gives the result's value. `simple` wraps a rule that takes
plain positional arguments, looked at; `folds` is the rule of a pure function of constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.breaks import (
    IDENTITY,
    PRINTS,
    SCALAR_READ,
    UNKNOWN_CALL,
    Break,
    Raised,
    raise_real,
)
from compiler_core.capture.class_checks import instance_check, subclass_check
from compiler_core.capture.folding import NotConstant, fold, fold_or_break, plain_int
from compiler_core.capture.items import index_of
from compiler_core.capture.iteration import items_of, iterator_of, length, next_item
from compiler_core.capture.keys import as_key, dict_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import (
    DictValue,
    ListValue,
    SetValue,
    TupleValue,
    keyed,
)
from compiler_core.capture.values.functions import (
    BoundRule,
    FunctionValue,
    MethodValue,
    Partial,
)
from compiler_core.capture.values.iterators import (
    EnumerateIterator,
    MapIterator,
    SequenceIterator,
    ZipIterator,
)
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["RULES", "Rule", "breaks", "find_rule", "folds", "rule", "simple"]

Rule = Callable[[Any, list[Value], dict[str, Value]], Value]

RULES: dict[Any, Rule] = {}


def find_rule(real: Any) -> Rule | None:
    """The rule of a callable, if there is one."""
    from compiler_core.capture import library_calls, torch_rules  # noqa: F401  (they fill RULES)

    try:
        return RULES.get(real)
    except TypeError:  # not hashable: no rule can be about it
        return None


def rule(*callables: Any) -> Callable[[Rule], Rule]:
    """Register a rule for callables."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(callables, function))
        return function

    return register


def simple(*callables: Any) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a rule that takes the trace and positional arguments, looked at."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
            if kwargs:
                raise Break(UNKNOWN_CALL, f"{function.__name__} with keywords")
            return function(trace, *map(trace.look, args))

        RULES.update(dict.fromkeys(callables, called))
        return function

    return register


def folds(*callables: Any) -> None:
    """Pure functions, computed while tracing when their arguments are constant."""
    for function in callables:

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            return fold_or_break(trace, f, args, kwargs)

        RULES[function] = called


def breaks(kind: Any, *callables: Any) -> None:
    """Callables that always break, and why."""
    for function in callables:

        def called(trace: Any, args: list[Value], kwargs: dict[str, Value], f: Any = function) -> Value:  # fmt: skip
            raise Break(kind, getattr(f, "__qualname__", str(f)))

        RULES[function] = called


folds(ord, chr, bin, hex, oct, divmod, round, complex, bytes, ascii)
breaks(PRINTS, print, input)
breaks(IDENTITY, id)
breaks(UNKNOWN_CALL, open, eval, exec, compile, globals, locals, vars, dir, memoryview, bytearray, __import__)  # fmt: skip


# ------------------------------------------------------------------------------ types


@simple(isinstance)
def _isinstance(trace: Trace, value: Value, classes: Value) -> Value:
    return Constant(instance_check(trace, value, classes))


@simple(issubclass)
def _issubclass(trace: Trace, value: Value, classes: Value) -> Value:
    return Constant(subclass_check(trace, value, classes))


@simple(type)
def _type(trace: Trace, *args: Value) -> Value:
    from compiler_core.capture.instances import class_of

    if len(args) != 1:
        raise Break(UNKNOWN_CALL, "a class is made with type()")
    return class_of(trace, args[0])


@simple(callable)
def _callable(trace: Trace, value: Value) -> Value:
    if isinstance(value, (FunctionValue, MethodValue, BoundRule, Partial)):
        return Constant(True)
    if isinstance(value, ObjectValue):
        return Constant(callable(value.real))
    return Constant(hasattr(value.python_type(), "__call__"))  # noqa: B004


@rule(super)
def _super(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.supers import implicit_super, make_super

    return make_super(trace, args[0], args[1]) if args else implicit_super(trace)


@simple(object)
def _object(trace: Trace) -> Value:
    return Instance(object)


# ------------------------------------------------------------------------------ numbers, strings


def _refuse_tensor(value: Value, name: str) -> None:
    if isinstance(value, TensorValue):
        raise Break(SCALAR_READ, f"{name}() of a tensor")


def _number_rule(cls: type, convert: Callable[[Any], Any], dunder: str) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        from compiler_core.capture.instances import call_special, has_python_method

        looked = [trace.look(arg) for arg in args]
        for value in looked:
            _refuse_tensor(value, cls.__name__)
        if looked and isinstance(looked[0], SymbolicNumber):
            from compiler_core.capture.graph_builder import number_value

            return number_value(convert(looked[0].real))
        if looked and has_python_method(looked[0].python_type(), dunder):
            return call_special(trace, looked[0], dunder, [])
        return fold_or_break(trace, cls, looked, kwargs)

    RULES[cls] = called


_TORCH: Any = torch
_number_rule(int, _TORCH.sym_int, "__int__")
_number_rule(float, _TORCH.sym_float, "__float__")


@simple(bool)
def _bool(trace: Trace, value: Value = NONE) -> Value:
    from compiler_core.capture.operators import truth

    return Constant(truth(trace, value))


@rule(str)
def _str(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.strings import text_of

    if len(args) == 1 and not kwargs:
        return text_of(trace, args[0])
    return fold_or_break(trace, str, args, kwargs)


@simple(repr)
def _repr(trace: Trace, value: Value) -> Value:
    from compiler_core.capture.strings import text_of

    return text_of(trace, value, "repr")


@rule(format)
def _format(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.strings import format_value

    spec = trace.look(args[1]) if len(args) > 1 else Constant("")
    return format_value(trace, trace.look(args[0]), None, spec)


@simple(abs)
def _abs(trace: Trace, value: Value) -> Value:
    if isinstance(value, TensorValue):
        return trace.builder.call("call_method", "abs", [value], {})
    if isinstance(value, (Instance, ObjectValue)):
        from compiler_core.capture.instances import call_special

        return call_special(trace, value, "__abs__", [])
    return fold_or_break(trace, abs, [value])


@rule(pow)
def _pow(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.operators import binary

    if len(args) == 2 and not kwargs:
        return binary(trace, "**", trace.look(args[0]), trace.look(args[1]))
    return fold_or_break(trace, pow, args, kwargs)


@simple(hash)
def _hash(trace: Trace, value: Value) -> Value:
    from compiler_core.capture.instances import call_special, has_python_method

    if has_python_method(value.python_type(), "__hash__"):
        return call_special(trace, value, "__hash__", [])
    if isinstance(value, (Instance, ObjectValue, TensorValue)):
        raise Break(IDENTITY, "hash()")
    return fold_or_break(trace, hash, [value])


@rule(slice)
def _slice(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.operators import make_slice

    looked = [trace.look(arg) for arg in args]
    return make_slice(trace, [NONE, *looked] if len(looked) == 1 else looked)


@rule(range)
def _range(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for arg in args:
        _refuse_tensor(trace.look(arg), "range")
    if any(isinstance(trace.look(arg), SymbolicNumber) for arg in args):
        return Constant(range(*(plain_int(trace, arg) for arg in args)))
    if any(isinstance(trace.look(arg), ObjectValue) for arg in args):
        return Constant(range(*(index_of(trace, trace.look(arg)) for arg in args)))
    return fold_or_break(trace, range, args, kwargs)


# ------------------------------------------------------------------------------ containers


@simple(list)
def _list(trace: Trace, values: Value | None = None) -> Value:
    return ListValue(list(items_of(trace, values)) if values is not None else [])


@simple(tuple)
def _tuple(trace: Trace, values: Value | None = None) -> Value:
    if isinstance(values, TupleValue) and values.cls is tuple:
        return values
    return TupleValue(tuple(items_of(trace, values)) if values is not None else ())


@rule(tuple.__new__)
def _tuple_new(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls = trace.look(args[0])
    assert isinstance(cls, ObjectValue)
    items = items_of(trace, args[1]) if len(args) > 1 else []
    return TupleValue(tuple(items), cls.real)


@rule(object.__new__)
def _object_new(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.construction import bare_instance

    return bare_instance(trace, trace.look(args[0]), [])


@rule(dict)
def _dict(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.container_methods import DICT

    result = DictValue({})
    DICT["update"](trace, result, *args, **kwargs)
    return result


def _set_rule(cls: type) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        items = [trace.look(item) for item in items_of(trace, args[0])] if args else []
        for item in items:
            as_key(item)
        return SetValue(keyed(items), cls)

    RULES[cls] = called


_set_rule(set)
_set_rule(frozenset)


@rule(dict.fromkeys)
def _fromkeys(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[1] if len(args) > 1 else NONE
    return dict_of((trace.look(key), value) for key in items_of(trace, args[0]))


@simple(len)
def _len(trace: Trace, value: Value) -> Value:
    return length(trace, value)


@rule(sorted)
def _sorted(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.container_methods import sorted_items

    items = items_of(trace, args[0])
    return ListValue(sorted_items(trace, items, kwargs.get("key"), kwargs.get("reverse")))


# ------------------------------------------------------------------------------ iterators


@simple(iter)
def _iter(trace: Trace, *args: Value) -> Value:
    if len(args) != 1:
        raise Break(UNKNOWN_CALL, "iter with a sentinel")
    return iterator_of(trace, args[0])


@simple(next)
def _next(trace: Trace, iterator: Value, *default: Value) -> Value:
    try:
        return next_item(trace, iterator)
    except Raised as raised:
        if default and issubclass(raised.value.cls, StopIteration):
            return default[0]
        raise


@rule(enumerate)
def _enumerate(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    start = args[1] if len(args) > 1 else kwargs.get("start", Constant(0))
    return EnumerateIterator(iterator_of(trace, args[0]), plain_int(trace, start))


@rule(zip)
def _zip(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.operators import truth

    strict = "strict" in kwargs and truth(trace, kwargs["strict"])
    return ZipIterator([iterator_of(trace, arg) for arg in args], strict)


@simple(map)
def _map(trace: Trace, function: Value, *parts: Value) -> Value:
    return MapIterator(function, [iterator_of(trace, part) for part in parts])


@simple(filter)
def _filter(trace: Trace, function: Value, part: Value) -> Value:
    return MapIterator(function, [iterator_of(trace, part)], is_filter=True)


@simple(reversed)
def _reversed(trace: Trace, value: Value) -> Value:
    from compiler_core.capture.instances import call_special, has_python_method

    if has_python_method(value.python_type(), "__reversed__"):
        return call_special(trace, value, "__reversed__", [])
    if isinstance(value, ListValue):
        return SequenceIterator(value, reverse=True)
    if has_python_method(value.python_type(), "__getitem__"):
        from compiler_core.capture.items import get_item

        count = plain_int(trace, length(trace, value))
        items = [get_item(trace, value, Constant(i)) for i in range(count)]
        return SequenceIterator(value, items=items, reverse=True)
    return SequenceIterator(value, items=items_of(trace, value), reverse=True)


# ------------------------------------------------------------------------------ reductions


@rule(sum)
def _sum(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.operators import binary

    total = trace.look(args[1] if len(args) > 1 else kwargs.get("start", Constant(0)))
    for item in items_of(trace, args[0]):
        total = trace.look(binary(trace, "+", total, trace.look(item)))
    return total


def _extreme(function: Callable[..., Any], symbol: str) -> None:
    def called(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        from compiler_core.capture.operators import compare, truth

        values = items_of(trace, args[0]) if len(args) == 1 else args
        key = kwargs.get("key")
        if not values:
            if "default" in kwargs:
                return kwargs["default"]
            raise raise_real(ValueError(f"{function.__name__}() arg is an empty sequence"))
        looked = [trace.look(value) for value in values]
        if any(isinstance(value, SymbolicNumber) for value in looked) and key is None:
            return _symbolic_extreme(trace, function, looked)
        keys = _keys(trace, looked, key)
        best = 0
        for place in range(1, len(looked)):
            if truth(trace, compare(trace, symbol, keys[place], keys[best])):
                best = place
        return looked[best]

    RULES[function] = called


def _keys(trace: Trace, values: list[Value], key: Value | None) -> list[Value]:
    from compiler_core.capture.calls import call

    if key is None or (isinstance(trace.look(key), Constant)):
        return values
    return [trace.look(call(trace, key, [value], {})) for value in values]


def _symbolic_extreme(trace: Trace, function: Callable[..., Any], values: list[Value]) -> Value:
    symbolic = torch.sym_max if function is max else torch.sym_min
    try:
        result = values[0]
        for value in values[1:]:
            result = fold(trace, symbolic, [result, value])
    except NotConstant:
        raise Break(UNKNOWN_CALL, f"{function.__name__} of symbolic sizes") from None
    return result


_extreme(min, "<")
_extreme(max, ">")


@simple(any)
def _any(trace: Trace, values: Value) -> Value:
    return Constant(_search(trace, values, True))


@simple(all)
def _all(trace: Trace, values: Value) -> Value:
    return Constant(not _search(trace, values, False))


def _search(trace: Trace, values: Value, wanted: bool) -> bool:
    """Whether an item with this truth comes up; the iterator stands behind it then."""
    from compiler_core.capture.operators import truth

    iterator = iterator_of(trace, values)
    while True:
        try:
            item = next_item(trace, iterator)
        except Raised as raised:
            if issubclass(raised.value.cls, StopIteration):
                return False
            raise
        if truth(trace, item) == wanted:
            return True


# ------------------------------------------------------------------------------ attributes


def _name(value: Value) -> str:
    if not isinstance(value, Constant) or not isinstance(value.real, str):
        raise raise_real(TypeError("attribute name must be string"))
    return value.real


@simple(getattr)
def _getattr(trace: Trace, value: Value, name: Value, *default: Value) -> Value:
    from compiler_core.capture.attributes import get_attribute, has_attribute

    if default and not has_attribute(trace, value, _name(name)):
        return default[0]
    return get_attribute(trace, value, _name(name))


@simple(hasattr)
def _hasattr(trace: Trace, value: Value, name: Value) -> Value:
    from compiler_core.capture.attributes import has_attribute

    found = has_attribute(trace, value, _name(name))
    if found and isinstance(value, ObjectValue):
        trace.guard("has_attr", value.source, value.real, "the attribute is there", name=_name(name), where="anywhere")  # fmt: skip
    return Constant(found)


@simple(setattr)
def _setattr(trace: Trace, target: Value, name: Value, value: Value) -> Value:
    from compiler_core.capture.stores import store_attribute

    store_attribute(trace, target, _name(name), value)
    return NONE


@simple(delattr)
def _delattr(trace: Trace, target: Value, name: Value) -> Value:
    from compiler_core.capture.stores import delete_attribute

    delete_attribute(trace, target, _name(name))
    return NONE


@simple(object.__setattr__)
def _object_setattr(trace: Trace, target: Value, name: Value, value: Value) -> Value:
    from compiler_core.capture.stores import store_plain

    store_plain(trace, target, _name(name), value)
    return NONE
