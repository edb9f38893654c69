"""Values as Python expressions of the replacement function.

In: values alive at the end of the graph. Out: expressions, and the statements that must stand
before them. An object is built once (identity), an outside object is reached by its source, a
tensor of the graph is one of its outputs.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from compiler_core.capture.breaks import NOT_REBUILT, Break, CannotCapture
from compiler_core.capture.render_objects import RENDERERS, builtin_name
from compiler_core.capture.sources import Source, is_literal
from compiler_core.capture.symbolic import NoForm, text_of
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.constant import Constant
from compiler_core.capture.values.functions import Cell, FunctionValue
from compiler_core.capture.values.iterators import GeneratorValue
from compiler_core.capture.values.tensor import SymbolicNumber, TensorValue

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["NotRenderable", "Renderer"]


def _is_plain(real: slice | range) -> bool:
    return all(is_literal(part) for part in (real.start, real.stop, real.step))


def _is_wrapped(text: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


class NotRenderable(Exception):
    """A value that has no code. `step` is the outer step that made it, where a break would help."""

    def __init__(self, value: Value, step: int | None = None):
        self.value, self.step = value, step
        super().__init__(value.describe())


class Renderer:
    """Collects statements: `loads` in front of the graph call, `builds` behind it."""

    def __init__(self, trace: Trace, taken: frozenset[str], cells: dict[str, Cell], mutates: bool):
        self.trace, self.taken, self.mutates = trace, set(taken), mutates
        self.hidden = taken
        self.cells = {id(cell): name for name, cell in cells.items()}
        self.loads: list[str] = []
        self.builds: list[str] = []
        self.outputs: list[fx.Node] = []
        self.output_names: list[str] = []
        self.uses_cells = False
        self.to_fill: list[Cell] = []  # cells made bare, see `_function`
        self._memo: dict[int, str] = {}
        self._keep: list[Value] = []
        self._loaded: dict[Source, str] = {}
        self._open: set[int] = set()

    # ------------------------------------------------------------------ names

    def fresh(self, stem: str) -> str:
        """A local name that nothing else in the function has."""
        name, number = stem, 1
        view = self.trace.view
        while not name.isidentifier() or any(
            name in names for names in (self.taken, view.globals, view.builtins)
        ):
            number += 1
            name = f"{stem}_{number}" if stem.isidentifier() else f"value_{number}"
        self.taken.add(name)
        return name

    def inject(self, real: Any, hint: str) -> str:
        return self.trace.inject(real, hint).expr()

    def build(self, value: Value, text: str, stem: str) -> str:
        """Make an object in a statement of its own and remember its name."""
        name = self.fresh(stem)
        self.builds.append(f"{name} = {text}")
        self.remember(value, name)
        return name

    def remember(self, value: Value, text: str) -> None:
        self._memo[id(value)] = text
        self._keep.append(value)

    # ------------------------------------------------------------------ expressions

    def __call__(self, value: Value) -> str:
        """The expression of a value. Raises NotRenderable, Break."""
        if isinstance(value, Lazy):
            if value.resolved is None and value.source is not None:
                return self.source(value.source)
            value = self.trace.look(value)
        if id(value) in self._memo:
            return self._memo[id(value)]
        if isinstance(value, Constant):
            return self._constant(value)
        if value.source is not None and not isinstance(value, FunctionValue):
            return self.source(value.source)
        if isinstance(value, TensorValue):
            return self._output(value)
        if id(value) in self._open:
            raise Break(NOT_REBUILT, f"{value.describe()}, which contains itself")
        self._open.add(id(value))
        try:
            return self._render(value)
        finally:
            self._open.discard(id(value))

    def _render(self, value: Value) -> str:
        if isinstance(value, GeneratorValue) and value.state != "closed":
            raise NotRenderable(value, value.birth)
        renderer: Callable[[Renderer, Any], str] | None = RENDERERS.get(type(value))
        if renderer is None:
            raise NotRenderable(value)
        return renderer(self, value)

    def source(self, source: Source) -> str:
        """The text of a source; read before the graph when something may change it afterwards."""
        try:
            text = source.expr(self.hidden)
        except (ValueError, TypeError) as error:
            raise CannotCapture(str(error)) from None
        if not self.mutates or self._is_fixed(source):
            return text
        if source not in self._loaded:
            name = self.fresh(source.name if isinstance(source.name, str) else "value")
            self._loaded[source] = name
            self.loads.append(f"{name} = {text}")
        return self._loaded[source]

    def _is_fixed(self, source: Source) -> bool:
        """Whether no statement of the replacement can change what the text means."""
        is_argument = source.kind == "local" and source.name not in self.cells.values()
        return is_argument or source.kind in ("constant", "builtin")

    def _constant(self, value: Constant) -> str:
        if is_literal(value.real):
            return repr(value.real)
        if isinstance(value.real, (slice, range)) and _is_plain(value.real):
            kind = type(value.real)
            return repr(value.real).replace(kind.__name__, builtin_name(self, kind), 1)
        if isinstance(value.real, torch.dtype):
            return self._torch_name(value.real)
        return self.inject(value.real, type(value.real).__name__)

    def _torch_name(self, real: Any) -> str:
        """`torch.float32`, if the frame's module knows torch by that name."""
        if self.trace.view.globals.get("torch") is torch and "torch" not in self.hidden:
            return repr(real)
        return self.inject(real, str(real).rpartition(".")[2])

    def _output(self, value: TensorValue) -> str:
        name = self.fresh(value.node.name)
        self.outputs.append(value.node)
        self.output_names.append(name)
        self.remember(value, name)
        return name

    def number(self, value: SymbolicNumber) -> str:
        """A symbolic number from the sizes of the inputs."""
        places, numbers = self.trace.builder.sizes.places, self.trace.builder.sizes.numbers

        def size(symbol: Any) -> str:
            if symbol in numbers:
                return self.source(numbers[symbol][0])
            node, dim, _ = places[symbol]
            entry = next(e for e in self.trace.builder.inputs if e.first_node is node)
            return f"{self.source(entry.source)}.shape[{dim}]"

        try:
            text = text_of(value.real.node.expr, size)
        except NoForm:
            return self._constant(Constant(value.python_type()(value.real)))
        return text[1:-1] if text.startswith("(") and _is_wrapped(text) else text

    # ------------------------------------------------------------------ cells

    def is_known(self, value: Value) -> bool:
        return id(value) in self._memo

    def cell(self, cell: Cell) -> str:
        """An expression for the cell object itself."""
        if id(cell) in self.cells:
            self.uses_cells = True
            return f"(lambda: {self.cells[id(cell)]}).__closure__[0]"
        if id(cell) in self._memo:
            return self._memo[id(cell)]
        if cell.source is not None:
            return self.source(cell.source)
        make = self.inject(types.CellType, "CellType")
        name = self.build(cell, f"{make}()", "cell")
        if cell.content is not None:
            self.builds.append(f"{name}.cell_contents = {self(cell.content)}")
        return name
