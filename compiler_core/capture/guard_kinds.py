"""The closed list of guard kinds: one row says how a condition is checked, shown and explained.

In: a `Fact`, a value seen at capture and where it was found. Out: the text of the condition that
must hold again, the expected value as text, and for a failed check the actual one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch

from compiler_core.capture.guard_predicates import (
    autocast_state,
    callable_form,
    is_constant,
    matmul_precision,
    reference,
    torch_function_state,
)
from compiler_core.capture.sources import Source, is_literal

__all__ = ["KINDS", "STATES", "Fact", "Inject", "Kind", "describe", "describe_tensor"]

Inject = Callable[[Any, str], str]  # object, hint -> the name it has in the check's namespace


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Something that the trace relied on: what was found at `source` when it was made."""

    kind: str
    source: Source | None
    value: Any
    line: str = ""
    reason: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    made: dict[Callable[[Any], Any], Any] = field(default_factory=dict)

    def once(self, make: Callable[[Any], Any]) -> Any:
        """`make(value)`, the same object each time, so that it is injected under one name."""
        if make not in self.made:
            self.made[make] = make(self.value)
        return self.made[make]

    @property
    def place(self) -> str:
        """The guarded expression as text, with its whole path."""
        if self.kind in STATES:
            return STATES[self.kind][0]
        if self.kind == "distinct":
            return f"({', '.join(source.guard() for source in self.value)})"
        return self.source.guard() if self.source is not None else str(self.data["text"])

    @property
    def dynamic(self) -> tuple[int, ...]:
        return tuple(self.data.get("dynamic", ()))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of guard.

    check(text of the source, fact, inject) -> condition; expected(fact) -> text; actual(value now)
    -> text. `rank` orders the checks: 0 torch's state, 1 plain values, 2 tensors, 3 what needs them.
    """

    check: Callable[[str, Fact, Inject], str]
    expected: Callable[[Fact], str]
    explain: str
    rank: int = 1
    actual: Callable[[Any], str] = lambda value: describe(value)


# ------------------------------------------------------------------------------ values as text


def describe(value: Any) -> str:
    """A value in at most a line: constants in full, tensors by their properties, objects by type."""
    if isinstance(value, torch.Tensor):
        return describe_tensor(value)
    if is_constant(value):
        text = repr(value)
        return text if len(text) <= 120 else text[:117] + "..."
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".removeprefix("builtins.")
    return f"{describe(type(value))} object"


def describe_tensor(value: Any, dynamic: tuple[int, ...] = ()) -> str:
    """`Parameter float32 [2, *] strides [4, 1] cpu requires_grad`; `*` is a dimension left open."""
    if not isinstance(value, torch.Tensor):
        return describe(value)
    sizes = ", ".join("*" if i in dynamic else str(n) for i, n in enumerate(value.shape))
    strides = ""
    if value.layout == torch.strided:
        strides = f" strides [{', '.join(map(str, value.stride()))}]"
    grad = " requires_grad" if value.requires_grad else ""
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{type(value).__name__} {dtype} [{sizes}]{strides} {value.device}{grad}"


def _identity_text(value: Any) -> str:
    return f"{describe(type(value))} at {id(value):#x}"


def _length(value: Any) -> str:
    return str(value if isinstance(value, int) else len(value))


def _keys(value: Any) -> str:
    return "[" + ", ".join(describe(key) for key in value) + "]"


# ------------------------------------------------------------------------------ checks as text


def _type_name(kind: type, inject: Inject) -> str:
    is_plain = kind.__module__ == "builtins" and kind.__name__ in _BUILTIN_TYPES
    return kind.__name__ if is_plain else inject(kind, kind.__name__)


_BUILTIN_TYPES = frozenset(
    ("int", "float", "complex", "bool", "str", "bytes", "list", "tuple", "dict", "set", "frozenset",
     "slice", "range", "type", "object")
)  # fmt: skip


def _check_type(text: str, fact: Fact, inject: Inject) -> str:
    return f"type({text}) is {_type_name(type(fact.value), inject)}"


def _check_equals(text: str, fact: Fact, inject: Inject) -> str:
    value = fact.value
    if value is None or value is ... or isinstance(value, bool):
        return f"{text} is {value!r}"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return f"{text} is {value!r}"
    if isinstance(value, (enum.Enum, type)) or value is NotImplemented:
        return f"{text} is {inject(value, getattr(value, 'name', type(value).__name__))}"
    if not is_constant(value):
        raise TypeError(f"{describe(value)} is no constant: guard its identity or its parts")
    if type(value) in (float, complex):
        exact = is_literal(value) and value != 0
        compare = f"{text} == {value!r}" if exact else f"repr({text}) == {repr(value)!r}"
        return f"type({text}) is {type(value).__name__} and {compare}"
    if type(value) in (int, str, bytes) and len(repr(value)) <= 200:
        return f"type({text}) is {type(value).__name__} and {text} == {value!r}"
    return f"same_constant({text}, {inject(value, type(value).__name__)})"


def _check_identity(text: str, fact: Fact, inject: Inject) -> str:
    if fact.value is None:
        return f"{text} is None"
    name = getattr(fact.value, "__name__", type(fact.value).__name__)
    # A dead weak reference gives None, which must not match a None found at the source.
    return f"{text} is not None and {text} is {inject(fact.once(reference), name)}()"


def _check_callable(text: str, fact: Fact, inject: Inject) -> str:
    name = getattr(fact.value, "__name__", type(fact.value).__name__)
    contents = fact.data.get("contents", True)
    if not contents and hasattr(fact.value, "__code__"):
        code = inject(fact.value.__code__, f"code_{name}")
        return f"getattr({text}, '__code__', None) is {code}"
    return f"{inject(fact.once(callable_form), f'form_{name}')}.matches({text}, {contents})"


def _check_keys(text: str, fact: Fact, inject: Inject) -> str:
    keys = fact.once(tuple)
    if len(keys) <= 12 and all(type(key) is str for key in keys):
        return f"[*{text}] == {list(keys)!r}"
    return f"same_keys({text}, {inject(keys, 'keys')})"


def _check_has(negate: str) -> Callable[[str, Fact, Inject], str]:
    def check(text: str, fact: Fact, inject: Inject) -> str:
        name = fact.data["name"]
        if fact.data.get("where", "instance") == "anywhere":
            return f"{negate}hasattr({text}, {name!r})"
        return f"{name!r} {negate}in {text}.__dict__"

    return check


def _check_key(negate: str) -> Callable[[str, Fact, Inject], str]:
    def check(text: str, fact: Fact, inject: Inject) -> str:
        key = fact.data["key"]
        if isinstance(key, Source):
            return f"{key.guard()} {negate}in {text}"
        return f"{repr(key) if is_literal(key) else inject(key, 'key')} {negate}in {text}"

    return check


def _check_other(form: str) -> Callable[[str, Fact, Inject], str]:
    return lambda text, fact, inject: form.format(text, fact.data["other"].guard())


def _check_tensor(text: str, fact: Fact, inject: Inject) -> str:
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
    order = sorted(range(value.dim()), key=lambda i: (value.stride(i), value.size(i)))
    for inner, dim in pairwise(order):
        follows = value.stride(dim) == value.size(inner) * value.stride(inner)
        if follows and (inner in dynamic or inner in found):
            found[dim] = inner
    return found


# ------------------------------------------------------------------------------ the tables

STATES: dict[str, tuple[str, Callable[[], Any], str]] = {
    "grad_mode": (
        "torch.is_grad_enabled()", torch.is_grad_enabled, "the graph was traced in this grad mode",
    ),
    "inference_mode": (
        "torch.is_inference_mode_enabled()", torch.is_inference_mode_enabled,
        "tensors made in inference mode have no autograd",
    ),
    "autocast": ("autocast_state()", autocast_state, "autocast changes the dtypes of operators"),
    "determinism": (
        "torch.are_deterministic_algorithms_enabled()", torch.are_deterministic_algorithms_enabled,
        "some operators are chosen by the determinism flag",
    ),
    "matmul_precision": (
        "matmul_precision()", matmul_precision, "the precision of matrix products was fixed at capture",
    ),
    "default_dtype": (
        "torch.get_default_dtype()", torch.get_default_dtype, "new tensors take the default dtype",
    ),
    "torch_function": (
        "torch_function_state()", torch_function_state,
        "a torch function mode sees every call of torch",
    ),
    "dispatch_modes": (
        "torch._C._len_torch_dispatch_stack()", torch._C._len_torch_dispatch_stack,
        "a dispatch mode sees every operator",
    ),
}  # fmt: skip

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


def _check_state(text: str, fact: Fact, inject: Inject) -> str:
    cheap = _CHEAP.get(fact.kind, lambda _: None)(fact.value)
    return cheap or _check_equals(text, fact, inject)


KINDS: dict[str, Kind] = {
    **{
        name: Kind(_check_state, lambda fact: describe(fact.value), explain, rank=0)
        for name, (_, _, explain) in STATES.items()
    },
    "type": Kind(
        _check_type,
        lambda fact: describe(type(fact.value)),
        "the trace followed the methods of this type",
        actual=lambda value: describe(type(value)),
    ),
    "equals": Kind(
        _check_equals, lambda fact: describe(fact.value), "the value was compiled in as a constant"
    ),
    "identity": Kind(
        _check_identity,
        lambda fact: _identity_text(fact.value),
        "the trace used what this very object does",
        actual=_identity_text,
    ),
    "callable": Kind(
        _check_callable,
        lambda fact: f"{describe(fact.value)} {getattr(fact.value, '__qualname__', '')}".strip(),
        "the body of this callable was traced into the graph",
        actual=lambda value: f"{describe(value)} {getattr(value, '__qualname__', '')}".strip(),
    ),
    "length": Kind(
        lambda text, fact, inject: f"len({text}) == {_length(fact.value)}",
        lambda fact: _length(fact.value),
        "loops over the items were unrolled",
        actual=_length,
    ),
    "keys": Kind(
        _check_keys,
        lambda fact: _keys(fact.value),
        "the trace depends on the keys and their order",
        actual=_keys,
    ),
    "has_attr": Kind(
        _check_has(""),
        lambda fact: f"has {fact.data['name']!r}",
        "the trace found this attribute",
        actual=lambda value: f"attributes {_keys(getattr(value, '__dict__', ()))}",
    ),
    "lacks_attr": Kind(
        _check_has("not "),
        lambda fact: f"no {fact.data['name']!r}",
        "the trace used what an attribute of the instance would hide",
        actual=lambda value: f"attributes {_keys(getattr(value, '__dict__', ()))}",
    ),
    "has_key": Kind(
        _check_key(""),
        lambda fact: f"has {fact.data['key']!r}",
        "the trace found this key",
        actual=lambda value: f"{len(value)} keys",
    ),
    "lacks_key": Kind(
        _check_key("not "),
        lambda fact: f"no {fact.data['key']!r}",
        "the trace took the way for an absent key",
        actual=lambda value: f"{len(value)} keys",
    ),
    "not_none": Kind(
        lambda text, fact, inject: f"{text} is not None",
        lambda fact: "not None",
        "the trace took the way for a value that is there",
    ),
    "training": Kind(
        lambda text, fact, inject: f"{text}.training is {bool(fact.value.training)}",
        lambda fact: f"training={fact.value.training}",
        "dropout and normalisation follow the training flag",
        actual=lambda value: f"training={getattr(value, 'training', None)}",
    ),
    "same_object": Kind(
        _check_other("{} is {}"),
        lambda fact: f"the same object as {fact.data['other'].guard()}",
        "two names led to one object, so the graph has one input for both",
        actual=_identity_text,
    ),
    "different_object": Kind(
        _check_other("{} is not {}"),
        lambda fact: f"another object than {fact.data['other'].guard()}",
        "the trace compared the two by identity",
        actual=_identity_text,
    ),
    "tensor": Kind(
        _check_tensor,
        lambda fact: describe_tensor(fact.value, fact.dynamic),
        "code is generated for these sizes, strides, dtype and device",
        rank=2,
        actual=describe_tensor,
    ),
    "distinct": Kind(
        lambda text, fact, inject: f"all_different({', '.join(s.guard() for s in fact.value)})",
        lambda fact: f"{len(fact.value)} different tensors",
        "each input of the graph was a tensor of its own",
        rank=2,
        actual=lambda values: f"{len(set(map(id, values)))} different tensors",
    ),
    "no_alias": Kind(
        _check_other("storages_apart({}, {})"),
        lambda fact: f"shares no memory with {fact.data['other'].guard()}",
        "a write to one input must not be seen through the other",
        rank=3,
        actual=lambda value: f"memory at {value.data_ptr():#x}",
    ),
    "shape": Kind(
        lambda text, fact, inject: str(fact.data["text"]),
        lambda fact: "true",
        "a symbolic size was assumed to satisfy this",
        rank=3,
    ),
}
