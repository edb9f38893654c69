"""TTIR text as operations.

In: the text that Triton prints after its `ttir` stage (checked on 3.6.0 and 3.7.1). Out: a `Function`: arguments and a
tree of operations, each with its line in the text. The one idea: MLIR prints one operation on a line and
regions as indented lines, so a line reader with one regular expression for the head is a parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "Argument",
    "Function",
    "Operation",
    "Region",
    "Type",
    "operations_of",
    "parse",
    "without_locations",
]


@dataclass(frozen=True, slots=True)
class Type:
    """`shape` is () for a scalar. `element` is `f32`, `i1`, … or, for pointers, `!tt.ptr<f32>`."""

    shape: tuple[int, ...]
    element: str
    is_tensor: bool

    @property
    def pointee(self) -> str | None:
        """The element type that a pointer points to; None for numbers."""
        match = re.match(r"!tt\.ptr<([^,>]+)", self.element)
        return match.group(1) if match else None


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    type: Type
    divisibility: int = 1


@dataclass(slots=True)
class Region:
    arguments: tuple[str, ...] = ()
    body: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class Operation:
    """One operation. `text` is all after its name: operands, attributes, types."""

    line: int
    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    text: str
    types: tuple[Type, ...] = ()  # of the results
    regions: list[Region] = field(default_factory=list)

    def attribute(self, name: str) -> str | None:
        """The text of `name = value`, without a type."""
        match = re.search(rf"\b{name} = ([-\w.]+)", self.text)
        return match.group(1) if match else None

    @property
    def operand_types(self) -> tuple[Type, ...]:
        """The types before the arrow, for operations that are printed with one."""
        head = self.text.rpartition(" -> ")[0] or self.text
        return _types(head.rpartition(" : ")[2].strip("() "))


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    arguments: tuple[Argument, ...]
    body: list[Operation]


_HEAD = re.compile(r'(?:(%[\w.-]+(?::\d+)?(?:, %[\w.-]+(?::\d+)?)*) = )?"?([a-z][\w.]+)"?(.*)$')
_NAME = re.compile(r"%[\w.-]+(?:#\d+)?")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*?)(?:, #[^>]*)?>$")
_FUNCTION = re.compile(r"tt\.func public @(\w+)\((.*)\)")
_ARGUMENT = re.compile(r"(%[\w.-]+): ([^,{)]+)(\{[^}]*\})?")


def parse(text: str) -> Function:
    """The kernel of a module. Raises ValueError where the text has none."""
    lines = [without_locations(line).strip() for line in text.splitlines()]
    start = next((n for n, line in enumerate(lines) if line.startswith("tt.func public")), None)
    head = _FUNCTION.match(lines[start]) if start is not None else None
    if start is None or head is None:
        raise ValueError("no `tt.func public` in the TTIR text")
    arguments = tuple(
        Argument(name[1:], _type(kind), _divisibility(attributes))
        for name, kind, attributes in _ARGUMENT.findall(head.group(2))
    )
    region, _ = _Reader(lines, start + 1).region()
    return Function(head.group(1), arguments, region.body)


def operations_of(body: list[Operation]) -> Iterator[Operation]:
    """All operations, those in regions too."""
    for operation in body:
        yield operation
        for region in operation.regions:
            yield from operations_of(region.body)


def without_locations(line: str) -> str:
    """A line without its `loc(…)` parts."""
    parts, place = [], 0
    while (start := line.find("loc(", place)) >= 0:
        parts.append(line[place:start].rstrip())
        place = _closing(line, start + 3) + 1
    return "".join([*parts, line[place:]])


def _closing(line: str, opening: int) -> int:
    """The place of the bracket that closes the one at `opening`; strings are skipped."""
    depth, quoted = 0, False
    for place in range(opening, len(line)):
        sign = line[place]
        quoted ^= sign == '"'
        depth += 0 if quoted else (sign == "(") - (sign == ")")
        if depth == 0 and not quoted:
            return place
    return len(line)


class _Reader:
    """A cursor over lines."""

    def __init__(self, lines: list[str], place: int):
        self._lines, self._place = lines, place

    def region(self) -> tuple[Region, str]:
        """Operations up to the line that closes the region; that line too."""
        region = Region()
        while True:
            line = self._lines[self._place]
            self._place += 1
            if line.startswith("}"):
                return region, line
            if line.startswith("^bb"):
                region.arguments = tuple(re.findall(r"(%[\w.-]+):", line))
            elif line:
                region.body.append(self._operation(line))

    def _operation(self, line: str) -> Operation:
        head = _HEAD.match(line)
        if head is None:
            raise ValueError(f"TTIR line {self._place}: not an operation: {line}")
        results, name, rest = head.groups()
        number, regions = self._place, []
        while line.endswith("{"):
            region, line = self.region()
            regions.append(region)
            rest += " " + line.lstrip("} ")
        return Operation(
            number, name, _results(results or ""), tuple(_NAME.findall(rest)), rest,
            _result_types(rest, name), regions,
        )  # fmt: skip


def _results(text: str) -> tuple[str, ...]:
    """`%a:2` is the two results %a#0 and %a#1."""
    names: list[str] = []
    for part in filter(None, text.split(", ")):
        name, _, count = part.partition(":")
        names += [f"{name}#{k}" for k in range(int(count))] if count else [name]
    return tuple(names)


def _result_types(text: str, name: str) -> tuple[Type, ...]:
    if name.startswith("scf."):
        arrow = text.find(" -> ")
        return _types(text[arrow + 4 :].partition(") ")[0].strip("() {")) if arrow >= 0 else ()
    if " -> " in text:
        return _types(text.rpartition(" -> ")[2].strip("() "))
    if " : " not in text:
        return ()
    kinds = text.rpartition(" : ")[2]
    if " to " in kinds:
        return _types(kinds.rpartition(" to ")[2])
    types = _types(kinds)
    return types[-1:] if name == "arith.select" else types[:1]


def _types(text: str) -> tuple[Type, ...]:
    return tuple(_type(part) for part in _split(text))


def _type(text: str) -> Type:
    match = _TENSOR.match(text.strip())
    if match is None:
        return Type((), text.strip(), False)
    return Type(tuple(int(n) for n in match.group(1).split("x") if n), match.group(2), True)


def _split(text: str) -> list[str]:
    """At commas outside brackets."""
    parts, depth, current = [], 0, ""
    for sign in text:
        depth += (sign in "<([{") - (sign in ">)]}")
        if sign == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += sign
    return [part for part in [*parts, current] if part.strip()]


def _divisibility(attributes: str) -> int:
    match = re.search(r"tt\.divisibility = (\d+)", attributes)
    return int(match.group(1)) if match else 1
