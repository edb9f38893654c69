"""Python's builtins about types, numbers, text and attributes: one row each, builtin → rule."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.break_kinds.calls import CODE_FROM_TEXT, INTROSPECTION, NOT_LOADED
from compiler_core.capture.break_kinds.control_flow import TENSOR_RANGE
from compiler_core.capture.break_kinds.objects import CLASS_MADE, FOREIGN_OBJECT
from compiler_core.capture.break_kinds.output import FILES, READS_INPUT
from compiler_core.capture.break_kinds.values import AS_NUMBER
from compiler_core.capture.breaks import (
    IDENTITY,
    PRINTS,
    Break,
    raise_real,
)
from compiler_core.capture.class_checks import instance_check, subclass_check
from compiler_core.capture.folding import NotConstant, fold_numbers, fold_or_break, plain_int
from compiler_core.capture.items import index_of
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.functions import (
    BoundRule,
    FunctionValue,
    MethodValue,
    Partial,
)
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

from compiler_core.capture.rules import RULES, breaks, folds, rule, simple
from compiler_core.errors import Kind

__all__ = []

folds(ord, chr, bin, hex, oct, divmod, round, complex, bytes, ascii)

breaks(PRINTS, print)

breaks(READS_INPUT, input)

breaks(IDENTITY, id)

breaks(FILES, open)

breaks(CODE_FROM_TEXT, eval, exec, compile)

breaks(INTROSPECTION, globals, locals, vars, dir)

breaks(NOT_LOADED, __import__)

breaks(FOREIGN_OBJECT, memoryview, bytearray)


breaks(CLASS_MADE, builtins.__build_class__)


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
        raise Break(CLASS_MADE, "type()")
    return class_of(trace, args[0])


@simple(callable)
def _callable(trace: Trace, value: Value) -> Value:
    if isinstance(value, (FunctionValue, MethodValue, BoundRule, Partial)):
        return Constant(True)
    if isinstance(value, ObjectValue):
        return Constant(callable(value.real))
    return Constant(any("__call__" in cls.__dict__ for cls in value.python_type().__mro__))


@rule(super)
def _super(trace: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from compiler_core.capture.supers import implicit_super, make_super

    return make_super(trace, args[0], args[1]) if args else implicit_super(trace)


@simple(object)
def _object(trace: Trace) -> Value:
    return Instance(object)


def _refuse_tensor(value: Value, name: str, kind: Kind = AS_NUMBER) -> None:
    if isinstance(value, TensorValue):
        raise Break(kind, f"{name}() of a tensor")


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
    from compiler_core.capture.comparisons import truth

    _refuse_tensor(value, "bool")
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
    try:
        return fold_numbers(trace, abs, [value])
    except NotConstant:
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
        _refuse_tensor(trace.look(arg), "range", TENSOR_RANGE)
    if any(isinstance(trace.look(arg), SymbolicNumber) for arg in args):
        return Constant(range(*(plain_int(trace, arg) for arg in args)))
    if any(isinstance(trace.look(arg), ObjectValue) for arg in args):
        return Constant(range(*(index_of(trace, trace.look(arg)) for arg in args)))
    return fold_or_break(trace, range, args, kwargs)


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
    if found and isinstance(value, ObjectValue) and not trace.ledger.decides(value, _name(name)):
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
