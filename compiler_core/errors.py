"""Every error a user can meet, as one catalogue: code, sentence, explanation, hints.

In: a code and the facts of one case. Out: an exception whose text says what, why, what to do and
where. A graph break uses the same rows (`capture/breaks.py`), so a break that `fullgraph=True`
turns into an error reads the same in both places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = [
    "CATALOGUE",
    "BackendFailed",
    "BackendNotFound",
    "CutawayError",
    "GraphBreakError",
    "InternalError",
    "Kind",
    "NotSupportedYet",
    "OptionError",
    "ToolMissing",
    "VerifyError",
    "closest",
    "register",
    "warning_text",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the catalogue. `sentence` is constant; the facts of a case are added to it."""

    code: str
    sentence: str
    explanation: str
    hints: tuple[str, ...] = ()


CATALOGUE: dict[str, Kind] = {}


def register(code: str, sentence: str, explanation: str, *hints: str) -> Kind:
    """Add a row to the catalogue. A code is given once: a second use is a bug of ours."""
    if code in CATALOGUE:
        raise ValueError(f"catalogue code {code} is taken by: {CATALOGUE[code].sentence}")
    CATALOGUE[code] = kind = Kind(code, sentence, explanation, hints)
    return kind


def closest(word: str, valid: Iterable[str]) -> str:
    """'; did you mean …?' or a full stop, and the valid names, behind a name that is not known."""
    names = sorted(valid)
    near = get_close_matches(word, names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return f"{guess} Valid: {', '.join(names)}."


def warning_text(kind: Kind, detail: str) -> str:
    """The text of a warning: what, why and what to do, as an error of this row would say it."""
    return CutawayError(kind, detail).text()


class CutawayError(Exception):
    """Base of all errors raised on purpose.

    `kind` is the catalogue row, `detail` the facts of this case, `where` a 'file:line' of the
    user's program where one is known.
    """

    def __init__(self, kind: Kind, detail: str = "", where: str | None = None):
        self.kind, self.detail, self.where = kind, detail, where
        super().__init__(self.text())

    def text(self) -> str:
        """The whole message: sentence and facts, place, reason, what to do."""
        lines = [
            f"[{self.kind.code}] {self.kind.sentence}{': ' + self.detail if self.detail else ''}"
        ]
        if self.where:
            lines.append(f"  at   {self.where}")
        lines.append(f"  why  {self.kind.explanation}")
        lines += [f"  do   {hint}" for hint in self.kind.hints]
        return "\n".join(lines)


class OptionError(CutawayError, ValueError):
    """An argument, mode or option that is not valid."""


class BackendNotFound(OptionError):
    """A backend name that nobody registered."""


class NotSupportedYet(CutawayError, NotImplementedError):
    """A documented feature that is not built yet."""


class ToolMissing(CutawayError, RuntimeError):
    """A program or package that a stage needs is not on this machine (C compiler, triton)."""


class BackendFailed(CutawayError, RuntimeError):
    """A backend that the user passed raised, or returned what cannot be called. Never swallowed."""


class GraphBreakError(CutawayError):
    """`fullgraph=True` and the capture met a graph break."""


class InternalError(CutawayError):
    """The compiler itself failed. Users get a fallback with this as the reason; strict raises it."""


class VerifyError(CutawayError):
    """A stage's value is not well formed. The message shows the text around the fault."""


BACKEND_FAILED = register(
    "CC007",
    "the backend failed",
    "`backend` is a callable of the user's; its errors are not hidden behind a fallback to eager.",
    "It takes (graph_module, example_inputs) and returns a callable that gives the graph's flat tuple of outputs.",
)
INTERNAL = register(
    "CC001",
    "the compiler failed inside",
    "A stage raised an exception of its own; with strict off the program runs in eager instead.",
    "Run with options={'strict': True} to get the traceback.",
    "Report it with the program and the output of `cutaway doctor`.",
)
BAD_VALUE = register(
    "CC002",
    "an argument has a value that is not valid",
    "It is refused here, before it could change what is compiled.",
    "Pass a value of the kind named above.",
)
NOT_YET = register(
    "CC003",
    "not supported yet",
    "This part of the interface is reserved, but nothing stands behind it today.",
    "Leave the argument out, or use the alternative named above.",
)
NO_TOOL = register(
    "CC004",
    "a tool that this target needs is missing",
    "Kernels are built by a C++ compiler (CPU) or by triton (GPU); the tool was not found.",
    "Install it (Debian: `apt-get install g++`; Linux: `pip install triton`) and call again.",
    "`cutaway doctor` shows what this machine can do.",
)
ILL_FORMED = register(
    "CC005",
    "a stage's value is not well formed",
    "A pass or an edit broke a rule of the IR, so nothing after it can be trusted.",
    "If you edited the text, compare it with the unedited one; otherwise report it.",
)
NO_CAPTURE = register(
    "CC006",
    "a function cannot be captured at all",
    "With fullgraph=True the whole function must become one graph; this one runs in eager.",
    "Call it in another state (no inference mode, no mode of torch function or dispatch), or drop fullgraph=True.",
    "A generator is captured as a part of the function that iterates over it: compile that one.",
)
NO_ARGUMENT = register(
    "CC008",
    "there is no argument of this name",
    "It would be passed over, and the program would run otherwise than it reads.",
    "Use one of the names above, or leave it out.",
)
A_CLASS = register(
    "CC009",
    "a class is given where a function or a module is taken",
    "A class only makes objects; what computes is the object, and that is what is compiled.",
    "Make the object first: `compile(Model(...))` instead of `compile(Model)`.",
)
ALREADY_RECORDING = register(
    "CC010",
    "record() inside record()",
    "A compile leaves its facts in one recording; the outer one would miss what the inner one takes.",
    "Use the outer recording for both, or close it first.",
    "`explain` and `explore` record by themselves and may stand inside a record().",
)
STAYS_FIXED = register(
    "CC011",
    "a size of 0 or 1 stays fixed",
    "Such a size means broadcasting or an empty loop, so one version cannot serve it and larger ones.",
    "Mark the dimension on a tensor in which it is 2 or more.",
)
UNKNOWN_VARIABLE = register(
    "CC012",
    "an environment variable that nothing reads",
    "Its name begins as those of this program do, but it has no effect.",
    "Correct its name, or unset it.",
)
NOT_KEPT = register(
    "CC013",
    "the folder for built kernels cannot be written",
    "Kernels are built for this process only; the next one builds them again.",
    "Name a folder that can be written: CUTAWAY_CACHE_DIR, or options={'cache_dir': ...}.",
)
TARGET_LEFT_OUT = register(
    "CC014",
    "a further target is left out",
    "What `also` names is built to be looked at; the code that runs does not depend on it.",
    "Run with options={'strict': True} to get the traceback.",
)
