"""Which sizes are symbolic: marks on tensors, and what changed between versions; guards on sizes.

In: a tensor and its source. Out: the dimensions that get a symbol. After the capture, and again after
the stages behind it, the ShapeEnv's guards become `shape` rows: readable conditions over `L['x'].size(0)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from compiler_core.capture.breaks import CannotCapture
from compiler_core.capture.sources import Source, literal
from compiler_core.capture.symbolic import NoForm, text_of

if TYPE_CHECKING:
    from compiler_core.capture.guards import Guards
    from compiler_core.capture.trace import Trace

__all__ = ["SYMBOLIC_NUMBER", "Hints", "SizeGuards", "size_guards"]

SYMBOLIC_NUMBER = "it is a symbolic number"  # the reason of such a type guard
_MARKS = ("_cutaway_dynamic", "_dynamo_dynamic_indices")
_STATIC = ("_cutaway_static", "_dynamo_static_indices")


@dataclass(slots=True)
class Hints:
    """Dimensions that differed from an earlier version: guard text of the source → dimensions."""

    changed: dict[str, frozenset[int]] = field(default_factory=dict)
    versions: int = 0  # of this frame, kept so far
    numbers: frozenset[str] = frozenset()  # guard texts of ints and floats that differed
    dynamic: bool | None = None  # what `compile` was told

    def is_symbolic(self, source: Source) -> bool:
        """Whether a number had another value in an earlier version."""
        return bool(self.numbers) and source.guard() in self.numbers

    def is_argument(self, real: Any, source: Source) -> bool:
        """Under `dynamic=True`: an int that is passed, and neither 0 nor 1."""
        return self.dynamic is True and source.kind == "local" and type(real) is int and real > 1

    def of(self, real: torch.Tensor, source: Source) -> tuple[int, ...]:
        """The symbolic dimensions of a tensor: marked ones, those that changed, all of them under
        `dynamic=True` (not of parameters). Sizes 0 and 1 stay plain, and so do dimensions marked static.

        NB: TorchDynamo gives equal sizes one symbol and guards that they stay equal ("duck sizing"); here each
        dimension has its own, and equality is guarded where an operator needs it.
        """
        if not real.dim():
            return ()
        wanted = {dim % real.dim() for dim in _marked(real, _MARKS)} | self._changing(real, source)
        fixed = {dim % real.dim() for dim in _marked(real, _STATIC)}
        return tuple(sorted(d for d in wanted - fixed if real.shape[d] >= 2))

    def _changing(self, real: torch.Tensor, source: Source) -> set[int]:
        if self.dynamic is True and not isinstance(real, torch.nn.Parameter):
            return set(range(real.dim()))
        return set(self.changed.get(source.guard(), ()))


def _marked(real: torch.Tensor, marks: tuple[str, ...]) -> set[int]:
    return set[int]().union(*(getattr(real, mark, ()) for mark in marks))


@dataclass(slots=True)
class SizeGuards:
    """The ShapeEnv's conditions as `shape` guards. Later stages ask about sizes too: add them again then."""

    shape_env: Any
    texts: dict[Any, str]  # symbol → guard text of the size or number
    floats: dict[Any, float]  # symbols of floats → what they are now
    lines: list[str] = field(default_factory=list)  # of the program, that asked the first ones
    done: int = 0

    def add(self, guards: Guards, line: str, reason: str = "a symbolic size was compared") -> None:
        """Guards for the conditions that are new. Raises CannotCapture for one without a text."""
        known, self.done = self.done, len(self.shape_env.guards)
        for number, condition in enumerate(self.shape_env.guards[known:], known):
            text = self._text(condition.expr)
            asked = self.lines[number] if number < len(self.lines) else line
            if text != "True":
                guards.add("shape", None, True, line=asked, reason=reason, text=text)

    def _text(self, condition: Any) -> str:
        try:
            return text_of(condition, self.texts.__getitem__)
        except (NoForm, KeyError) as error:
            if condition.free_symbols and condition.free_symbols <= self.floats.keys():
                return " and ".join(map(self._as_it_was, condition.free_symbols))
            raise CannotCapture(f"a condition on sizes that cannot be guarded: {error}") from None

    def _as_it_was(self, symbol: Any) -> str:
        """A float that was asked about in words that have no text is guarded to be what it was."""
        return f"{self.texts[symbol]} == {literal(self.floats[symbol])}"


def size_guards(trace: Trace) -> SizeGuards:
    """The conditions on the symbols of a trace, none of them added yet."""
    sizes = trace.builder.sizes
    inputs = {entry.first_node: entry for entry in trace.builder.inputs}
    texts = {symbol: inputs[n].source.size(dim).guard() for symbol, (n, dim, _) in sizes.places.items()}  # fmt: skip
    texts |= {symbol: source.guard() for symbol, (source, _) in sizes.numbers.items()}
    texts |= {symbol: source.guard() for symbol, (source, _) in sizes.floats.items()}
    hints = {symbol: hint for symbol, (_, hint) in sizes.floats.items()}
    return SizeGuards(trace.builder.shape_env, texts | sizes.strides, hints, trace.size_lines)
