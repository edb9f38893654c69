"""The grammar: rules written as Python with holes, read from the text files beside this one.

In: `grammar/*.txt`. Out: `Rule` rows. A file holds rules one below the other:

    == name 2 -> T:r L:l      its weight, and the variables that it leaves (T tensor, L list, D dict)
    class $Pair: …            definitions of the module (optional, up to the line `--`)
    --
    $r = $Pair($T).first      the statements

A hole is `$` and a capital letter (an expression of a kind) or `$` and a name (a fresh name, the
same in the whole rule); `$BODY` alone on its line is a block of further statements, and
`$BODY:a,b` one that sees nothing but the tensors a and b.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Rule", "read_rules", "rules"]

FOLDER = Path(__file__).parent / "grammar"


@dataclass(frozen=True, slots=True)
class Rule:
    """One construct: how often it is chosen, the text with holes, and what it leaves behind."""

    name: str
    theme: str
    weight: int
    gives: tuple[tuple[str, str], ...]
    definitions: str
    statements: str


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules, ordered by file and place."""
    return tuple(rule for path in sorted(FOLDER.glob("*.txt")) for rule in read_rules(path))


def read_rules(path: Path) -> list[Rule]:
    """The rules of one file."""
    parts = ("\n" + path.read_text()).split("\n== ")[1:]
    return [_rule(part, path.stem) for part in parts]


def _rule(text: str, theme: str) -> Rule:
    head, _, body = text.partition("\n")
    front, _, gives = head.partition("->")
    name, *weight = front.split()
    before, bar, after = body.partition("\n--\n")
    definitions, statements = (before, after) if bar else ("", body)
    pairs = tuple((kind, of) for kind, of in (given.split(":") for given in gives.split()))
    return Rule(
        name, theme, int(weight[0]) if weight else 4, pairs, definitions.strip("\n"), statements.strip("\n")
    )  # fmt: skip
