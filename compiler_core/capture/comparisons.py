"""Comparisons, identity, truth and membership of values.

In: values, looked at. Out: a value or a Python bool. The truth of a tensor is a break.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from compiler_core.capture.break_kinds.control_flow import TENSOR_ORDER
from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import NotConstant, fold, fold_numbers
from compiler_core.capture.instances import call_special, class_lookup
from compiler_core.capture.keys import as_key
from compiler_core.capture.user_containers import inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
)
from compiler_core.capture.values.functions import MethodValue
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

from compiler_core.capture.operators import _COMPARE, _SWAPPED, OPERATORS, _defines, _not_understood

__all__ = ["compare", "contains", "is_same", "truth"]


def compare(trace: Trace, symbol: str, left: Value, right: Value) -> Value:
    """`left symbol right`."""
    name = _COMPARE[symbol]
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        return trace.builder.call("call_function", OPERATORS[symbol], [left, right], {})
    if _defines(left, f"__{name}__") or _defines(right, f"__{_SWAPPED[name]}__"):
        return _special_compare(trace, name, left, right)
    left, right = inside(trace, left), inside(trace, right)
    try:
        return fold_numbers(trace, OPERATORS[symbol], [left, right])
    except NotConstant:
        pass
    if symbol in ("==", "!="):
        return Constant(_equal(trace, left, right) == (symbol == "=="))
    raise _not_understood(symbol, left, right)


def _special_compare(trace: Trace, name: str, left: Value, right: Value) -> Value:
    for receiver, method, other in ((left, f"__{name}__", right), (right, f"__{_SWAPPED[name]}__", left)):  # fmt: skip
        if _defines(receiver, method):
            result = trace.look(call_special(trace, receiver, method, [other]))
            if not (isinstance(result, Constant) and result.real is NotImplemented):
                return result
    if name in ("eq", "ne"):
        if name == "ne" and (_defines(left, "__eq__") or _defines(right, "__eq__")):
            return Constant(not truth(trace, _special_compare(trace, "eq", left, right)))
        return Constant(is_same(trace, left, right) == (name == "eq"))
    raise raise_real(TypeError(f"{name!r} not supported between these instances"))


def _equal(trace: Trace, left: Value, right: Value) -> bool:
    """Equality of containers and objects that are not wholly constant."""
    if isinstance(left, (ListValue, TupleValue)) and isinstance(right, (ListValue, TupleValue)):
        if isinstance(left, ListValue) != isinstance(right, ListValue):
            return False
        if len(left.items) != len(right.items):
            return False
        return all(_equal_items(trace, a, b) for a, b in zip(left.items, right.items))
    if isinstance(left, DictValue) and isinstance(right, DictValue):
        left.look()
        right.look()
        if left.items.keys() != right.items.keys():
            return False
        return all(_equal_items(trace, x, right.items[k][1]) for k, (_, x) in left.items.items())
    plain = (ListValue, TupleValue, DictValue, SetValue, Constant)
    if isinstance(left, plain) and isinstance(right, plain) and type(left) is not type(right):
        return False
    if _compares_by_identity(left) or _compares_by_identity(right):
        return is_same(trace, left, right)
    raise _not_understood("==", left, right)


def _equal_items(trace: Trace, left: Value, right: Value) -> bool:
    left, right = trace.look(left), trace.look(right)
    return left is right or truth(trace, compare(trace, "==", left, right))


def _compares_by_identity(value: Value) -> bool:
    if isinstance(value, MethodValue):
        return False
    if isinstance(value, (Constant, TupleValue, ListValue, DictValue, SetValue, DictView)):
        return False
    return class_lookup(value.python_type(), "__eq__")[0] in (object.__dict__["__eq__"],)


def is_same(trace: Trace, left: Value, right: Value) -> bool:
    """`left is right`."""
    if left is right:
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        return left.real is right.real or (type(left.real) is type(right.real) and left.real == right.real and isinstance(left.real, (str, int, bytes)))  # fmt: skip
    if isinstance(left, ObjectValue) and isinstance(right, ObjectValue) and left.real is right.real:
        return True
    if type(left) is type(right) and left.source is not None and right.source is not None:
        trace.guard("different_object", left.source, None, "they were compared by identity", other=right.source)  # fmt: skip
    return False


def truth(trace: Trace, value: Value) -> bool:
    """`bool(value)`. A tensor's truth is a break."""
    value = trace.look(value)
    match value:
        case TensorValue():
            raise Break(TENSOR_ORDER)
        case Constant() | SymbolicNumber():
            return bool(value.real)
        case ListValue() | TupleValue() | SetValue():
            if not _defines(value, "__bool__"):
                return bool(value.items)
        case DictValue():
            value.look()
            return bool(value.items)
        case DictView():
            value.of.look()
            return bool(value.of.items)
    if isinstance(value, ObjectValue) and isinstance(value.real, type):
        return True
    return _object_truth(trace, value)


def _object_truth(trace: Trace, value: Value) -> bool:
    if not isinstance(value, (Instance, ObjectValue, TupleValue)):
        return True
    for name in ("__bool__", "__len__"):
        if _defines(value, name):
            return truth(trace, call_special(trace, value, name, []))
        found = class_lookup(value.python_type(), name)[0]
        if callable(found):
            if (content := inside(trace, value)) is not value:
                return truth(trace, content)
            if (isinstance(value, ObjectValue) and type(value.real).__module__ == "enum") or isinstance(getattr(value, "real", None), int):  # fmt: skip
                return bool(value.real)  # type: ignore[union-attr]
            raise Break(UNKNOWN_CALL, f"truth of a {value.python_type().__name__}")
    return True


def contains(trace: Trace, container: Value, needle: Value) -> bool:
    """`needle in container`."""
    from compiler_core.capture.iteration import items_of

    if isinstance(container, DictView) and container.kind == "keys":
        container = container.of
    if isinstance(container, DictValue):
        return _has_key(trace, container, needle)
    if isinstance(container, SetValue):
        return as_key(needle) in container.items
    if isinstance(container, (Constant, TensorValue)):
        if isinstance(container, TensorValue) or not isinstance(needle, (Constant, SymbolicNumber)):
            raise Break(TENSOR_ORDER, "in of a tensor")
        return bool(fold(trace, operator.contains, [container, needle]).real)  # type: ignore[attr-defined]
    if _defines(container, "__contains__"):
        return truth(trace, call_special(trace, container, "__contains__", [needle]))
    if (content := inside(trace, container)) is not container:
        return contains(trace, content, needle)
    if isinstance(container, ObjectValue) and isinstance(container.real, type):
        try:
            members: Any = container.real
            return bool(needle.real in members)  # type: ignore[attr-defined]
        except (TypeError, AttributeError):
            raise Break(UNKNOWN_CALL, f"in of {container.describe()}") from None
    return any(_equal_items(trace, item, needle) for item in items_of(trace, container))


def _has_key(trace: Trace, container: DictValue, needle: Value) -> bool:
    key = as_key(needle)
    found = key in container.items
    if container.on_structure is not None and container.source is not None:
        reason = "the key is there" if found else "the key is not there"
        trace.guard("has_key" if found else "lacks_key", container.source, None, reason, key=key)
    return found
