"""Where a value of the traced program is found again on a later call.

In: the steps by which the interpreter reached an object (argument `x`, attribute `weight`, item 3).
Out: a `Source` with two renderings of the same path, and the walk itself:

    expr()     text that is valid in the replacement function's body:  net.layers[3]
    guard()    text over the frame's locals `L` and globals `G`:       L['net'].layers[3]
    get(L, G)  the object

One table, `_KINDS`, says for each kind how the step is written and how it is taken.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "GLOBALS", "Formula", "Source", "builtin", "constant", "glob", "literal", "local", "module",
]  # fmt: skip

NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Source:
    """One step of a path. `name` is the step's own part (a name, key, index), `base` what it starts from.

    A key that has no literal form (a dtype, an object) is given as a Source itself, normally
    `constant(name)`. Sources are equal when their paths are.
    """

    kind: str
    name: Any = None
    base: Source | None = None

    def expr(self, hidden: frozenset[str] = NO_NAMES) -> str:
        """Python text valid where the frame's locals are bare names.

        `hidden` are the names that the surrounding function binds: a global or builtin among them
        is reached past the local one. Raises ValueError for an argument that has no name in
        source (`.0` of a comprehension).
        """
        if self.base is not None:
            return _KINDS[self.kind].text(self.base.expr(hidden), _text_of(self.name, hidden))
        return _ROOT_EXPR[self.kind](self.name, hidden)

    def guard(self) -> str:
        """Python text over `L`, `G`, `builtins` and the names of injected objects."""
        if self.base is not None:
            return _KINDS[self.kind].text(self.base.guard(), _text_of(self.name, None))
        return _ROOT_GUARD[self.kind](self.name)

    def get(self, L: dict[str, Any], G: dict[str, Any]) -> Any:
        """The object, found in these locals and globals. Raises what the walk raises."""
        if self.base is not None:
            key = self.name.get(L, G) if isinstance(self.name, Source) else self.name
            return _KINDS[self.kind].take(self.base.get(L, G), key)
        return _ROOT_GET[self.kind](self.name, L, G)

    @property
    def root(self) -> Source:
        """The first step of the path: a local, a global, a builtin or an injected object."""
        return self if self.base is None else self.base.root

    def attr(self, name: str) -> Source:
        return Source("attr", name, self)

    def own_attr(self, name: str) -> Source:
        """An attribute as `object` finds it, past the class's own `__getattribute__`."""
        return Source("own_attr", name, self)

    def own_keys(self) -> Source:
        """The keys of a dict, past methods of its class."""
        return Source("own_keys", None, self)

    def item(self, key: Hashable) -> Source:
        """`base[key]`, for lists, tuples, dicts and module containers."""
        return Source("item", key, self)

    def cell_content(self) -> Source:
        """The content of a cell object."""
        return Source("cell_content", None, self)

    def closure_of(self, index: int) -> Source:
        """The content of a function's free variable number `index`."""
        return Source("closure_of", index, self)

    def default_of(self, which: int | str) -> Source:
        """A function's default: by position in `__defaults__`, or by keyword."""
        return Source("default_of", which, self)

    def global_of(self, name: str) -> Source:
        """A global of the module that another function was written in."""
        return Source("global_of", name, self)

    def type_of(self) -> Source:
        return Source("type_of", None, self)

    def size(self, dim: int) -> Source:
        """One size of a tensor."""
        return Source("size", dim, self)

    def stride(self, dim: int) -> Source:
        return Source("stride", dim, self)

    def reduced(self) -> Source:
        """`base.__reduce__()`: what an iterator runs over, and how far it is."""
        return Source("reduced", None, self)

    def dict_key(self, index: int) -> Source:
        """The key number `index` of a dict, in its order."""
        return Source("dict_key", index, self)

    def __str__(self) -> str:
        return self.guard()


@dataclass(frozen=True, slots=True)
class Formula:
    """Arithmetic over sources: the name of a source of kind "formula", whose value it computes.

    `template` has a `{}` for each part; a part that is no source is text.
    """

    template: str
    parts: tuple[Source | str, ...]

    def text(self, of: Callable[[Source], str]) -> str:
        texts = (part if isinstance(part, str) else of(part) for part in self.parts)
        return self.template.format(*texts)


def literal(number: complex) -> str:
    """A number as Python text that names nothing."""
    text = repr(number).replace("inf", "1e999").replace("nan", "(1e999 - 1e999)")
    return f"({text})" if text.startswith("-") else text


def local(name: str) -> Source:
    """An argument, or the content of a cell or free variable, of the frame."""
    return Source("local", name)


def glob(name: str) -> Source:
    """A global of the frame's own module."""
    return Source("global", name)


def builtin(name: str) -> Source:
    return Source("builtin", name)


def module(name: str) -> Source:
    """A module that is loaded, by its full name."""
    return Source("module", name)


def constant(name: str) -> Source:
    """An object that the compiler put under a global name (`Guards.inject` for guards)."""
    return Source("constant", name)


