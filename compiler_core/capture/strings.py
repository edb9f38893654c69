"""f-strings and str(): text of values that are constant while tracing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler_core.capture.break_kinds.values import TENSOR_TEXT
from compiler_core.capture.breaks import UNKNOWN_CALL, Break, raise_real
from compiler_core.capture.folding import NotConstant, payload
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.objects import Instance, ObjectValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["format_value", "text_of"]

_CONVERSIONS = {None: None, "str": str, "repr": repr, "ascii": ascii}


def format_value(trace: Trace, value: Value, conversion: str | None, spec: Value) -> Value:
    """What `f"{value!conversion:spec}"` gives."""
    convert = _CONVERSIONS[conversion]
    if convert is not None:
        value = text_of(trace, value, convert.__name__)
    elif not isinstance(value, (Constant, SymbolicNumber)):
        value = text_of(trace, value, "str")
    real = _plain(value)
    assert isinstance(spec, Constant)
    try:
        return Constant(format(real, spec.real))
    except Exception as error:
        raise raise_real(error) from None


def _plain(value: Value) -> object:
    if isinstance(value, SymbolicNumber):
        return value.python_type()(value.real)
    assert isinstance(value, Constant)
    return value.real


def text_of(trace: Trace, value: Value, function: str = "str") -> Value:
    """`str(value)`, `repr(value)` or `ascii(value)`. Raises Break when it is not known."""
    from compiler_core.capture.instances import call_special, has_python_method

    value = trace.look(value)
    if isinstance(value, TensorValue):
        raise Break(TENSOR_TEXT)
    dunder = "__str__" if function == "str" else "__repr__"
    functions: dict[str, Any] = {"str": str, "repr": repr, "ascii": ascii}
    if isinstance(value, (Instance, ObjectValue)):
        if has_python_method(value.python_type(), dunder):
            return call_special(trace, value, dunder, [])
        if isinstance(value, Instance) and value.args is not None:
            return (_exception_text if function == "str" else _exception_repr)(trace, value)
        if isinstance(value.real, type) or type(value.real).__module__ == "enum":
            return Constant(functions[function](value.real))
    try:
        text = functions[function](payload(trace, value))
    except NotConstant as missing:
        raise Break(UNKNOWN_CALL, f"{function} of {missing}") from None
    return Constant(text)


def _exception_repr(trace: Trace, value: Instance) -> Value:
    parts = [text_of(trace, arg, "repr") for arg in value.args or ()]
    text = ", ".join(str(part.real) for part in parts if isinstance(part, Constant))
    return Constant(f"{value.cls.__name__}({text})")


def _exception_text(trace: Trace, value: Instance) -> Value:
    args = value.args or ()
    if issubclass(value.cls, KeyError) and len(args) == 1:
        return text_of(trace, args[0], "repr")
    if not args:
        return Constant("")
    if len(args) == 1:
        return text_of(trace, args[0])
    try:
        return Constant(str(tuple(payload(trace, arg) for arg in args)))
    except NotConstant as missing:
        raise Break(UNKNOWN_CALL, f"str of {missing}") from None
