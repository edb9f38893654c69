"""Calls of Python functions, interpreted in a frame of their own.

In: a function value and arguments. Out: its result. Binding follows CPython's rules, with its
error messages; a generator function gives a suspended frame.
"""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING

from compiler_core.capture.break_kinds.control_flow import COROUTINE
from compiler_core.capture.breaks import TOO_DEEP, Break, raise_real
from compiler_core.capture.frame import SymbolicFrame
from compiler_core.capture.resolve import is_library
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import DictValue, TupleValue
from compiler_core.capture.values.functions import Cell, FunctionValue
from compiler_core.capture.values.iterators import GeneratorValue
from compiler_core.capture.values.objects import ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["bind_arguments", "function_of", "inline"]


def function_of(trace: Trace, value: ObjectValue) -> FunctionValue:
    """The inside of a real function: defaults and closure as lazy values, once per function."""
    real = value.real
    known = trace.functions.get(id(real))
    if known is not None:
        return known
    source, trusted = value.source, value.source is None or is_library(real)

    def lazy(part: object, where: object) -> Value:
        return Lazy(part, source=where if source else None, trusted=trusted)  # type: ignore[arg-type]

    defaults = [lazy(x, source and source.default_of(i)) for i, x in enumerate(real.__defaults__ or ())]  # fmt: skip
    kwdefaults = {k: lazy(x, source and source.default_of(k)) for k, x in (real.__kwdefaults__ or {}).items()}  # fmt: skip
    if source is not None and not trusted:
        trace.guard("equals", source.attr("__defaults__"), None, "it has no defaults") if real.__defaults__ is None else None  # fmt: skip
        if real.__defaults__ is not None:
            trace.guard("length", source.attr("__defaults__"), real.__defaults__, "its defaults")
        if real.__kwdefaults__:
            trace.guard("keys", source.attr("__kwdefaults__"), list(real.__kwdefaults__), "its keyword defaults")  # fmt: skip
    closure = [_cell(trace, cell, i, value, trusted) for i, cell in enumerate(real.__closure__ or ())]  # fmt: skip
    function = FunctionValue(
        real.__code__, real.__globals__, real.__name__, defaults, kwdefaults, closure,
        globals_source=source, trusted=trusted, source=source,
    )  # fmt: skip
    trace.functions[id(real)] = function
    return function


def _cell(
    trace: Trace, cell: types.CellType, index: int, value: ObjectValue, trusted: bool
) -> Cell:
    known = trace.known.get(id(cell))
    source = value.source
    cell_source = source.attr("__closure__").item(index) if source else None
    if isinstance(known, Cell):
        if known.source not in (None, cell_source) and cell_source is not None and not trusted:
            trace.guard("same_object", cell_source, cell, "two functions share a variable", other=known.source)  # fmt: skip
        return known
    try:
        real = cell.cell_contents
    except ValueError:
        content: Value | None = None
    else:
        content = Lazy(real, source=source.closure_of(index) if source else None, trusted=trusted)
    result = Cell(content, outside=True, source=cell_source)
    trace.known[id(cell)] = result
    trace.keep.append(cell)
    return result


def inline(
    trace: Trace, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """The result of calling a Python function. Raises Break, Raised."""
    from compiler_core.capture.interpreter import run

    limit = trace.context.options.inline_limit
    if len(trace.frames) > limit:
        raise Break(TOO_DEEP, f"calls nest deeper than inline_limit = {limit}")
    code = function.code
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise Break(COROUTINE, code.co_name)
    frame = _frame(trace, function, bind_arguments(function, args, kwargs))
    if code.co_flags & inspect.CO_GENERATOR:
        trace.touch()
        trace.generators.append(GeneratorValue(frame, trace.step))
        return trace.generators[-1]
    return run(frame)


def _frame(trace: Trace, function: FunctionValue, locals_: dict[str, Value]) -> SymbolicFrame:
    code = function.code
    cells = dict(zip(code.co_freevars, function.closure))
    for name in code.co_cellvars:
        cells[name] = Cell(locals_.pop(name, None))
    return SymbolicFrame(
        trace, code, function.globals, locals_, cells, function, trace.frame.next_path()
    )


# ------------------------------------------------------------------------------ arguments


def bind_arguments(
    function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
) -> dict[str, Value]:
    """Locals of a call. Raises Raised(TypeError) as CPython does."""
    code, kwargs = function.code, dict(kwargs)
    names, count = code.co_varnames, code.co_argcount
    total = count + code.co_kwonlyargcount
    bound = dict(zip(names[:count], args))
    position = total
    if code.co_flags & inspect.CO_VARARGS:
        bound[names[position]] = TupleValue(tuple(args[count:]))
        position += 1
    elif len(args) > count:
        raise _error(function, _too_many(function, len(args)))
    extra = _bind_keywords(function, bound, kwargs, total)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        bound[names[position]] = DictValue({k: (Constant(k), v) for k, v in extra.items()})
    elif extra:
        raise _error(function, f"got an unexpected keyword argument {next(iter(extra))!r}")
    _bind_defaults(function, bound)
    missing = [name for name in names[:count] if name not in bound]
    missing = missing or [name for name in names[count:total] if name not in bound]
    if missing:
        raise _error(function, _too_few(missing, missing[0] in names[:count]))
    return bound


def _too_many(function: FunctionValue, given: int) -> str:
    count, optional = function.code.co_argcount, len(function.defaults)
    takes = f"from {count - optional} to {count}" if optional else str(count)
    plural = "" if count == 1 and not optional else "s"
    was = "was" if given == 1 else "were"
    return f"takes {takes} positional argument{plural} but {given} {was} given"


def _too_few(missing: list[str], positional: bool) -> str:
    """CPython names the positional ones first, and only them if there are any."""
    kind, names = "positional" if positional else "keyword-only", [repr(name) for name in missing]
    if len(names) > 2:
        names = [f"{', '.join(names[:-1])},", names[-1]]
    return f"missing {len(missing)} required {kind} argument{'s' if len(missing) > 1 else ''}: {' and '.join(names)}"  # fmt: skip


def _bind_keywords(
    function: FunctionValue, bound: dict[str, Value], kwargs: dict[str, Value], total: int
) -> dict[str, Value]:
    code = function.code
    extra: dict[str, Value] = {}
    accepted = code.co_varnames[code.co_posonlyargcount : total]
    for name, value in kwargs.items():
        if name not in accepted:
            extra[name] = value
        elif name in bound:
            raise _error(function, f"got multiple values for argument {name!r}")
        else:
            bound[name] = value
    return extra


def _bind_defaults(function: FunctionValue, bound: dict[str, Value]) -> None:
    code = function.code
    first = code.co_argcount - len(function.defaults)
    for name, value in zip(code.co_varnames[first : code.co_argcount], function.defaults):
        bound.setdefault(name, value)
    for name, value in function.kwdefaults.items():
        bound.setdefault(name, value)


def _error(function: FunctionValue, text: str) -> Exception:
    return raise_real(TypeError(f"{function.code.co_qualname}() {text}"))
