"""The closed list of guard kinds: one row says how a condition is checked, shown and explained.

In: a `Fact`. Out: the text of the condition that must hold again, the expected value as text, the
reason, and for a failed check the actual value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compiler_core.capture.guard_conditions import (
    Condition,
    check_callable,
    check_equals,
    check_has,
    check_identity,
    check_key,
    check_keys,
    check_length,
    check_other,
    check_state,
    check_tensor,
    check_type,
)
from compiler_core.capture.guard_facts import STATES, Fact
from compiler_core.capture.guard_predicates import tensor_oddity
from compiler_core.capture.guard_texts import (
    describe,
    describe_tensor,
    identity_text,
    key_list,
    length_text,
)

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of guard.

    check(text of the source, fact, inject) -> condition; expected(fact) -> text; actual(value now)
    -> text. `rank` orders the checks: 0 torch's state, 1 plain values, 2 tensors, 3 what needs them.
    """

    check: Condition
    expected: Callable[[Fact], str]
    explain: str
    rank: int = 1
    actual: Callable[[Any], str] = lambda value: describe(value)


KINDS: dict[str, Kind] = {
    **{
        name: Kind(check_state, lambda fact: describe(fact.value), explain, rank=0)
        for name, (_, _, explain) in STATES.items()
    },
    "type": Kind(
        check_type,
        lambda fact: describe(type(fact.value)),
        "the trace followed the methods of this type",
        actual=lambda value: describe(type(value)),
    ),
    "equals": Kind(
        check_equals, lambda fact: describe(fact.value), "the value was compiled in as a constant"
    ),
    "identity": Kind(
        check_identity,
        lambda fact: identity_text(fact.value),
        "the trace used what this very object does",
        actual=identity_text,
    ),
    "callable": Kind(
        check_callable,
        lambda fact: f"{describe(fact.value)} {getattr(fact.value, '__qualname__', '')}".strip(),
        "the body of this callable was traced into the graph",
        actual=lambda value: f"{describe(value)} {getattr(value, '__qualname__', '')}".strip(),
    ),
    "length": Kind(
        check_length,
        lambda fact: length_text(fact.value),
        "loops over the items were unrolled",
        actual=length_text,
    ),
    "keys": Kind(
        check_keys,
        lambda fact: key_list(fact.value),
        "the trace depends on the keys and their order",
        actual=key_list,
    ),
    "has_attr": Kind(
        check_has(""),
        lambda fact: f"has {fact.data['name']!r}",
        "the trace found this attribute",
        actual=lambda value: f"attributes {key_list(getattr(value, '__dict__', ()))}",
    ),
    "lacks_attr": Kind(
        check_has("not "),
        lambda fact: f"no {fact.data['name']!r}",
        "the trace used what an attribute of the instance would hide",
        actual=lambda value: f"attributes {key_list(getattr(value, '__dict__', ()))}",
    ),
    "has_key": Kind(
        check_key(""),
        lambda fact: f"has {fact.data['key']!r}",
        "the trace found this key",
        actual=lambda value: f"{len(value)} keys",
    ),
    "lacks_key": Kind(
        check_key("not "),
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
        check_other("{} is {}"),
        lambda fact: f"the same object as {fact.data['other'].guard()}",
        "two names led to one object, so the graph has one input for both",
        actual=identity_text,
    ),
    "different_object": Kind(
        check_other("{} is not {}"),
        lambda fact: f"another object than {fact.data['other'].guard()}",
        "the trace compared the two by identity",
        actual=identity_text,
    ),
    "tensor": Kind(
        check_tensor,
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
        check_other("storages_apart({}, {})"),
        lambda fact: f"shares no memory with {fact.data['other'].guard()}",
        "a write to one input must not be seen through the other",
        rank=3,
        actual=lambda value: f"memory at {value.data_ptr():#x}",
    ),
    "alias": Kind(
        check_other("same_storage({}, {})"),
        lambda fact: f"shares memory with {fact.data['other'].guard()}",
        "the write runs in eager because the two share memory",
        rank=3,
        actual=lambda value: f"memory at {value.data_ptr():#x}",
    ),
    "oddity": Kind(
        lambda text, fact, inject: f"tensor_oddity({text}) == {tensor_oddity(fact.value)!r}",
        lambda fact: f"a tensor {tensor_oddity(fact.value)}",
        "such a tensor is no input of a graph",
        actual=lambda value: f"a tensor {tensor_oddity(value)}".strip(),
    ),
    "shape": Kind(
        lambda text, fact, inject: str(fact.data["text"]),
        lambda fact: "true",
        "a symbolic size was assumed to satisfy this",
        rank=3,
    ),
}
