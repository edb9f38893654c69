"""How each kind of value is written as Python: one row per kind.

In: the renderer and a value. Out: an expression. Containers and objects are built in statements of
their own; what is immutable is written in place.
"""

from __future__ import annotations

import collections
import functools
import itertools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.user_containers import container_base
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.containers import (
    DictValue,
    DictView,
    ListValue,
    SetValue,
    TupleValue,
)
from compiler_core.capture.values.functions import (
    BoundRule,
    Cell,
    FunctionValue,
    Getter,
    GradMode,
    MethodValue,
    Partial,
)
from compiler_core.capture.values.iterators import (
    Chained,
    CountIterator,
    EnumerateIterator,
    GeneratorValue,
    MapIterator,
    SequenceIterator,
    ZipIterator,
)
from compiler_core.capture.values.objects import Instance, ObjectValue, SuperValue
from compiler_core.capture.values.tensor import SymbolicNumber

if TYPE_CHECKING:
    from compiler_core.capture.render import Renderer

__all__ = ["RENDERERS", "builtin_name"]


def builtin_name(r: Renderer, real: Any) -> str:
    """A builtin by its name, unless the program hides it."""
    name: str = real.__name__
    view = r.trace.view
    is_hidden = name in r.hidden or name in view.globals or view.builtins.get(name) is not real
    return r.inject(real, name) if is_hidden else name


def _list(r: Renderer, value: ListValue) -> str:
    return r.build(value, f"[{', '.join(map(r, value.items))}]", "items")


def _tuple(r: Renderer, value: TupleValue) -> str:
    items = f"({''.join(f'{r(item)}, ' for item in value.items)})"
    if len(value.items) > 1:
        items = f"{items[:-3]})"
    if value.cls is tuple:
        return items
    if value.cls is slice:
        return f"{builtin_name(r, slice)}{items}"
    cls = r.inject(value.cls, value.cls.__name__)
    if value.cls is torch.Size or not value.cls.__flags__ & (1 << 9):
        return f"{cls}({items})"
    name = r.build(value, f"{builtin_name(r, tuple)}.__new__({cls}, {items})", "fields")
    _set_attributes(r, name, value.attributes)
    return name


def _set_attributes(r: Renderer, name: str, attributes: dict[str, Any]) -> None:
    for attribute, item in attributes.items():
        setter = builtin_name(r, object)
        r.builds.append(f"{setter}.__setattr__({name}, {attribute!r}, {r(item)})")


def _dict(r: Renderer, value: DictValue) -> str:
    if value.owner is not None:
        return f"{r(value.owner)}.__dict__"
    pairs = f"{{{', '.join(f'{r(k)}: {r(v)}' for k, v in value.items.values())}}}"
    if value.cls is dict:
        return r.build(value, pairs, "entries")
    cls = r.inject(value.cls, value.cls.__name__)
    if value.cls is collections.defaultdict:
        factory = r(value.factory) if value.factory else "None"
        return r.build(value, f"{cls}({factory}, {pairs})", "entries")
    return r.build(value, f"{cls}({pairs})", "entries")


def _dict_view(r: Renderer, value: DictView) -> str:
    if value.owner is not None:
        return f"{builtin_name(r, dict)}.{value.kind}({r(value.owner)})"
    return f"{r(value.of)}.{value.kind}()"


def _set(r: Renderer, value: SetValue) -> str:
    ordered = value.in_order()
    items = ", ".join(map(r, value.items.values() if ordered is None else ordered))
    if value.cls is frozenset:
        return r.build(value, f"{builtin_name(r, frozenset)}([{items}])", "members")
    return r.build(value, f"{{{items}}}" if items else f"{builtin_name(r, set)}()", "members")


def _object(r: Renderer, value: ObjectValue) -> str:
    name = getattr(value.real, "__name__", None)
    if isinstance(name, str) and r.trace.view.builtins.get(name) is value.real:
        return builtin_name(r, value.real)
    return r.inject(value.real, getattr(value.real, "__name__", type(value.real).__name__))


#: `__traceback__` is the program's own; setting `__cause__` sets the other
_UNWRITTEN = ("__traceback__", "__suppress_context__")


