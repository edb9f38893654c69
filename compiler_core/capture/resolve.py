"""From a real object to a value, with the guards that this look at it needs.

In: an object and the source it was reached by. Out: one value per object (identity is kept), whose
parts stay lazy. One table, `_MODELS`, says for each type how it is modelled and guarded.
"""

from __future__ import annotations

import collections
import enum
import functools
import math
import operator
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.breaks import SIDE_EFFECT, Break
from compiler_core.capture.dynamic_shapes import SYMBOLIC_NUMBER, Hints
from compiler_core.capture.sources import Source, is_literal
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant, is_constant
from compiler_core.capture.values.containers import DictValue, ListValue, SetValue, TupleValue
from compiler_core.capture.values.functions import BoundRule, Cell, Getter, MethodValue, Partial
from compiler_core.capture.values.iterators import SequenceIterator
from compiler_core.capture.values.objects import ObjectValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace


__all__ = ["CACHED_FUNCTION", "constant_value", "is_library", "resolve"]

CACHED_FUNCTION: type = type(functools.lru_cache(len))  # what `functools.lru_cache` makes

_SHARED = (
    torch.Tensor,
    list,
    dict,
    set,
    torch.nn.Module,
)  # a second way to one of these is guarded


def resolve(trace: Trace, real: Any, source: Source | None, trusted: bool = False) -> Value:
    """The value of an outside object. `trusted` objects are taken as unchanging."""
    guarded = None if trusted else source
    if guarded is not None and _may_be_symbolic(real) and _is_symbolic(trace, real, guarded):
        trace.guard("type", guarded, real, SYMBOLIC_NUMBER)
        return trace.number(real, guarded)
    if is_constant(real):
        trace.guard("equals", guarded, real, "its value is compiled in")
        return Constant(real, source=source)
    known = trace.known.get(id(real))
    if known is None:
        known = trace.known[id(real)] = _model(trace, real, source, guarded)
        trace.keep.append(real)
    elif guarded is not None and known.source not in (None, source) and _is_shared(real):
        trace.guard("same_object", guarded, real, "both are one object", other=known.source)
    elif guarded is not None and known.source is None:
        known.source = source
    return known


def _is_symbolic(trace: Trace, real: Any, source: Source) -> bool:
    hints: Hints = trace.dynamic
    return hints.is_symbolic(source) or hints.is_argument(real, source)


def _may_be_symbolic(real: Any) -> bool:
    """Ints, and floats of which arithmetic tells something: the others are compiled in."""
    return type(real) is int or (type(real) is float and math.isfinite(real) and real != 0)


def _is_shared(real: Any) -> bool:
    return isinstance(real, _SHARED) or not isinstance(
        real, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, tuple)
    )


