"""One frame of the symbolic interpreter: stack, locals, cells, and where it is.

`pop` looks at what it takes (and so makes its guard); `pop_raw` moves a value without looking.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from compiler_core.capture.normalise import decode
from compiler_core.capture.values.base import Value
from compiler_core.capture.values.functions import Cell, FunctionValue
from compiler_core.capture.values.objects import Instance
from compiler_core.provenance import Handle
from compiler_core.stages import Instruction

if TYPE_CHECKING:
    from compiler_core.capture.trace import Trace

__all__ = ["Handled", "SymbolicFrame"]


class Handled:
    """An exception that is being handled, and the outer step at which it was raised."""

    __slots__ = ("step", "value")

    def __init__(self, value: Instance, step: int):
        self.value, self.step = value, step


class SymbolicFrame:
    """A code object under interpretation. `function` is None for the outermost frame."""

    def __init__(
        self,
        trace: Trace,
        code: types.CodeType,
        globals_: dict[str, Any],
        locals_: dict[str, Value],
        cells: dict[str, Cell],
        function: FunctionValue | None = None,
        path: str = "f0",
    ):
        self.trace, self.code, self.globals, self.function = trace, code, globals_, function
        self.decoded = decode(code)
        self.instructions = self.decoded.instructions
        self.locals, self.cells, self.path = locals_, cells, path
        self.stack: list[Value] = []
        self.handled: list[Handled] = []
        self.index = 0
        self.current: Instruction = self.instructions[0]
        self.outcome: Value | None = None
        self.yielded = False
        self.inlined = 0
        self.line = code.co_firstlineno

    # ------------------------------------------------------------------ stack

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.trace.look(self.stack.pop())

    def pop_raw(self) -> Value:
        return self.stack.pop()

    def pop_n(self, count: int) -> list[Value]:
        """The topmost values, lowest first, looked at."""
        return [self.trace.look(value) for value in self.pop_raw_n(count)]

    def pop_raw_n(self, count: int) -> list[Value]:
        if count == 0:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def top(self, depth: int = 1) -> Value:
        """The value `depth` slots from the top, looked at in place."""
        value = self.stack[-depth] = self.trace.look(self.stack[-depth])
        return value

    # ------------------------------------------------------------------ control

    def jump(self, offset: int) -> None:
        self.index = self.decoded.index_of_offset[offset]

    def advance_to(self, instruction: Instruction) -> None:
        """Make an instruction the one at hand."""
        self.current = instruction
        if instruction.span is not None:
            self.line = instruction.span.line

    @property
    def handle(self) -> Handle:
        return f"instr:{self.path}:{self.current.offset}"

    def note_instruction(self) -> Handle:
        """The handle of the instruction at hand, entered in the trace's table."""
        self.trace.instructions.setdefault(self.handle, self.current)
        return self.handle

    def next_path(self) -> str:
        """The path of the next frame that is inlined here."""
        self.inlined += 1
        return f"{self.path}.{self.inlined}"