GLOBALS = Source("globals")  # the dict of globals itself, to guard that a name is absent


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one step is written after the text of its base, and how it is taken."""

    text: Callable[[str, str], str]
    take: Callable[[Any, Any], Any]


def _attr_text(base: str, key: str) -> str:
    name = key[1:-1]
    return f"{base}.{name}" if name.isidentifier() else f"getattr({base}, {key})"


def _default(function: Any, which: int | str) -> Any:
    return (
        function.__defaults__[which] if isinstance(which, int) else function.__kwdefaults__[which]
    )


def _default_text(base: str, key: str) -> str:
    return f"{base}.{'__defaults__' if key.lstrip('-').isdigit() else '__kwdefaults__'}[{key}]"


_KINDS: dict[str, _Kind] = {
    "attr": _Kind(_attr_text, getattr),
    "own_attr": _Kind(
        lambda base, key: f"object.__getattribute__({base}, {key})", object.__getattribute__
    ),
    "own_keys": _Kind(lambda base, _: f"dict.keys({base})", lambda base, _: dict.keys(base)),
    "dict_item": _Kind(
        lambda base, key: f"dict.__getitem__({base}, {key})",
        lambda base, key: dict.__getitem__(base, key),
    ),
    "list_item": _Kind(
        lambda base, key: f"list.__getitem__({base}, {key})",
        lambda base, key: list.__getitem__(base, key),
    ),
    "item": _Kind(lambda base, key: f"{base}[{key}]", lambda base, key: base[key]),
    "cell_content": _Kind(lambda base, _: f"{base}.cell_contents", lambda b, _: b.cell_contents),
    "closure_of": _Kind(
        lambda base, i: f"{base}.__closure__[{i}].cell_contents",
        lambda base, i: base.__closure__[i].cell_contents,
    ),
    "default_of": _Kind(_default_text, _default),
    "global_of": _Kind(
        lambda base, name: f"{base}.__globals__[{name}]", lambda b, name: b.__globals__[name]
    ),
    "type_of": _Kind(lambda base, _: f"type({base})", lambda base, _: type(base)),
    "size": _Kind(lambda base, i: f"{base}.size({i})", lambda base, i: base.size(i)),
    "stride": _Kind(lambda base, i: f"{base}.stride({i})", lambda base, i: base.stride(i)),
    "reduced": _Kind(lambda base, _: f"{base}.__reduce__()", lambda base, _: base.__reduce__()),
    "dict_key": _Kind(lambda base, i: f"list({base})[{i}]", lambda base, i: list(base)[i]),
}


def _bare(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(f"the argument {name!r} has no name in source text")
    return name


def _global_text(name: str, hidden: frozenset[str]) -> str:
    if name not in hidden and name.isidentifier():
        return name
    reach = "globals" if "globals" not in hidden else "__import__('builtins').globals"
    return f"{reach}()[{name!r}]"


def _builtin_text(name: str, hidden: frozenset[str]) -> str:
    return name if name not in hidden else f"__import__('builtins').{name}"


_ROOT_EXPR: dict[str, Callable[[Any, frozenset[str]], str]] = {
    "local": lambda name, _: _bare(name),
    "global": _global_text,
    "builtin": _builtin_text,
    "module": lambda name, _: f"__import__('sys').modules[{name!r}]",
    "constant": lambda name, _: str(name),
    "globals": lambda _, hidden: _builtin_text("globals", hidden) + "()",
    "formula": lambda formula, hidden: formula.text(lambda source: source.expr(hidden)),
}
_ROOT_GUARD: dict[str, Callable[[Any], str]] = {
    "local": lambda name: f"L[{name!r}]",
    "global": lambda name: f"G[{name!r}]",
    "builtin": lambda name: f"builtins.{name}",
    "module": lambda name: f"builtins.__import__('sys').modules[{name!r}]",
    "constant": str,
    "globals": lambda _: "G",
    "formula": lambda formula: formula.text(Source.guard),
}
_ROOT_GET: dict[str, Callable[[Any, dict[str, Any], dict[str, Any]], Any]] = {
    "local": lambda name, L, G: L[name],
    "global": lambda name, L, G: G[name],
    "builtin": lambda name, L, G: getattr(builtins, name),
    "module": lambda name, L, G: sys.modules[name],
    "constant": lambda name, L, G: G[name],
    "globals": lambda name, L, G: G,
    "formula": lambda formula, L, G: eval(
        formula.text(Source.guard), {"L": L, "G": G, "builtins": builtins}
    ),
}


def _text_of(key: Any, hidden: frozenset[str] | None) -> str:
    """A key as text. `hidden` None means guard text. Raises TypeError when it has no literal form."""
    if isinstance(key, Source):
        return key.guard() if hidden is None else key.expr(hidden)
    if is_literal(key):
        return repr(key)
    raise TypeError(f"a {type(key).__name__} has no literal form: inject it and pass its Source")


def is_literal(value: Any) -> bool:
    """Does `repr` give back this very value, type included?"""
    if type(value) is tuple:
        return all(map(is_literal, value))
    if type(value) is float:
        return value == value and abs(value) != float("inf")
    return value is None or value is Ellipsis or type(value) in (int, str, bytes, bool)
