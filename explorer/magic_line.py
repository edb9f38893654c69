"""The line of `%%compile`: options by name, then what to call. One table serves parsing, help, completion.

In: the text behind `%%compile`. Out: a `Request`, or a `CellError` that names the valid words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler_core.errors import closest
from explorer.cells import CellError
from explorer.views.linked import STAGES

__all__ = ["OPTIONS", "MagicOption", "Request", "completions", "help_text", "parse_line"]

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "cuda:120")


@dataclass(frozen=True, slots=True)
class MagicOption:
    """One option. `value` names what follows it, "" for a switch; `choices` are the valid words."""

    name: str
    value: str
    help: str
    choices: tuple[str, ...] = ()
    many: bool = False  # a comma list
    is_free: bool = False  # choices are suggestions


OPTIONS = {
    o.name: o
    for o in (
        MagicOption("--backend", "B", "what runs the graphs", ("cutaway", "eager")),
        MagicOption(
            "--target", "T", "a further target to compile for; needs no GPU", TARGETS, True, True
        ),
        MagicOption("--show", "STAGES", "which panes are open at first", tuple(STAGES), True),
        MagicOption("--fullgraph", "", "a graph break is an error"),
        MagicOption("--grad", "", "arguments get gradients, and the backward pass runs too"),
        MagicOption("--save", "FILE", "write x.html (a page) or x.cutaway.gz (a recording)"),
        MagicOption("--quiet", "", "show nothing; the report is in the variable `report`"),
    )
}


@dataclass(frozen=True, slots=True)
class Request:
    """What the line asks for. `call` is the text after the options, `column` where it starts in the line."""

    values: dict[str, str]
    call: str
    column: int

    def has(self, name: str) -> bool:
        return name in self.values

    def many(self, name: str) -> tuple[str, ...]:
        return tuple(w for w in self.values.get(name, "").split(",") if w)


def parse_line(line: str) -> Request:
    """Raises CellError (without a place) for a word that is not valid."""
    values: dict[str, str] = {}
    words = list(_words(line))
    while words and words[0][1].startswith("-"):
        _, word = words.pop(0)
        name, joined, value = word.partition("=")
        option = OPTIONS.get(name)
        if option is None:
            raise CellError(f"unknown option {name!r}{closest(name, OPTIONS)}")
        if option.value and not joined:
            if not words:
                raise CellError(f"{name} needs a value: {name} {option.value} ({option.help})")
            value = words.pop(0)[1]
        values[name] = _checked(option, value)
    column = words[0][0] if words else len(line)
    return Request(values, line[column:].strip(), column)


def _words(line: str) -> Iterator[tuple[int, str]]:
    """Words with their columns."""
    end = 0
    for word in line.split():
        start = line.index(word, end)
        end = start + len(word)
        yield start, word


def _checked(option: MagicOption, value: str) -> str:
    if not option.value and value:
        raise CellError(f"{option.name} takes no value")
    for word in value.split(",") if option.many else [value]:
        if option.choices and not option.is_free and word not in option.choices:
            raise CellError(f"{option.name} cannot be {word!r}{closest(word, option.choices)}")
    return value


def completions(line: str) -> list[str]:
    """What could stand where `line` (the magic line up to the cursor) ends."""
    words = line.split()
    token = "" if line.endswith(" ") or not words else words[-1]
    before = words[:-1] if token else words
    last = OPTIONS.get(before[-1]) if before else None
    if last is not None and last.value:
        head, comma, part = token.rpartition(",")
        return [head + comma + c for c in last.choices if c.startswith(part)]
    if token and not token.startswith("-"):
        return []
    return [name for name in OPTIONS if name.startswith(token) and name not in before]


def help_text() -> str:
    """What `%%compile?` shows."""
    rows = [
        f"  {f'{o.name} {o.value}'.strip():16s} {o.help}{_words_of(o)}" for o in OPTIONS.values()
    ]
    return _HELP.format(options="\n".join(rows))


def _words_of(option: MagicOption) -> str:
    if not option.choices:
        return ""
    return f" ({', '.join(option.choices)}{'; several with commas' if option.many else ''})"


_HELP = """Compile the cell's function, run it once, and show every stage, linked line by line.

    %%compile f(x, y)
    def f(x, y):
        return torch.sin(x) + torch.cos(y)

Or leave the call out: the cell's last line, if it is a call (`f(x, y)`), is the example.
The report is the cell's value and the variable `report`.

%%compile [options] [NAME(arguments)]

{options}
"""