def _model(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    for kind, model in _MODELS:
        if isinstance(real, kind):
            value = model(trace, real, source, guarded)
            if value is not None:
                return value
    trace.guard("type", guarded, real, "attributes and methods are looked up on this type")
    return ObjectValue(real, source=source)


def _part(real: Any, source: Source | None, guarded: Source | None) -> Lazy:
    return Lazy(real, source=source, trusted=guarded is None)


Model = Callable[["Trace", Any, "Source | None", "Source | None"], "Value | None"]


def _tensor(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    return trace.builder.input(real, source, guarded is not None)


def _list(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value | None:
    if type(real) is not list:
        return None
    trace.guard("type", guarded, real, "it is used as a list")
    items = [_part(x, source and source.item(i), guarded) for i, x in enumerate(real)]
    value = ListValue(list[Value](items), outside=True, source=source)
    reason = "its items are used one by one"
    value.on_structure = lambda: trace.guard("length", guarded, real, reason)
    return value


def _tuple(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value | None:
    trace.guard("type", guarded, real, "it is used as a tuple")
    trace.guard("length", guarded, real, "its items are used one by one")
    items = tuple(_part(x, source and source.item(i), guarded) for i, x in enumerate(real))
    return TupleValue(items, type(real), source=source)


def _key_source(source: Source | None, key: Any, index: int) -> Any:
    """The key as `Source.item` takes it: itself if it has a literal form."""
    assert source is not None
    return key if is_literal(key) else source.dict_key(index)


def _dict(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value | None:
    if type(real) not in (dict, collections.OrderedDict, collections.defaultdict):
        return None
    trace.guard("type", guarded, real, "it is used as a dict")
    items: dict[Any, tuple[Value, Value]] = {}
    for index, (key, item) in enumerate(real.items()):
        item_source = source.item(_key_source(source, key, index)) if source else None
        key_value = _part(key, source.dict_key(index) if source else None, guarded)
        items[key] = (
            Constant(key) if is_constant(key) else key_value,
            _part(item, item_source, guarded),
        )
    value = DictValue(items, type(real), outside=True, source=source)
    keys = list(real)
    value.on_structure = lambda: trace.guard("keys", guarded, keys, "its keys or order are used")
    if type(real) is collections.defaultdict:
        value.factory = _part(real.default_factory, source and source.attr("default_factory"), guarded)  # fmt: skip
    return value


def _proxy(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value | None:
    if trace.ledger.has_class_writes():  # it may be of one of these
        raise Break(SIDE_EFFECT, "a read-only mapping is read after a write to a class")
    trace.guard("keys", guarded, list(real), "its keys are used")
    items = {
        key: (
            constant_value(key),
            _part(item, source.item(key) if source and is_literal(key) else None, guarded),
        )
        for key, item in real.items()
    }
    return DictValue(dict(items), type(real), outside=True, read_only=True, source=source)


def _set(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value | None:
    if type(real) not in (set, frozenset):
        return None
    trace.guard("type", guarded, real, "it is used as a set")
    trace.guard("keys", guarded, list(real), "its members are used")
    items = {
        member: Constant(member)
        if is_constant(member)
        else trace.look(_part(member, source and source.dict_key(i), guarded))
        for i, member in enumerate(real)
    }
    return SetValue(dict(items), type(real), outside=True, made=real, source=source)


def _by_value(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    trace.guard("equals", guarded, real, "the trace used what it is")
    return ObjectValue(real, source=source)


def _by_identity(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    trace.guard("identity", guarded, real, "the trace used what it does")
    return ObjectValue(real, source=source)


def _function(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    if not is_library(real):
        trace.guard("callable", guarded, real, "its code is traced", contents=False)
    else:
        trace.guard("identity", guarded, real, "a rule says what it does")
    return ObjectValue(real, source=source)


def _method(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    trace.guard("type", guarded, real, "it is called as a bound method")
    function = _part(real.__func__, source and source.attr("__func__"), guarded)
    bound = _part(real.__self__, source and source.attr("__self__"), guarded)
    return MethodValue(function, bound, source=source)


def _builtin(
    trace: Trace, real: Any, source: Source | None, guarded: Source | None
) -> Value | None:
    owner = getattr(real, "__self__", None)
    if owner is None or isinstance(owner, (types.ModuleType, type)) or _is_record(owner):
        return _by_identity(trace, real, source, guarded)
    trace.guard("type", guarded, real, "it is called as a bound method")
    name_source = source.attr("__name__") if source and guarded else None
    trace.guard("equals", name_source, real.__name__, "the method that is called")
    receiver = _part(owner, source and source.attr("__self__"), guarded)
    return BoundRule(receiver, real.__name__, source=source)


def _is_record(owner: Any) -> bool:
    """Functions that pybind11 binds have their own record for a receiver, no object of the program."""
    return type(owner).__module__.startswith("pybind11") or type(owner).__name__ == "PyCapsule"


def _partial(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    trace.guard("type", guarded, real, "it is called as a partial")
    trace.guard("length", source and guarded and source.attr("args"), real.args, "its arguments")
    trace.guard("keys", source and guarded and source.attr("keywords"), real.keywords, "its keywords")  # fmt: skip
    args = [
        _part(x, source and source.attr("args").item(i), guarded) for i, x in enumerate(real.args)
    ]
    keywords = {
        k: _part(x, source and source.attr("keywords").item(k), guarded)
        for k, x in real.keywords.items()
    }
    function = _part(real.func, source and source.attr("func"), guarded)
    return Partial(function, list[Value](args), dict[str, Value](keywords), source=source)


def _getter(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value | None:
    made_by, args = real.__reduce__()
    if made_by is not type(real):  # a methodcaller with keywords
        return None
    trace.guard("type", guarded, real, "it is called as a getter")
    parts = source.reduced() if source else None
    if guarded is not None and parts is not None:
        trace.guard("identity", parts.item(0), made_by, "it has no keywords")
        trace.guard("length", parts.item(1), args, "what it gets")
    return Getter(type(real), [_part(x, parts and parts.item(1).item(i), guarded) for i, x in enumerate(args)], source=source)  # fmt: skip


def _cell(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    try:
        content: Value | None = _part(real.cell_contents, source and source.cell_content(), guarded)
    except ValueError:
        content = None
    return Cell(content, outside=True, source=source)


_UNROLLED_VERSIONS = 3  # from then on a loop that breaks is stepped, not unrolled


def _iterator(
    trace: Trace, real: Any, source: Source | None, guarded: Source | None
) -> Value | None:
    """An iterator over a list, tuple or range that crossed a break, not consumed by looking."""
    if guarded is None or trace.dynamic.versions >= _UNROLLED_VERSIONS:
        return None
    state = real.__reduce__()
    trace.guard("type", guarded, real, "the loop goes on over it")
    trace.guard("length", guarded.reduced(), state, "whether the iterator is used up")
    if len(state) < 3:
        return SequenceIterator(TupleValue(()), done=True, outside=True, source=source)
    if type(state[1][0]) not in (list, tuple, range):
        return None
    over = trace.look(Lazy(state[1][0], source=guarded.reduced().item(1).item(0)))
    trace.guard("equals", guarded.reduced().item(2), state[2], "how far the loop is")
    items = list[Value](map(Constant, state[1][0])) if isinstance(state[1][0], range) else None
    return SequenceIterator(over, state[2] or 0, items=items, outside=True, source=source)


def _exception(trace: Trace, real: Any, source: Source | None, guarded: Source | None) -> Value:
    trace.guard("type", guarded, real, "its class decides which handler takes it")
    return ObjectValue(real, source=source)


_MODELS: tuple[tuple[type | tuple[type, ...], Model], ...] = (
    (torch.Tensor, _tensor),
    ((enum.Enum, type), _by_value),
    (list, _list),
    (tuple, _tuple),
    (dict, _dict),
    (types.MappingProxyType, _proxy),
    ((set, frozenset), _set),
    (types.FunctionType, _function),
    (types.MethodType, _method),
    ((types.BuiltinFunctionType, types.MethodWrapperType), _builtin),
    (
        (types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType,
         torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops._OpNamespace,
         CACHED_FUNCTION), _by_identity,
    ),
    (functools.partial, _partial),
    ((operator.itemgetter, operator.attrgetter, operator.methodcaller), _getter),
    (types.CellType, _cell),
    ((type(iter([])), type(iter(())), type(iter(range(0)))), _iterator),
    (BaseException, _exception),
)  # fmt: skip


def constant_value(real: Any) -> Value:
    """A value for an object that the code itself holds: constants, tuples of them, classes."""
    if is_constant(real):
        return Constant(real)
    if type(real) is tuple:
        return TupleValue(tuple(constant_value(item) for item in real))
    if type(real) is frozenset:
        return SetValue({item: constant_value(item) for item in real}, frozenset, made=real)
    if type(real) is torch.Size:
        return TupleValue(tuple(Constant(item) for item in real), torch.Size)
    return ObjectValue(real)


def is_library(function: Any) -> bool:
    """Whether an object belongs to torch or the standard library: taken as unchanging."""
    module = getattr(function, "__module__", None) or ""
    if isinstance(function, types.FunctionType):
        module = function.__globals__.get("__name__", module)
    root = module.partition(".")[0]
    return root == "torch" or (root in sys.stdlib_module_names and root != "__main__")
