"""A seed becomes a program: rules are drawn, their holes filled, and the skeleton put around them.

In: a seed. Out: the source text of a module with `program(x, y, state)`, `inputs(call)`, `State` and
`mutate(call, state)`. Every tensor has the shape (2, 3), so that any can meet any other.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from grammar import Rule, rules

__all__ = ["write_program", "written_rules"]

HOLE = re.compile(r"\$(BODY:[\w,]+|BODY|[TVIFBSLDNG](?![A-Za-z_])|[A-Za-z_]+)")
SKELETON = (Path(__file__).parent / "skeleton.txt").read_text()

#: expressions of each kind; a `!` row is taken at any depth (it holds no other of its kind)
EXPRESSIONS = {
    "T": (
        "$V", "$V", "$V", "($T + $T)", "($T * $F)", "($T - $V)", "torch.relu($T)", "$T.sin()", "torch.tanh($T)",
        "torch.where($V > 0, $T, $V)", "($T if $B else $V)", "$L[-1]", "$L[0]", "$D.get($S, $V)",
        "torch.maximum($V, $T)", "torch.stack([$V, $T]).mean(0)", "$T.softmax(-1)", "$T.t().t()", "sum($L, $V)",
        "$V.clone()", "$T.detach()", "torch.cat([$V, $V])[1:3]", "$V[:, [2, 0, 1]]", "$T.mul($F)",
    ),
    "I": ("1", "2", "3", "$G.n", "len($L)", "$V.shape[0]", "($I + 1)", "COUNT", "$V.dim()", "len($S)", "min($I, 3)"),
    "F": ("0.5", "2.0", "-1.5", "$G.scale", "SCALE", "($I / 4)", "float($I)", "math.sqrt(2.0)"),
    "B": (
        "$G.flag", "$I > 2", "$I % 2 == 0", "not $B", "$S in $D", "1 < $I <= 3", "$S == $S", "($B and $B)",
        "isinstance($V, torch.Tensor)", "$F > 0", "bool($L)", "$V is $V", "($B or $B)",
    ),
    "S": ('"a"', '"b"', '"k"', "$G.name", '("%d" % $I)', "$S.upper()", '($S + "z")', "$S[:1]", '"-".join(["p", $S])'),
    "N": ("1", "2", "3"),
}  # fmt: skip

MUTATIONS = (
    "state.n += 1", "state.scale *= 1.5", "state.flag = not state.flag", "state.name += 'c'", "SCALE += 0.25", "COUNT += 1",
    "state.items.append(torch.ones(2, 3) * call)", "state.table['c'] = torch.ones(2, 3)", "ITEMS.reverse()",
    "state.table['a'] = state.table.pop('a', torch.ones(2, 3))", "TABLE['k'] = torch.ones(2, 3) * call", "del state.items[:1]",
    "state.block.eval()", "state.items[:] = [a * 2 for a in state.items]", "State.made += 1", "state.extra = call",
    "state.block.linear.bias.requires_grad_(False)", "state.log.append(call)",
)  # fmt: skip


@dataclass(slots=True)
class Scope:
    """What a piece of text may name. `own`: variables that it may assign, by kind; `seen`: all."""

    own: dict[str, list[str]]
    seen: dict[str, list[str]]
    holder: str = "state"

    def inner(self) -> Scope:
        return replace(self, own=_copied(self.own), seen=_copied(self.seen))

    def add(self, kind: str, name: str) -> None:
        self.own.setdefault(kind, []).append(name)
        self.seen.setdefault(kind, []).append(name)


def _copied(names: dict[str, list[str]]) -> dict[str, list[str]]:
    return {kind: list(of) for kind, of in names.items()}


@dataclass(slots=True)
class Writer:
    """The state of one program's making."""

    rng: random.Random
    definitions: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    made: int = 0

    # ------------------------------------------------------------------ expressions

    def expression(self, kind: str, scope: Scope, depth: int = 0) -> str:
        if kind in "VLDG":
            return self._name(kind, scope)
        rows = EXPRESSIONS[kind]
        if depth > 2:
            rows = tuple(r for r in rows if not re.search(r"\$[TIFBS]", r))
        text = self.rng.choice(rows)
        return HOLE.sub(lambda m: self.expression(m[1], scope, depth + 1), text)

    def _name(self, kind: str, scope: Scope) -> str:
        if kind == "G":
            return scope.holder
        if kind == "V":
            return self.rng.choice(scope.seen["T"])
        outer = {"L": ("items", "ITEMS"), "D": ("table", "TABLE")}[kind]
        return self.rng.choice([*scope.seen.get(kind, ()), f"{scope.holder}.{outer[0]}", outer[1]])

    # ------------------------------------------------------------------ statements

    def block(self, scope: Scope, count: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            lines += self.statement(scope, depth)
        return lines

    def statement(self, scope: Scope, depth: int) -> list[str]:
        choices = [r for r in rules() if depth < 2 or "$BODY" not in r.statements + r.definitions]
        rule = self.rng.choices(choices, [r.weight for r in choices])[0]
        return self.apply(rule, scope, depth)

    def apply(self, rule: Rule, scope: Scope, depth: int) -> list[str]:
        names: dict[str, str] = {}
        self.used.add(rule.name)
        if rule.definitions:
            module = Scope({"T": ["ITEMS[0]"]}, {"T": ["ITEMS[0]"]}, "STATE")
            text = self.fill(rule.definitions, module, names, depth + 1)
            self.definitions.append("\n".join(text))
        lines = self.fill(rule.statements, scope, names, depth)
        for kind, name in rule.gives:
            scope.add(kind, self._fresh(name, names))
        return lines

    def fill(self, text: str, scope: Scope, names: dict[str, str], depth: int) -> list[str]:
        text = re.sub(r"\bstate\b", scope.holder, text)
        lines: list[str] = []
        for line in text.splitlines():
            indent, rest = re.match(r"( *)(.*)", line).groups()
            if rest.startswith("$BODY"):
                inner = self._body(rest.partition(":")[2], scope, names, depth)
                lines += [indent + x for x in inner]
            else:
                lines.append(HOLE.sub(lambda m: self._hole(m[1], scope, names), line))
        return lines

    def _body(self, tensors: str, scope: Scope, names: dict[str, str], depth: int) -> list[str]:
        inner = scope.inner()
        if tensors:
            given = [self._fresh(name, names) for name in tensors.split(",")]
            inner = Scope({"T": given}, {"T": list(given)}, scope.holder)
        return self.block(inner, self.rng.choice((1, 1, 2)), depth + 1)

    def _hole(self, hole: str, scope: Scope, names: dict[str, str]) -> str:
        if hole == "V":
            return self.rng.choice(scope.own["T"])
        if hole in EXPRESSIONS or hole in ("L", "D", "G"):
            return self.expression(hole, scope, depth=1)
        return self._fresh(hole, names)

    def _fresh(self, name: str, names: dict[str, str]) -> str:
        if name not in names:
            self.made += 1
            names[name] = f"{name}{self.made}"
        return names[name]


def write_program(seed: int) -> str:
    """The source text of the program of a seed."""
    return _write(Writer(random.Random(seed)))


def written_rules(seed: int) -> set[str]:
    """The names of the rules that made the program of a seed."""
    writer = Writer(random.Random(seed))
    _write(writer)
    return writer.used


def _write(writer: Writer) -> str:
    rng = writer.rng
    scope = Scope(*({"T": ["t", "x", "y"], "L": ["l"], "D": ["d"]} for _ in range(2)))
    body = writer.block(scope, rng.randint(4, 7), 0)
    kept = [name for kind in "TLD" for name in dict.fromkeys(scope.own[kind])]
    parts = {
        "GRAD": rng.choice(("", "", ".requires_grad_()")),
        "MUTATIONS": _indented(rng.sample(MUTATIONS, rng.randint(1, 4)), 8),
        "DEFINITIONS": "\n\n\n".join([*writer.definitions, ""]),
        "BODY": _indented(body, 4),
        "RETURN": f"    return {', '.join(kept)}",
    }
    return re.sub(r"\$([A-Z]+)", lambda m: parts[m[1]], SKELETON)


def _indented(lines: list[str], by: int) -> str:
    return "\n".join(" " * by + line for line in lines)