def _instance(r: Renderer, value: Instance) -> str:
    cls = r.inject(value.cls, value.cls.__name__)
    stem = value.cls.__name__.lower()
    if value.args is not None:
        args = "".join(f", {r(arg)}" for arg in value.args)
        name = r.build(value, f"{cls}.__new__({cls}{args})", stem)
        attributes = {k: v for k, v in value.attributes.items() if k not in _UNWRITTEN}
        _set_attributes(r, name, attributes)
        return name
    is_own = value.cls is types.SimpleNamespace  # made in C, and by its own `__new__` alone
    base = value.cls if is_own else container_base(value.cls) or object
    new = builtin_name(r, base) if base.__module__ == "builtins" else r.inject(base, base.__name__)
    name = r.build(value, f"{new}.__new__({cls})", stem)
    _set_attributes(r, name, value.attributes)
    _fill(r, name, new, value.content)
    return name


def _fill(r: Renderer, name: str, base: str, content: Value | None) -> None:
    """The items of an instance of a class derived from a builtin container."""
    if isinstance(content, DictValue):
        if content.factory is not None:
            r.builds.append(f"{name}.default_factory = {r(content.factory)}")
        for key, item in content.items.values():
            r.builds.append(f"{base}.__setitem__({name}, {r(key)}, {r(item)})")
    elif isinstance(content, ListValue):
        r.builds.append(f"{base}.extend({name}, [{', '.join(map(r, content.items))}])")
    elif isinstance(content, SetValue):
        r.builds.append(f"{base}.update({name}, [{', '.join(map(r, content.items.values()))}])")


def _super(r: Renderer, value: SuperValue) -> str:
    return (
        f"{builtin_name(r, super)}({r.inject(value.after, value.after.__name__)}, {r(value.bound)})"
    )


# ------------------------------------------------------------------------------ functions


def _function(r: Renderer, value: FunctionValue) -> str:
    if value.source is not None:
        return r.source(value.source)
    make = r.inject(types.FunctionType, "FunctionType")
    code = r.inject(value.code, f"code_{value.code.co_name}")
    is_own = value.globals is r.trace.view.globals
    scope = f"{builtin_name(r, globals)}()" if is_own else r.inject(value.globals, "globals")
    defaults = f"({''.join(f'{r(d)}, ' for d in value.defaults)})" if value.defaults else "None"
    # The function comes before its cells are filled: a recursive one is in its own closure.
    cells = "".join(f"{_bare_cell(r, cell)}, " for cell in value.closure)
    closure = f"({cells})" if cells else "None"
    name = r.build(value, f"{make}({code}, {scope}, {value.name!r}, {defaults}, {closure})", _stem(value.name))  # fmt: skip
    if value.kwdefaults:
        pairs = ", ".join(f"{k!r}: {r(v)}" for k, v in value.kwdefaults.items())
        r.builds.append(f"{name}.__kwdefaults__ = {{{pairs}}}")
    for attribute, item in value.attributes.items():
        r.builds.append(f"{name}.{attribute} = {r(item)}")
    for cell in value.closure:
        _fill_cell(r, cell)
    return name


def _stem(name: str) -> str:
    return name if name.isidentifier() else "function"


def _bare_cell(r: Renderer, cell: Cell) -> str:
    """The cell object, its content still to come."""
    if id(cell) in r.cells or cell.source is not None or r.is_known(cell):
        return r.cell(cell)
    r.to_fill.append(cell)
    return r.build(cell, f"{r.inject(types.CellType, 'CellType')}()", "cell")


def _fill_cell(r: Renderer, cell: Cell) -> None:
    if cell in r.to_fill:
        r.to_fill.remove(cell)
        if cell.content is not None:
            r.builds.append(f"{r(cell)}.cell_contents = {r(cell.content)}")


def _method(r: Renderer, value: MethodValue) -> str:
    make = r.inject(types.MethodType, "MethodType")
    return r.build(value, f"{make}({r(value.function)}, {r(value.bound)})", "method")


def _bound_rule(r: Renderer, value: BoundRule) -> str:
    return f"{r(value.receiver)}.{value.name}"


def _partial(r: Renderer, value: Partial) -> str:
    parts = [r(value.function), *map(r, value.args)]
    parts += [f"{name}={r(item)}" for name, item in value.keywords.items()]
    return r.build(value, f"{r.inject(functools.partial, 'partial')}({', '.join(parts)})", "partial")  # fmt: skip


