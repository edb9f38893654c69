"""Methods that object, BaseException and tuple give to classes of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler_core.capture.breaks import IDENTITY, UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.foreign_calls import kind_of_foreign
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import NONE, Constant
from compiler_core.capture.values.containers import ListValue, TupleValue
from compiler_core.capture.values.objects import Instance, SuperValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["OBJECT_METHODS", "object_method"]


def object_method(
    trace: Trace, receiver: Any, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """`receiver.name(*args)` for a C method of a base class. Raises Break for any other."""
    target = trace.look(receiver.bound) if isinstance(receiver, SuperValue) else receiver
    if name == "__init__":
        return _init(trace, target, args, kwargs)
    rule = _RULES.get(name)
    if rule is not None and not kwargs:
        return rule(trace, target, *args)
    if isinstance(target, TupleValue):
        from compiler_core.capture.methods import call_method

        return call_method(trace, TupleValue(target.items), name, args, kwargs)
    raise Break(kind_of_foreign(target.python_type()), f"{target.python_type().__name__}.{name}")


def _init(trace: Trace, target: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """object.__init__, BaseException.__init__."""
    if isinstance(target, Instance) and target.args is not None:
        trace.touch()
        target.args = tuple(args)
    elif (args or kwargs) and isinstance(target, Instance):
        raise raise_real(TypeError(f"{target.cls.__name__}() takes no arguments"))
    elif args or kwargs or not isinstance(target, Instance):
        raise Break(
            kind_of_foreign(target.python_type()), f"{target.python_type().__name__}.__init__"
        )
    return NONE


def _setattr(trace: Trace, target: Value, name: Value, value: Value) -> Value:
    from compiler_core.capture.stores import store_plain

    store_plain(trace, target, _text(trace, name), value)
    return NONE


def _getattribute(trace: Trace, target: Value, name: Value) -> Value:
    from compiler_core.capture.instances import generic_attribute

    return generic_attribute(trace, target, _text(trace, name))


def _text(trace: Trace, name: Value) -> str:
    name = trace.look(name)
    if not isinstance(name, Constant) or not isinstance(name.real, str):
        raise raise_real(TypeError("attribute name must be string"))
    return name.real


def _same(trace: Trace, target: Value, other: Value) -> Value:
    from compiler_core.capture.comparisons import is_same

    return Constant(True) if is_same(trace, target, trace.look(other)) else Constant(NotImplemented)


def _add_note(trace: Trace, target: Value, note: Value) -> Value:
    from compiler_core.capture.methods import call_method

    note = trace.look(note)
    is_text = isinstance(note, Constant) and isinstance(note.real, str)
    if not isinstance(target, Instance) or target.args is None or not is_text:
        raise Break(UNKNOWN_CALL, "add_note of an exception from outside")
    trace.touch()
    notes = target.attributes.setdefault("__notes__", ListValue([]))
    return call_method(trace, notes, "append", [note], {})


def _with_traceback(trace: Trace, target: Value, traceback: Value) -> Value:
    return target


def _identity(trace: Trace, target: Value, *args: Value) -> Value:
    raise Break(IDENTITY, f"hash or repr of a {target.python_type().__name__}")


def _str(trace: Trace, target: Value) -> Value:
    from compiler_core.capture.strings import text_of

    if isinstance(target, Instance) and target.args is not None:
        return text_of(trace, target)
    return _identity(trace, target)


def _subclasshook(trace: Trace, target: Value, *args: Value) -> Value:
    return NONE


def _new(trace: Trace, target: Value, cls: Value, *args: Value) -> Value:
    """`super().__new__(cls)`."""
    from compiler_core.capture.construction import bare_instance

    return bare_instance(trace, trace.look(cls), list(args))


_RULES: dict[str, Callable[..., Value]] = {
    "__setattr__": _setattr,
    "__getattribute__": _getattribute,
    "__eq__": _same,
    "__hash__": _identity,
    "__repr__": _identity,
    "__str__": _str,
    "__format__": _str,
    "add_note": _add_note,
    "with_traceback": _with_traceback,
    "__init_subclass__": _subclasshook,
    "__new__": _new,
}

#: what `object` itself does, also for classes derived from a builtin container
OBJECT_METHODS = frozenset(_RULES) - {"__eq__"}
