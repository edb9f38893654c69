"""Methods of modelled values: by kind of the receiver, then by name.

In: receiver, method name, arguments. Out: the result's value. A method of an outside container that
writes goes through the ledger first (`effects.Ledger.write`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.container_methods import LIST, TUPLE
from compiler_core.capture.dict_methods import DICT
from compiler_core.capture.folding import fold_or_break
from compiler_core.capture.foreign_calls import kind_of_foreign
from compiler_core.capture.generators import resume, send
from compiler_core.capture.iteration import next_item
from compiler_core.capture.managers import enter_grad_mode, exit_grad_mode
from compiler_core.capture.object_methods import OBJECT_METHODS
from compiler_core.capture.raising import as_exception
from compiler_core.capture.set_methods import SET
from compiler_core.capture.tensor_methods import tensor_method
from compiler_core.capture.user_containers import builtin_method, inside
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant, is_none
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
)
from compiler_core.capture.values.functions import FunctionValue, GradMode
from compiler_core.capture.values.iterators import GeneratorValue
from compiler_core.capture.values.objects import Instance, ObjectValue, SuperValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["call_method"]


def call_method(
    trace: Trace, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`receiver.name(*args, **kwargs)` for a method that is not Python. Raises Break, Raised."""
    receiver = trace.look(receiver)
    owner = trace.look(receiver.bound) if isinstance(receiver, SuperValue) else receiver
    if name not in OBJECT_METHODS and inside(trace, owner) is not owner:
        return builtin_method(trace, owner, name, args, kwargs)
    special = _SPECIAL.get(name)
    if special is not None and not isinstance(receiver, (SuperValue, TensorValue)):
        return special(trace, receiver, args)
    caller = _BY_KIND.get(type(receiver))
    if caller is None:
        raise Break(
            kind_of_foreign(receiver.python_type()), f"{receiver.python_type().__name__}.{name}"
        )
    return caller(trace, receiver, name, args, kwargs)


def _from_table(table: dict[str, Any]) -> Callable[..., Value]:
    def caller(
        trace: Trace, receiver: Value, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        if name not in table:
            raise Break(UNKNOWN_CALL, f"{receiver.python_type().__name__}.{name}")
        try:
            result: Value = table[name](trace, receiver, *args, **kwargs)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise raise_real(TypeError(f"{name}: wrong arguments")) from None
        return result

    return caller


# ------------------------------------------------------------------------------ constants


def _constant(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    from compiler_core.capture.iteration import items_of
    from compiler_core.capture.strings import text_of

    if name == "join" and isinstance(receiver.real, str):
        args = [ListValue([trace.look(item) for item in items_of(trace, args[0])])]
    if name == "format" and isinstance(receiver.real, str):
        args = [a if isinstance(trace.look(a), (Constant, SymbolicNumber)) else text_of(trace, a) for a in args]  # fmt: skip
    return fold_or_break(trace, getattr(receiver.real, name), args, kwargs)


def _number(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    plain = receiver.python_type()(receiver.real)
    return fold_or_break(trace, getattr(plain, name), args, kwargs)


# ------------------------------------------------------------------------------ generators, modes


def _generator(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    if name == "send":
        return send(trace, receiver, trace.look(args[0]))
    if name == "throw":
        exception = as_exception(trace, args[1] if len(args) > 1 else args[0])
        return resume(trace, receiver, NONE, exception)
    if name == "close":
        return _close(trace, receiver)
    raise Break(UNKNOWN_CALL, f"generator.{name}")


def _close(trace: Trace, generator: GeneratorValue) -> Value:
    from compiler_core.capture.breaks import Raised

    if generator.state in ("created", "closed"):
        generator.state = "closed"
        return NONE
    try:
        resume(trace, generator, NONE, Instance(GeneratorExit, args=()))
    except Raised as raised:
        if issubclass(raised.value.cls, (GeneratorExit, StopIteration)):
            return NONE
        raise
    raise raise_real(RuntimeError("generator ignored GeneratorExit"))


def _grad_mode(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    if name == "__enter__":
        enter_grad_mode(trace, receiver)
        return NONE
    if name == "__exit__":
        exit_grad_mode(trace, receiver)
        return NONE
    if name == "clone":
        return GradMode(receiver.cls, receiver.mode)
    raise Break(UNKNOWN_CALL, f"{receiver.cls.__name__}.{name}")


# ------------------------------------------------------------------------------ objects


def _object(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A method of object or of a builtin base class, on an instance."""
    from compiler_core.capture.object_methods import object_method

    return object_method(trace, receiver, name, args, kwargs)


def _function(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    from compiler_core.capture.calls import call

    if name == "__call__":
        return call(trace, receiver, args, kwargs)
    if name == "__get__":
        from compiler_core.capture.values.functions import MethodValue

        return receiver if is_none(trace.look(args[0])) else MethodValue(receiver, args[0])
    raise Break(UNKNOWN_CALL, f"function.{name}")


def _view(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    if name == "isdisjoint":
        raise Break(UNKNOWN_CALL, "isdisjoint of a dict view")
    raise Break(UNKNOWN_CALL, f"dict view .{name}")


_BY_KIND: dict[type, Callable[..., Value]] = {
    TensorValue: tensor_method,
    ListValue: _from_table(LIST),
    TupleValue: _from_table(TUPLE),
    DictValue: _from_table(DICT),
    SetValue: _from_table(SET),
    DictView: _view,
    Constant: _constant,
    SymbolicNumber: _number,
    GeneratorValue: _generator,
    GradMode: _grad_mode,
    FunctionValue: _function,
    Instance: _object,
    ObjectValue: _object,
    SuperValue: _object,
}


def _len(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    from compiler_core.capture.iteration import length

    return length(trace, receiver)


def _iter(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    from compiler_core.capture.iteration import iterator_of

    return iterator_of(trace, receiver)


def _contains(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    from compiler_core.capture.comparisons import contains

    return Constant(contains(trace, receiver, trace.look(args[0])))


def _getitem(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    from compiler_core.capture.items import get_item

    return get_item(trace, receiver, args[0])


def _setitem(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    from compiler_core.capture.items import set_item

    set_item(trace, receiver, args[0], args[1])
    return NONE


def _delitem(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    from compiler_core.capture.items import delete_item

    delete_item(trace, receiver, trace.look(args[0]))
    return NONE


def _next(trace: Trace, receiver: Value, args: list[Value]) -> Value:
    return next_item(trace, receiver)


_SPECIAL: dict[str, Callable[[Any, Value, list[Value]], Value]] = {
    "__len__": _len,
    "__iter__": _iter,
    "__contains__": _contains,
    "__getitem__": _getitem,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "__next__": _next,
}
