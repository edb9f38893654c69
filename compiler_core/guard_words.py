"""Guards in words: what must hold again for a compiled version to be used, as a person would say it.

In: the guard rows of a recorded version (plain data). Out: a sentence for each, and one for each group: all
that torch itself holds (grad mode, autocast, …: the same ten in every version), hooks of modules, builtins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

__all__ = ["STATE_WORDS", "Group", "guard_lines", "parted", "sentence", "spoken", "why"]

Row = Mapping[str, Any]


def _switch(name: str) -> Callable[[str], str]:
    return lambda expected: f"{name} {'on' if expected == 'True' else 'off'}"


def _level(name: str, none: str) -> Callable[[str], str]:
    return lambda expected: f"no {name}" if expected == none else f"{name} {expected}"


def _autocast(expected: str) -> str:
    on = re.findall(r"\('(\w+)', True, torch\.(\w+)\)", expected)
    return f"autocast on ({', '.join(map(' '.join, on))})" if on else "autocast off"


def _options(expected: str) -> str:
    return f"asked for by {expected}"


# kind of a guard on torch's own state: what its expected value says, in words
STATE_WORDS: dict[str, Callable[[str], str]] = {
    "grad_mode": _switch("grad mode"),
    "inference_mode": _switch("inference mode"),
    "autocast": _autocast,
    "default_dtype": lambda expected: f"default dtype {expected.removeprefix('torch.')}",
    "determinism": _switch("deterministic algorithms"),
    "matmul_precision": lambda expected: f"matmul precision {expected.strip(chr(39))}",
    "torch_function": _level("torch function mode", "(True,)"),
    "dispatch_modes": _level("dispatch mode", "0"),
    "forward_ad": _level("forward-mode level", "-1"),
    "request": _options,
}

_USUAL = {
    "inference mode off", "deterministic algorithms off", "matmul precision highest",
    "no torch function mode", "no dispatch mode", "no forward-mode level",
}  # fmt: skip

_PHRASES = {
    "type": "{} is a {}",
    "equals": "{} == {}",
    "identity": "{} is {}",
    "callable": "{} is {}",
    "same_object": "{} is {}",
    "different_object": "{} is {}",
    "length": "len({}) is {}",
    "keys": "{} has the keys {}",
    "shape": "{}",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Guards that say one thing together: `line` says it, `why` gives the reason."""

    line: str
    why: str
    rows: tuple[Row, ...]


def parted(guards: Iterable[Row]) -> tuple[list[Group], list[Row]]:
    """What is folded into one line each; and the other guards, in their order."""
    rows = list(guards)
    groups = [
        Group(line([*members]), why, tuple(members))
        for belongs, line, why in _GROUPS
        if len(members := [row for row in rows if belongs(row)]) > 1
    ]
    folded = {id(row) for group in groups for row in group.rows}
    return groups, [row for row in rows if id(row) not in folded]


def state_words(row: Row) -> str:
    """`grad mode on`."""
    return STATE_WORDS[row["kind"]](str(row["expected"]))


def state_line(states: Sequence[Row]) -> str:
    """`global state: grad mode on, autocast off, … (10)`: what is as it usually is, is only counted."""
    words = [state_words(row) for row in states]
    shown = [w for row, w in zip(states, words) if w not in _USUAL and row["kind"] != "request"]
    more = ["…"] if len(shown) < len(words) else []
    return f"global state: {', '.join([*shown, *more])} ({len(words)})"


def _hook_line(rows: Sequence[Row]) -> str:
    return f"modules: no hooks, no forward of an instance's own ({len(rows)})"


def _builtin_line(rows: Sequence[Row]) -> str:
    names = [str(row["expected"]).removeprefix("no ").strip("'") for row in rows]
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    return f"builtins are Python's own: {shown} ({len(names)})"


def _is_about_hooks(row: Row) -> bool:
    source, expected = str(row["source"]), str(row["expected"])
    if row["kind"] == "length":
        return source.endswith("_hooks") and expected == "0"
    return row["kind"] == "lacks_attr" and expected == "no 'forward'"


# which guards: how they are said together, and why they are there
_GROUPS: tuple[tuple[Callable[[Row], bool], Callable[[Sequence[Row]], str], str], ...] = (
    (lambda row: row["kind"] in STATE_WORDS, state_line, "these change what operators do"),
    (_is_about_hooks, _hook_line, "the code of their classes was traced"),
    (
        lambda row: row["kind"] == "lacks_key" and row["source"] == "G",
        _builtin_line,
        "a global of that name would hide it",
    ),
)


def sentence(row: Row) -> str:
    """`x: Tensor float32 [4, 4] strides [4, 1] cpu`: what is looked at, and what it must be."""
    if row["kind"] in STATE_WORDS:
        return state_words(row)
    phrase = _PHRASES.get(row["kind"], "{}: {}")
    return phrase.format(spoken(str(row["source"])), spoken(str(row["expected"])))


def why(row: Row) -> str:
    """`line 4 of model.py: it is an input of the graph`."""
    place = place_of(row)
    return f"{place}: {row['reason']}" if place else str(row["reason"])


def place_of(row: Row) -> str:
    """`line 4 of model.py`, or nothing."""
    file, _, line = str(row["line"]).rpartition(":")
    return f"line {line} of {PurePath(file).name}" if file else ""


def spoken(source: str) -> str:
    """A guarded expression as the program writes it: `x.weight` for `L['x'].weight`."""
    text = re.sub(r"\b[LG]\['__s(\d+)'\]", r"(value \1 in use at the break)", source)
    text = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", text)
    text = re.sub(r"^G$", "the globals", text)
    text = re.sub(r"\._modules\['(\w+)'\]", r"[\1]", text)
    return text[1:-1] if re.fullmatch(r"\([^()]*(\([^()]*\)[^()]*)*\)", text) else text


def guard_lines(guards: Iterable[Row]) -> list[tuple[str, str]]:
    """(what must hold, why) of each guard, groups as one."""
    groups, others = parted(guards)
    return [*((g.line, g.why) for g in groups), *((sentence(row), why(row)) for row in others)]