def _getter(r: Renderer, value: Getter) -> str:
    parts = [*map(r, value.args), *(f"{name}={r(item)}" for name, item in value.keywords.items())]
    cls = r.inject(value.cls, value.cls.__name__)
    return r.build(value, f"{cls}({', '.join(parts)})", value.cls.__name__)


def _grad_mode(r: Renderer, value: GradMode) -> str:
    """Made bare: the constructor of `set_grad_enabled` would change the mode once more."""
    cls = r.inject(value.cls, value.cls.__name__)
    name = r.build(value, f"{builtin_name(r, object)}.__new__({cls})", value.cls.__name__)
    previous = value.previous if value.previous is not None else False
    r.builds.append(f"{name}.prev, {name}.mode = {previous}, {value.mode}")
    return name


# ------------------------------------------------------------------------------ iterators


def _sequence_iterator(r: Renderer, value: SequenceIterator) -> str:
    make = builtin_name(r, iter)
    if value.done:
        return r.build(value, f"{make}(())", "iterator")
    if value.items is None and isinstance(value.of, (ListValue, TupleValue)) and not value.reverse:
        name = r.build(value, f"{make}({r(value.of)})", "iterator")
        if value.position:
            r.builds.append(f"{name}.__setstate__({value.position})")
        return name
    if isinstance(value.of, Constant) and isinstance(value.of.real, range) and not value.reverse:
        rest = Constant(value.of.real[value.position :])
        return r.build(value, f"{make}({r(rest)})", "iterator")
    items = list(value.items if value.items is not None else value.of.items)  # type: ignore[attr-defined]
    left = items[::-1][value.position :] if value.reverse else items[value.position :]
    return r.build(value, f"{make}({r(TupleValue(tuple(left)))})", "iterator")


def _zip(r: Renderer, value: ZipIterator) -> str:
    strict = ", strict=True" if value.strict else ""
    return r.build(
        value, f"{builtin_name(r, zip)}({', '.join(map(r, value.parts))}{strict})", "pairs"
    )


def _enumerate(r: Renderer, value: EnumerateIterator) -> str:
    return r.build(
        value, f"{builtin_name(r, enumerate)}({r(value.part)}, {value.count})", "numbered"
    )


def _map(r: Renderer, value: MapIterator) -> str:
    make = builtin_name(r, filter if value.is_filter else map)
    parts = ", ".join([r(value.function), *map(r, value.parts)])
    return r.build(value, f"{make}({parts})", "mapped")


def _count(r: Renderer, value: CountIterator) -> str:
    if value.step is not None:
        return r.build(value, f"{r.inject(itertools.count, 'count')}({r(value.start)}, {r(value.step)})", "count")  # fmt: skip
    left = f", {value.left}" if value.left is not None else ""
    return r.build(value, f"{r.inject(itertools.repeat, 'repeat')}({r(value.start)}{left})", "count")  # fmt: skip


def _chain(r: Renderer, value: Chained) -> str:
    parts = ", ".join(map(r, value.parts))
    return r.build(value, f"{r.inject(itertools.chain, 'chain')}({parts})", "chained")


def _closed_generator(r: Renderer, value: GeneratorValue) -> str:
    return r.build(value, f"{builtin_name(r, iter)}(())", "iterator")


def _symbolic(r: Renderer, value: SymbolicNumber) -> str:
    return r.number(value)


RENDERERS: dict[type, Callable[[Any, Any], str]] = {
    ListValue: _list,
    TupleValue: _tuple,
    DictValue: _dict,
    DictView: _dict_view,
    SetValue: _set,
    ObjectValue: _object,
    Instance: _instance,
    SuperValue: _super,
    FunctionValue: _function,
    MethodValue: _method,
    BoundRule: _bound_rule,
    Partial: _partial,
    Getter: _getter,
    GradMode: _grad_mode,
    Cell: lambda r, value: r.cell(value),
    SequenceIterator: _sequence_iterator,
    ZipIterator: _zip,
    EnumerateIterator: _enumerate,
    MapIterator: _map,
    CountIterator: _count,
    Chained: _chain,
    GeneratorValue: _closed_generator,
    SymbolicNumber: _symbolic,
}
