"""The state of one attempt at capturing a frame: everything that handlers and rules share.

In: the frame, the context, and the steps at which to break (learnt in earlier attempts). Out: what
the attempt collects: graph, guards, ledger of effects, instructions. A trace that breaks after it
changed something is thrown away and made again with one more forced break (`breaks.Restart`).
"""

from __future__ import annotations

import itertools
import linecache
import os
import re
from types import CodeType
from typing import TYPE_CHECKING, Any

from compiler_core.capture import global_names, resolve
from compiler_core.capture.breaks import Break
from compiler_core.capture.effects import Ledger
from compiler_core.capture.frames import FrameView
from compiler_core.capture.graph_builder import GraphBuilder
from compiler_core.capture.guards import Guards
from compiler_core.capture.sources import Source, constant
from compiler_core.capture.symbolic_floats import SymbolicFloat
from compiler_core.capture.values.base import Lazy, Value
from compiler_core.capture.values.functions import FunctionValue
from compiler_core.capture.values.iterators import GeneratorValue
from compiler_core.capture.values.tensor import SymbolicNumber
from compiler_core.options import Context
from compiler_core.provenance import Handle
from compiler_core.stages import Instruction

if TYPE_CHECKING:
    from compiler_core.capture.frame import SymbolicFrame

__all__ = ["Trace", "fresh_name", "user_name"]


_numbers = itertools.count()


def fresh_name(hint: str) -> str:
    """A global name that nothing else has: `__cc_<hint>_<number>`."""
    stem = re.sub(r"\W+", "_", str(hint)).strip("_")
    return f"__cc_{stem}_{next(_numbers)}"


def user_name(code: CodeType) -> str:
    """The name of the user's function; of a resume function, that of the original."""
    return re.sub(r"^__(resume|step|native)_at_\d+_", "", code.co_name)


class Trace:
    """One attempt. `step` counts instruction groups of the outermost frame, `changes` what cannot be undone."""

    def __init__(self, view: FrameView, context: Context, forced: dict[int, Break], dynamic: Any):
        self.view = view
        self.context = context
        self.forced = forced
        self.dynamic = dynamic  # hints about sizes that change: dynamic_shapes.Hints
        self.guards = Guards(view)
        self.builder = GraphBuilder(self)
        self.ledger = Ledger(self)
        self.frames: list[SymbolicFrame] = []
        self.known: dict[int, Value] = {}
        self.functions: dict[int, FunctionValue] = {}
        self.generators: list[GeneratorValue] = []
        self.keep: list[Any] = []  # objects whose ids are in `known`
        self._globals: dict[tuple[int, str], Value] = {}
        self._numbers: dict[Source, Value] = {}
        self._injected: dict[int, Source] = {}
        self.injected: dict[str, Any] = {}
        self.instructions: dict[Handle, Instruction] = {}
        self.step = 0
        self.changes = 0
        self.effects = 0
        self.instruction_count = 0
        self.breaks_overlap = False
        self.size_lines: list[str] = []  # for each question about sizes, the line that asked
        self._asking: tuple[str, int] | None = None

    def let_go(self) -> None:
        """Drop every object of the program: a trace is full of cycles, which only the collector frees."""
        vars(self.builder).clear()
        vars(self).clear()

    # ------------------------------------------------------------------ where we are

    @property
    def frame(self) -> SymbolicFrame:
        """The innermost frame."""
        return self.frames[-1]

    def where(self) -> str:
        """'file:line' of the instruction at hand, in the innermost frame."""
        if not self.frames:
            return self.view.where
        return f"{self.frame.code.co_filename}:{self.frame.line}"

    def note_questions(self) -> None:
        """In front of an instruction: what the one before asked about symbolic sizes was its line's."""
        new = len(self.builder.shape_env.guards) - len(self.size_lines)
        if new and self._asking is not None:
            self.size_lines += [f"{self._asking[0]}:{self._asking[1]}"] * new
        frame = self.frame
        self._asking = frame.code.co_filename, frame.line

    def is_under_handler(self) -> bool:
        """Whether an exception here could be seen by a handler or cleanup of the program."""
        return any(f.decoded.handler(f.current.offset) is not None for f in self.frames)

    def stack(self) -> tuple[str, ...]:
        """The user's frames, outermost first, 'file:line in name'."""
        return tuple(
            f"{os.path.basename(f.code.co_filename)}:{f.line} in {user_name(f.code)}"
            for f in self.frames
        )

    def stack_trace(self) -> str:
        """The same in the form of a Python traceback, for `node.meta["stack_trace"]`."""
        rows = []
        for frame in self.frames:
            text = linecache.getline(frame.code.co_filename, frame.line).strip()
            rows.append(f'  File "{frame.code.co_filename}", line {frame.line}, in {frame.code.co_name}\n    {text}\n')  # fmt: skip
        return "".join(rows)

    def origins(self) -> frozenset[Handle]:
        """Handles of the instruction at hand and of the calls that lead to it."""
        return frozenset(frame.note_instruction() for frame in self.frames)

    # ------------------------------------------------------------------ values and guards

    def look(self, value: Value) -> Value:
        """The value with its guard made, if it is one from outside that was not looked at."""
        if isinstance(value, Lazy):
            if value.resolved is None:
                value.resolved = resolve.resolve(self, value.real, value.source, value.trusted)
            return value.resolved
        return value

    def cached_global(self, frame: SymbolicFrame, name: str) -> Value:
        """A global that exists, the same value each time."""
        key = id(frame.globals), name
        if key not in self._globals:
            source = global_names.global_source(frame, name)
            self._globals[key] = Lazy(frame.globals[name], source=source, trusted=source is None)
        return self._globals[key]

    def inject(self, real: Any, hint: str) -> Source:
        """A source for an object that the frame has under no name: it is put among the globals."""
        if id(real) not in self._injected:
            name = fresh_name(hint)
            self.injected[name] = real
            self._injected[id(real)] = constant(name)
        return self._injected[id(real)]

    def guard(self, kind: str, source: Source | None, value: Any, reason: str, **data: Any) -> None:
        """Require on later calls what was true of `value` now. Nothing for what has no source."""
        if source is not None:
            self.guards.add(kind, source, value, line=self.where(), reason=reason, **data)

    def rely_on(self, cause: Break) -> None:
        """Guards of what made the graph end."""
        for kind, source, value, data in cause.because:
            if source is not None and source.root.kind == "constant":
                continue  # named by one attempt, and unchanging
            self.guard(kind, source, value, cause.kind.sentence, **data)

    def number(self, real: int | float, source: Source) -> Value:
        """The symbolic number of a source, one per source."""
        if source not in self._numbers:
            self._numbers[source] = self.builder.number(real, source) if isinstance(real, int) else SymbolicNumber(SymbolicFloat(self, real, source), source=source)  # fmt: skip
        return self._numbers[source]

    def touch(self, is_effect: bool = True) -> None:
        """Something was changed that a break cannot undo.

        is_effect: maybe an object or a variable of the program, not only the trace itself.
        """
        self.changes += 1
        self.effects += is_effect
