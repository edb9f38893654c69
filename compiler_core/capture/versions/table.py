"""The form of a version table: which canonical operations an opcode stands for.

In: nothing; this is vocabulary. `versions/py3xx.py` are written in it, `normalise.py` reads it.
A row maps an opcode to the steps it expands to; each step names its operation, how its argument is
read from the instruction (`normalise.ARGUMENTS`), and when it applies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Row", "Step", "Version", "steps"]


@dataclass(frozen=True, slots=True)
class Step:
    """One canonical operation. `when` "low" keeps the step only if the argument's lowest bit is set."""

    op: str
    argument: str = "none"
    when: str = "always"
    value: object = None  # the argument itself, for `argument="fixed"`


Row = tuple[Step, ...]


def steps(*texts: str) -> Row:
    """A row from short texts: `steps("LOAD_ATTR name", "PUSH_NULL ?low")`."""
    return tuple(_step(*text.split()) for text in texts)


def _step(op: str, *rest: str) -> Step:
    step = Step(op)
    for word in rest:
        if word.startswith("?"):
            step = replace(step, when=word[1:])
        elif word.lstrip("-").isdigit():
            step = replace(step, argument="fixed", value=int(word))
        else:
            step = replace(step, argument=word)
    return step


@dataclass(frozen=True, slots=True)
class Version:
    """What one CPython version writes.

    groups: opcodes that only make sense together, longest first; the last one has the row.
    skipped_after: opcodes that a jump of FOR_ITER or SEND passes over, at its physical target.
    pop_null: instructions that get rid of a NULL on top of the stack (POP_TOP cannot).
    """

    python: tuple[int, int]
    rows: dict[str, Row]
    unsupported: dict[str, str]
    groups: tuple[tuple[str, ...], ...]
    skipped_after: dict[str, tuple[str, ...]]
    pop_null: tuple[tuple[str, object], ...]

    def reason(self, opcode: str) -> str | None:
        """Why an opcode is not supported; None when it has a row or is part of a group."""
        if opcode in self.rows or any(opcode in group for group in self.groups):
            return None
        for name, reason in self.unsupported.items():
            if opcode == name or (name.endswith("_") and opcode.startswith(name)):
                return reason
        return f"{opcode} is not known in Python {self.python[0]}.{self.python[1]}"
