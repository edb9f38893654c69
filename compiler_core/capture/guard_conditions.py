"""The condition of each kind of guard, as Python text.

In: the text of a source, the fact, and `inject`, which gives an object a name in the check's
namespace. Out: an expression that holds exactly when the fact still does.
"""

from __future__ import annotations

import collections
import enum
import types
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from compiler_core.capture.guard_facts import Fact
from compiler_core.capture.guard_predicates import callable_form, is_constant, reference
from compiler_core.capture.guard_texts import describe, length_text
from compiler_core.capture.sources import Source, is_literal

__all__ = [
    "Condition", "Inject", "check_callable", "check_equals", "check_has", "check_identity", "check_key",
    "check_keys", "check_length", "check_other", "check_state", "check_tensor", "check_type", "open_dimensions",
    "symbolic_strides",
]  # fmt: skip

Inject = Callable[[Any, str], str]  # object, hint -> the name it has in the check's namespace
Condition = Callable[[str, Fact, Inject], str]


def _type_name(kind: type, inject: Inject) -> str:
    is_plain = kind.__module__ == "builtins" and kind.__name__ in _BUILTIN_TYPES
    return kind.__name__ if is_plain else inject(kind, kind.__name__)


_BUILTIN_TYPES = frozenset(
    ("int", "float", "complex", "bool", "str", "bytes", "list", "tuple", "dict", "set", "frozenset",
     "slice", "range", "type", "object")
)  # fmt: skip


def check_type(text: str, fact: Fact, inject: Inject) -> str:
    return f"type({text}) is {_type_name(type(fact.value), inject)}"


def _stem(value: Any) -> str:
    """A readable name for a class, a code object, an enum member or NotImplemented."""
    name = value.name if isinstance(value, enum.Enum) else getattr(value, "__name__", None)
    name = f"code_{value.co_name}" if isinstance(value, types.CodeType) else name
    return name if isinstance(name, str) else type(value).__name__


def check_equals(text: str, fact: Fact, inject: Inject) -> str:
    value = fact.value
    if value is None or value is ... or isinstance(value, bool):
        return f"{text} is {value!r}"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return f"{text} is {value!r}"
    if isinstance(value, (enum.Enum, type, types.CodeType)) or value is NotImplemented:
        return f"{text} is {inject(value, _stem(value))}"
    if not is_constant(value):
        raise TypeError(f"{describe(value)} is no constant: guard its identity or its parts")
    if type(value) in (float, complex):
        exact = is_literal(value) and value != 0
        compare = f"{text} == {value!r}" if exact else f"repr({text}) == {repr(value)!r}"
        return f"type({text}) is {type(value).__name__} and {compare}"
    if type(value) in (int, str, bytes) and len(repr(value)) <= 200:
        return f"type({text}) is {type(value).__name__} and {text} == {value!r}"
    return f"same_constant({text}, {inject(value, type(value).__name__)})"


def check_identity(text: str, fact: Fact, inject: Inject) -> str:
    if fact.value is None:
        return f"{text} is None"
    name = getattr(fact.value, "__name__", type(fact.value).__name__)
    # A dead weak reference gives None, which must not match a None found at the source.
    return f"{text} is not None and {text} is {inject(fact.once(reference), name)}()"


def check_callable(text: str, fact: Fact, inject: Inject) -> str:
    name = getattr(fact.value, "__name__", type(fact.value).__name__)
    contents = fact.data.get("contents", True)
    if not contents and hasattr(fact.value, "__code__"):
        code = inject(fact.value.__code__, f"code_{name}")
        return f"getattr({text}, '__code__', None) is {code}"
    return f"{inject(fact.once(callable_form), f'form_{name}')}.matches({text}, {contents})"


def check_keys(text: str, fact: Fact, inject: Inject) -> str:
    keys = fact.once(tuple)
    if len(keys) <= 12 and all(type(key) is str for key in keys):
        return f"[*{text}] == {list(keys)!r}"
    return f"same_keys({text}, {inject(keys, 'keys')})"


def check_length(text: str, fact: Fact, inject: Inject) -> str:
    """An empty container of Python's own is false, which costs less to ask than its length."""
    if type(fact.value) in (list, tuple, dict, collections.OrderedDict) and not fact.value:
        return f"not {text}"
    return f"len({text}) == {length_text(fact.value)}"


def check_has(negate: str) -> Condition:
    def check(text: str, fact: Fact, inject: Inject) -> str:
        name = fact.data["name"]
        if fact.data.get("where", "instance") == "anywhere":
            return f"{negate}hasattr({text}, {name!r})"
        return f"{name!r} {negate}in {text}.__dict__"

    return check


def check_key(negate: str) -> Condition:
    def check(text: str, fact: Fact, inject: Inject) -> str:
        key = fact.data["key"]
        if isinstance(key, Source):
            return f"{key.guard()} {negate}in {text}"
        return f"{repr(key) if is_literal(key) else inject(key, 'key')} {negate}in {text}"

    return check


def check_other(form: str) -> Condition:
    return lambda text, fact, inject: form.format(text, fact.data["other"].guard())


def check_tensor(text: str, fact: Fact, inject: Inject) -> str:
    """One tensor alone, for the table; the check function takes all tensors in one call."""
    own = f"{inject(fact, 'tensor')}({text})"
    return " and ".join([own, *open_dimensions(text, fact)])


def open_dimensions(text: str, fact: Fact) -> list[str]:
    """Conditions on the dimensions that a tensor guard leaves open, and on the strides they decide."""
    lines = [f"{text}.size({dim}) >= 2" for dim in fact.dynamic]
    for dim, inner in symbolic_strides(fact.value, fact.dynamic).items():
        lines.append(f"{text}.stride({dim}) == {text}.size({inner}) * {text}.stride({inner})")
    return lines


def symbolic_strides(value: torch.Tensor, dynamic: tuple[int, ...]) -> dict[int, int]:
    """Dimensions whose stride follows from an open size: dim -> the dimension just inside it."""
    found: dict[int, int] = {}
    if not dynamic or value.layout != torch.strided:
        return found
    order = sorted(range(value.dim()), key=lambda i: (value.stride(i), value.size(i)))
    for inner, dim in pairwise(order):
        follows = value.stride(dim) == value.size(inner) * value.stride(inner)
        if follows and (inner in dynamic or inner in found):
            found[dim] = inner
    return found


# The same conditions in a cheaper form, for the state that nearly all programs run in.
_CHEAP: dict[str, Callable[[Any], str | None]] = {
    "autocast": lambda s: (
        None if any(on for _, on, _ in s[:-1]) else "not torch._C._is_any_autocast_enabled()"
    ),
    "torch_function": lambda s: (
        "torch._C._len_torch_function_stack() == 0 and torch._C._is_torch_function_enabled()"
        if s == (True,)
        else None
    ),
}


def check_state(text: str, fact: Fact, inject: Inject) -> str:
    if fact.kind == "request":  # compared by identity: equal requests are one object
        return f"ACTIVE.request is {inject(fact.value, 'request')}"
    cheap = _CHEAP.get(fact.kind, lambda _: None)(fact.value)
    return cheap or check_equals(text, fact, inject)
